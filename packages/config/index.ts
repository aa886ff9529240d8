export type { ConfigBlock, Problem, Rule } from './block.ts'
export { type Flag, type FlagTable, type FlagValues, type ParsedFlags, parseFlags, usage } from './flags.ts'
export { readSecret } from './secret.ts'
export { type FileWatch, MAX_WATCHED_BYTES, type WatchOptions, watchFile } from './watch.ts'
