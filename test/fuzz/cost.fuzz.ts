import {
  canonicalJson,
  checkJson,
  decodeBase64url,
  findSpan,
  GlobTable,
  glob,
  isObject,
  losslessSteps,
  MAX_JSON_DEPTH,
  parseDuration,
  parseLossless,
  parseQuantity,
  parseSessionSpiffeId,
  parseStrict,
  runInSlices,
  withoutMembers,
} from '@plat/core'
import { readYaml } from '@plat/kubernetes'
import { compileExpression, readManifestAside } from '@plat/resources'
import { costTarget, type Families, type Row } from './cost.ts'
import { json, text } from './families.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** Largest body of a request. JSON of responses may be longer; what it takes beside `JSON.parse` is the same part. */
const BODY = 4 * MIB

const yaml: Families = {
  ...text,
  nesting: (n) => '['.repeat(n),
  dashes: (n) => '- '.repeat(n / 2),
  'trailing spaces': (n) => `a:${' '.repeat(n)}`,
  'digits of a value': (n) => `a: ${'1'.repeat(n)}`,
  anchors: (n) => Array.from({ length: n / 24 }, (_, at) => `- &a${at} 1\n- *a${at}\n`).join(''),
  keys: (n) => Array.from({ length: n / 12 }, (_, at) => `m${at}: ${at}\n`).join(''),
  quotes: (n) => `a: "${'\\"'.repeat(n / 2)}"`,
  'folded lines': (n) => `a: "${'\n'.repeat(n)}"`,
}

const stars = glob('*a*b*ab*c')
const table = new GlobTable([...'abcdefgh'].map((each) => [`*${each}*a*b*`, each] as const))
const expressions = ['args.all(x, true)', 'args == args', '"b" in args', 'size(args) > 1 && args.contains("ab")']
  .map((when) => compileExpression(when, ['args']))
  .filter((expression) => typeof expression !== 'string')

/** With numbers that a double does not write back, and members out of order. */
const values: Families = {
  ...json,
  'one exact number': (n) => `[${'1,'.repeat(n / 2)}1.0]`,
  'unsorted members': (n) => `[${'{"b":1,"a":""},'.repeat(n / 15)}1]`,
}

const jsonRows: readonly Row[] = [
  { parser: 'strict JSON', part: 'check', limit: BODY, families: json, run: (input) => checkJson(Buffer.from(input)) },
  {
    parser: 'strict JSON',
    part: 'value',
    limit: BODY,
    families: json,
    run: (input) => parseStrict(Buffer.from(input)),
  },
  {
    parser: 'spans of JSON',
    limit: BODY,
    families: {
      ...json,
      'deep path': (n) =>
        `${'{"params":'.repeat(MAX_JSON_DEPTH - 1)}"${'a'.repeat(n)}"${'}'.repeat(MAX_JSON_DEPTH - 1)}`,
    },
    prepare: (input) => {
      const bytes = Buffer.from(input)
      checkJson(bytes)
      return () => findSpan(bytes, ['params', 'c'])
    },
  },
  {
    parser: 'spans of JSON',
    part: 'cuts',
    limit: BODY,
    families: json,
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const value: unknown = parseStrict(bytes)
      const names = isObject(value) ? Object.keys(value) : ['a']
      const paths = names.map((name) => [name])
      return () => withoutMembers(bytes, paths)
    },
  },
  {
    parser: 'canonical form',
    limit: BODY,
    families: values,
    prepare: (input) => {
      const value = parseLossless(input)
      return () => canonicalJson(value)
    },
  },
  {
    parser: 'canonical form',
    part: 'exact numbers',
    limit: BODY,
    families: values,
    run: (input) => runInSlices(losslessSteps(input)),
  },
  {
    parser: 'CEL',
    limit: BODY,
    families: text,
    run: (input) => {
      for (const expression of expressions) {
        expression.test({ args: input })
        expression.test({ args: [...Array(1000).keys()].map(() => input) })
      }
    },
  },
]

const wordRows: readonly Row[] = [
  { parser: 'globs', limit: MIB, families: text, run: (input) => [stars(input), table.find(input)] },
  { parser: 'base64url', limit: BODY, families: text, run: decodeBase64url },
  { parser: 'durations', limit: MIB, families: text, run: parseDuration },
  { parser: 'quantities', limit: MIB, families: text, run: parseQuantity },
  // Longer texts of others are read on a thread; kubeconfigs and files of the command line are their user's.
  { parser: 'YAML', limit: MIB, families: yaml, run: (input) => readManifestAside('Agent', input) },
  { parser: 'YAML', part: 'short', limit: 8 * KIB, families: yaml, run: readYaml },
  { parser: 'SPIFFE IDs', limit: 16 * KIB, families: text, run: parseSessionSpiffeId },
]

export const target = costTarget('cost', [...jsonRows, ...wordRows])
