import { defineBlock, key, type RuleOf, uniqueNames } from '@plat/config'
import Type, { type Static } from 'typebox'

const anchor = Type.Object({
  name: key.needed('Unique name.'),
  file: key.needed('The ledger: of plat, or in the open format.'),
  pubkey: key.text('Pinned Ed25519 key, hex.', '', '^(?:[0-9a-f]{64})?$'),
  requireSigned: key.flag('Unsigned heads do not verify; needs `pubkey`.'),
  allowRestarts: key.flag('A ledger may begin anew.'),
  intervalSeconds: key.seconds('How often it is read.', 60),
})

const schema = Type.Object({
  anchors: Type.Array(anchor, { default: [], description: 'Ledgers of clients.' }),
})

const signaturesHaveAKey: RuleOf<typeof schema> = ({ anchors }) => {
  const entries = Array.isArray(anchors) ? anchors : []
  return entries.flatMap((entry, index) =>
    entry?.requireSigned === true && (entry.pubkey ?? '') === ''
      ? [
          {
            path: `clientAudit.anchors[${index}].pubkey`,
            message: 'is required with requireSigned',
            severity: 'error' as const,
          },
        ]
      : [],
  )
}

/** `clientAudit` (docs/spec/gateway.md): ledgers of clients that the gateway anchors. */
export const clientAuditBlock = defineBlock({
  path: 'clientAudit',
  feature: 'client-audit',
  schema,
  rules: [uniqueNames('clientAudit.anchors'), signaturesHaveAKey],
})

export type ClientAuditConfig = Readonly<Static<typeof clientAuditBlock.schema>>
