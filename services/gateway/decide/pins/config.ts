import { defineBlock } from '@plat/config'
import Type from 'typebox'

/** Pinned tool definitions (docs/spec/gateway.md, "MCP servers"). */
export const pinsBlock = defineBlock({
  path: '',
  feature: 'pins',
  schema: Type.Object({
    pinStorePath: Type.String({
      default: '',
      description: 'Journal of observed tool definitions; memory when empty.',
    }),
    pinCacheSeconds: Type.Integer({
      default: 60,
      minimum: 0,
      description: 'Rate limit of the upstream `tools/list` fetch.',
    }),
  }),
})
