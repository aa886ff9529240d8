import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Memory stores (document 3). */
export const memoryBlock = {
  path: '',
  feature: 'memory',
  built: false,
  schema: Type.Object({
    memoryFile: Type.String({ default: '', description: 'MemoryStore list.' }),
    memoryDataDir: Type.String({
      default: '',
      description: 'Built-in memory data; default `<dir of auditPath>/memory`.',
    }),
    memorySweepSeconds: Type.Integer({ default: 3600, minimum: 1, description: 'Retention sweep.' }),
  }),
} satisfies ConfigBlock
