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
  /** Modules that a file imports; the composition root is exempt. */
  imports: 20,
  /** `as` (without `as const`) in a thousand lines of the whole tree. */
  assertionsPer1000Lines: 4,
  /** Characters of a commit's subject. */
  subject: 72,
} as const

/** The files that put everything together: they may import any number of modules. */
export const COMPOSITION: readonly RegExp[] = [
  // The blocks of gateway.json.
  /^services\/gateway\/config\.ts$/,
  /^services\/[^/]+\/compose\.ts$/,
  // The parts of the gateway's compose.ts, and the tests of all features together.
  /^services\/gateway\/composition\//,
  // The hostile inputs of all features.
  /^services\/gateway\/(?:planes\/)?cost\.fuzz\.ts$/,
]

/** Decoders and the runner: the only files that may say `as`, each with the reason. */
export const MAY_ASSERT: ReadonlyMap<string, string> = new Map([
  ['packages/config/flags.ts', 'the values have the types of their table, which only the table proves'],
  ['services/gateway/call/snapshot.ts', 'a slot holds what was written through the same slot'],
])

/** Files that build regular expressions at run time, each with where the patterns come from. */
export const MAY_BUILD_REGEXES: ReadonlyMap<string, string> = new Map([
  ['packages/config/check.ts', 'keys of the schemas of gateway.json'],
  ['packages/config/words.ts', 'patterns of the same schemas'],
  ['packages/kubernetes/yaml/write.ts', 'one character of a class'],
  ['packages/resources/rest/route.ts', 'a literal with the API version in it'],
  ['packages/resources/check.ts', 'patterns of the schemas of resources'],
])

/** Files with a client of a library that is given a connection of the dialer, each with how. */
export const ON_CONNECTIONS_OF_THE_DIALER: ReadonlyMap<string, string> = new Map([
  [
    'services/gateway/operate/live-view/sandbox.ts',
    'createConnection of ws returns the connection, and redirects are off',
  ],
])

/** Files that may use system time and randomness: the clock itself, and code outside of the product. */
export const OWN_TIME =
  /^(?:packages\/core\/(?:clock|ids)\.ts|sdk\/typescript\/clock\.ts|apps\/console\/app\/clock\.ts|(?:tools|bench|test|examples)\/|packages\/testkit\/)/
