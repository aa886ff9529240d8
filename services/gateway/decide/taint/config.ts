import { defineBlock } from '@plat/config'
import Type from 'typebox'

/** Taint labels of sessions (docs/spec/gateway.md). */
export const taintBlock = defineBlock({
  path: '',
  feature: 'taint',
  schema: Type.Object({
    taintStorePath: Type.String({ default: '', description: 'Taint journal; memory when empty.' }),
    taintRetentionSeconds: Type.Integer({
      default: 86_400,
      minimum: 1,
      description: 'Retention after the last tool call; never below token expiry.',
    }),
  }),
})
