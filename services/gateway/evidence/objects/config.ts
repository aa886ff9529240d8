import { defineBlock, key } from '@plat/config'
import Type from 'typebox'

/** `evidence` (docs/spec/gateway.md): objects beside the ledger. */
export const evidenceBlock = defineBlock({
  path: 'evidence',
  feature: 'evidence',
  schema: Type.Object({
    dir: key.text('Evidence objects when there is no WORM sink; default `<auditPath>.evidence`.'),
    maxBytes: key.whole('Per object.', 50 * 1024 * 1024, 1),
  }),
})
