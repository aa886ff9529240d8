import { type ConfigBlock, key, uniqueNames } from '@plat/config'
import Type from 'typebox'

const anchor = Type.Object({
  name: key.needed('Unique name.'),
  file: key.needed('The ledger.'),
  pubkey: key.text('Pinned Ed25519 key, hex.', '', '^(?:[0-9a-f]{64})?$'),
  requireSigned: key.flag('Unsigned heads do not verify.'),
  allowRestarts: key.flag('A ledger may begin anew.'),
  intervalSeconds: key.seconds('How often.', 60),
})

/** `clientAudit` (document 3): ledgers of clients that ours vouches for. */
export const clientAuditBlock = {
  path: 'clientAudit',
  feature: 'client-audit',
  built: false,
  schema: Type.Object({
    anchors: Type.Array(anchor, { default: [], description: 'Ledgers of clients.' }),
  }),
  rules: [uniqueNames('clientAudit.anchors')],
} satisfies ConfigBlock
