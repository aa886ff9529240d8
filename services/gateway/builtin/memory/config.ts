import { defineBlock, key } from '@plat/config'
import Type from 'typebox'

/** Memory of agents (docs/spec/gateway.md, "Sessions, sandbox tools, memory"). */
export const memoryBlock = defineBlock({
  path: '',
  feature: 'memory',
  schema: Type.Object({
    memoryFile: key.file('MemoryStore list, hot-reloaded.'),
    memoryDataDir: key.text('Built-in memory data; default `<dir of auditPath>/memory`.'),
    memorySweepSeconds: key.seconds('Retention sweep.', 3600),
  }),
})
