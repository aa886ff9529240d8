/** The numbers of STYLE.md, and the few reviewed exceptions to its rules. @table */

export const LIMITS = {
  /** Lines of a file; tables and fixtures are exempt. */
  fileLines: 400,
  /** Lines of a function, and what nine of ten functions stay under. */
  functionLines: 60,
  usualFunctionLines: 35,
  parameters: 4,
  /** Folders from the root of the repository down to a file. */
  folderDepth: 5,
  /** Source files of a folder, tests not counted. */
  folderFiles: 12,
  /** `as` (without `as const`) in a thousand lines of the whole tree. */
  assertionsPer1000Lines: 4,
} as const

/** Decoders and the runner: the only files that may say `as`, each with the reason. */
export const MAY_ASSERT: ReadonlyMap<string, string> = new Map([
  ['packages/config/check.ts', 'the decoded file gets the shape that its schema has just proved'],
  ['services/gateway/pipeline/runner.ts', 'the one cast that erases the facts of a stage'],
  ['services/gateway/pipeline/stage.ts', 'the one cast that erases the facts of a stage'],
])

/** Folders whose files are all alike, one thing each: they may hold more than `folderFiles`. */
export const UNIFORM_FOLDERS: ReadonlyMap<string, string> = new Map([
  ['apps/cli', 'one file per command'],
  ['docs/decisions', 'one file per decision'],
])

/** What runs on the machine's own time and randomness: the clock itself, and what is no product code. */
export const OWN_TIME = /^(?:packages\/core\/(?:clock|ids)\.ts|(?:tools|bench|test|examples)\/|packages\/testkit\/)/
