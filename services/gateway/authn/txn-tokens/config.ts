import { defineBlock, key, type RuleOf, requires } from '@plat/config'
import { isTrustDomain } from '@plat/core'
import Type, { type Static } from 'typebox'
import { keyProblems } from '../../call/key-problems.ts'

/** docs/spec/gateway.md, "Limits": maximum lifetime of a transaction token, in seconds. */
const MAX_TTL_SECONDS = 300

const schema = Type.Object({
  mode: key.choice(
    ['off', 'add', 'replace'],
    'off',
    'Caller information sent to called agents: `off`: `X-Plat-*` headers; `add`: Txn-Token plus `X-Plat-*` headers; `replace`: Txn-Token alone.',
  ),
  signingKey: key.text('URI of an Ed25519 key; required unless off.'),
  issuer: key.text('`iss`.', 'plat-gateway'),
  audience: key.text('Trust domain, the `aud`; required unless off.'),
  workloadID: key.text('`req_wl`; default `spiffe://<audience>/plat/gateway`.'),
  ttlSeconds: key.whole('Lifetime.', 60, 1, MAX_TTL_SECONDS),
})

/** `aud` is a trust domain, not a URL, and the default of `workloadID` is derived from it. */
const audienceIsTrustDomain: RuleOf<typeof schema> = ({ mode, audience = '' }) =>
  mode === 'off' || audience === '' || isTrustDomain(audience)
    ? []
    : [
        {
          path: 'txnTokens.audience',
          message: 'must be a trust domain such as plat.local: lower-case letters, digits, ".", "_" and "-"',
          severity: 'error',
        },
      ]

/** Transaction tokens are sent to agents only. */
const agentsAreExposed: RuleOf<typeof schema> = ({ mode }, { a2a }) => {
  const routes = typeof a2a === 'object' && a2a !== null && 'routesFile' in a2a ? a2a.routesFile : ''
  return mode === 'off' || routes !== ''
    ? []
    : [{ path: 'txnTokens.mode', message: 'no agent can be called: a2a.routesFile is not set', severity: 'warning' }]
}

/** `txnTokens` (docs/spec/gateway.md): transaction tokens for agents that are called. */
export const txnTokensBlock = defineBlock({
  path: 'txnTokens',
  feature: 'txn-tokens',
  schema,
  rules: [
    requires('txnTokens', ['signingKey', 'audience'], ({ mode }) => mode !== 'off', 'unless txnTokens.mode is off'),
    ({ mode, signingKey = '' }) => (mode === 'off' ? [] : keyProblems('txnTokens.signingKey', signingKey, 'Ed25519')),
    audienceIsTrustDomain,
    agentsAreExposed,
  ],
})

export type TxnTokensConfig = Readonly<Static<typeof txnTokensBlock.schema>>
