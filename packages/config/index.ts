export {
  type ConfigBlock,
  type ConfigOf,
  defineBlock,
  type KeyNotes,
  LONGEST_SECONDS,
  type Problem,
  type Rule,
  type RuleOf,
  type Unfinished,
} from './block.ts'
export {
  headerLines,
  PACKED_SUFFIX,
  type PeerFiles,
  peerFiles,
  readBounded,
  readText,
  readUpTo,
  unpack,
} from './bounded.ts'
export { type CheckedConfig, type CheckOptions, checkConfig } from './check.ts'
export { withFilesBelow } from './files.ts'
export {
  type Flag,
  type FlagTable,
  type FlagValues,
  type ParsedFlags,
  parseFlags,
  type SettingsOf,
  settingsOf,
  usage,
} from './flags.ts'
export { type FollowOptions, followFile, missingFile, type RefusedContent } from './follow.ts'
export { type JsonProblem, jsonProblem } from './json-problem.ts'
export * as key from './keys.ts'
export { joinSchema, type Node } from './node.ts'
export { jsonSchema, markdownReference } from './reference.ts'
export { isUnset, namesProfile, requires, requiresTop, uniqueNames } from './rules.ts'
export { readSecret } from './secret.ts'
export { type FileWatch, MAX_WATCHED_BYTES, type WatchOptions, watchFile } from './watch.ts'
export { formatProblem, isHttpUrl, isListenAddress, memberPath } from './words.ts'
