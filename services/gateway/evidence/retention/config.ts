import { defineBlock, key } from '@plat/config'
import Type from 'typebox'

/** Treatment of sealed segments of the ledger (docs/spec/gateway.md). */
export const retentionBlock = defineBlock({
  path: '',
  feature: 'retention',
  schema: Type.Object({
    auditSegmentCompression: key.choice(
      ['none', 'zstd'],
      'none',
      'Compression of sealed segments; `plat audit`, `zstd -dc` and the script of docs/verify.md read them.',
    ),
  }),
})
