import { type ConfigBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `txnTokens` (document 3): transaction tokens for agents that are called. */
export const txnTokensBlock = {
  path: 'txnTokens',
  feature: 'txn-tokens',
  built: false,
  schema: Type.Object({
    mode: key.choice(
      ['off', 'add', 'replace'],
      'off',
      '`add`: Txn-Token plus `X-Plat-*` headers; `replace`: instead of the session token.',
    ),
    signingKey: key.text('URI of an Ed25519 key; required unless off.'),
    issuer: key.text('`iss`.', 'plat-gateway'),
    audience: key.text('Trust domain; required unless off.'),
    workloadID: key.text('`req_wl`; default `spiffe://<audience>/plat/gateway`.'),
    ttlSeconds: key.whole('Lifetime.', 60, 1, 300),
  }),
  rules: [
    requires('txnTokens', ['signingKey', 'audience'], ({ mode }) => mode !== 'off', 'unless txnTokens.mode is off'),
  ],
} satisfies ConfigBlock
