import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Taints of sessions (docs/spec/gateway.md). */
export const taintBlock = {
  path: '',
  feature: 'taint',
  built: true,
  schema: Type.Object({
    taintStorePath: Type.String({ default: '', description: 'Taint journal; memory when empty.' }),
    taintRetentionSeconds: Type.Integer({
      default: 86_400,
      minimum: 1,
      description: 'Retention after the last tool call; never below token expiry.',
    }),
  }),
  rules: [],
} satisfies ConfigBlock
