import {
  canonicalJson,
  checkJson,
  decodeBase64url,
  glob,
  parseDuration,
  parseLossless,
  parseQuantity,
  parseSessionSpiffeId,
  parseStrict,
} from '@plat/core'
import { compileExpression } from '@plat/resources'
import type { FuzzTarget } from './target.ts'

/** A parser or decision that reads foreign text. */
interface Row {
  readonly name: string
  /** Characters of its largest input. */
  readonly limit: number
  /** Hostile inputs of about `n` characters. */
  readonly families: Readonly<Record<string, (n: number) => string>>
  /** Throwing is a refusal. */
  run(text: string): unknown
}

/** Growth from n to 4n beyond which work is not linear. */
const MAX_GROWTH = 6
/** Longest unbroken stretch of the event loop, in milliseconds, where `JSON.parse` of the same text is faster than a third of it. */
const MAX_STRETCH_MS = 20
/** Runs below this are too short to compare, in milliseconds. */
const MEASURABLE_MS = 2
/** Of several measurements the shortest counts: the others were disturbed. */
const REPEATS = 5

const json: Row['families'] = {
  digits: (n) => `[${`${'1'.repeat(4000)},`.repeat(n / 4001)}1]`,
  'one long literal': (n) => `1.${'0'.repeat(n)}1`,
  zeros: (n) => `[${`1.${'0'.repeat(4000)}1,`.repeat(n / 4004)}1]`,
  escapes: (n) => `"${'\\u0061'.repeat(n / 6)}"`,
  backslashes: (n) => `"${'\\\\'.repeat(n / 2)}"`,
  nesting: (n) => '['.repeat(n),
  members: (n) => `{${Array.from({ length: n / 12 }, (_, at) => `"m${at}":${at}`).join(',')}}`,
  'escaped names': (n) => `{${Array.from({ length: n / 18 }, (_, at) => `"\\u0061${at}":1`).join(',')}}`,
  'long names': (n) => `{"${'a'.repeat(n / 2)}":1,"${'a'.repeat(n / 2)}b":1}`,
  base64: (n) => `"${'QUJD'.repeat(n / 4)}"`,
}

const text: Row['families'] = {
  digits: (n) => '1'.repeat(n),
  zeros: (n) => `${'0'.repeat(n)}1`,
  prefixes: (n) => 'ab'.repeat(n / 2),
  pairs: (n) => '1h'.repeat(n / 2),
  base64: (n) => 'QUJD'.repeat(n / 4),
  slashes: (n) => `spiffe://${'a/'.repeat(n / 2)}`,
}

const stars = glob('*a*b*ab*c')
const expressions = ['args.all(x, true)', 'args == args', '"b" in args', 'size(args) > 1 && args.contains("ab")']
  .map((when) => compileExpression(when, ['args']))
  .filter((expression) => typeof expression !== 'string')

const MIB = 1024 * 1024

const rows: readonly Row[] = [
  { name: 'strict JSON', limit: MIB, families: json, run: (input) => checkJson(Buffer.from(input)) },
  { name: 'strict JSON, value', limit: MIB, families: json, run: (input) => parseStrict(input) },
  {
    name: 'canonical form',
    limit: 256 * 1024,
    families: json,
    run: (input) => {
      checkJson(Buffer.from(input))
      return canonicalJson(parseLossless(input))
    },
  },
  {
    name: 'CEL',
    limit: MIB,
    families: text,
    run: (input) => {
      for (const expression of expressions) {
        expression.test({ args: input })
        expression.test({ args: [...Array(1000).keys()].map(() => input) })
      }
    },
  },
  { name: 'glob', limit: MIB, families: text, run: stars },
  { name: 'base64url', limit: MIB, families: text, run: decodeBase64url },
  { name: 'duration', limit: 4096, families: text, run: parseDuration },
  { name: 'quantity', limit: 4096, families: text, run: parseQuantity },
  { name: 'SPIFFE ID', limit: 16 * 1024, families: text, run: parseSessionSpiffeId },
]

function shortestMs(run: () => unknown): number {
  let shortest = Number.POSITIVE_INFINITY
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const start = process.cpuUsage()
    try {
      run()
    } catch {
      // Refused, which may cost no more than reading it.
    }
    const { user, system } = process.cpuUsage(start)
    shortest = Math.min(shortest, (user + system) / 1000)
  }
  return shortest
}

/** What is wrong with the cost of one family; null when nothing is. */
function faultOf({ name, limit, run }: Row, family: string, make: (n: number) => string): string | null {
  const [small, large] = [make(Math.floor(limit / 4)), make(limit)]
  const [before, after] = [shortestMs(() => run(small)), shortestMs(() => run(large))]
  const allowed = Math.max(MAX_STRETCH_MS, 3 * shortestMs(() => JSON.parse(large)))
  const at = `${name}, ${family}, ${limit} characters`
  if (after > allowed) return `${at}: an unbroken stretch of ${after.toFixed(1)} ms, allowed are ${allowed.toFixed(1)}`
  if (after > MEASURABLE_MS && after > MAX_GROWTH * Math.max(before, MEASURABLE_MS / MAX_GROWTH))
    return `${at}: grows from ${before.toFixed(1)} to ${after.toFixed(1)} ms with four times the input`
  return null
}

/** Every row with every family: CPU at a quarter of the limit and at the limit. */
export const target: FuzzTarget = {
  name: 'cost',
  async run(seconds) {
    const end = performance.now() + seconds * 1000
    const failures = new Set<string>()
    let cases = 0
    for (const row of rows)
      for (const [family, make] of Object.entries(row.families)) {
        if (performance.now() > end) return { cases, failures: [...failures] }
        // A busy machine disturbs a measurement; it does not disturb three of them.
        let fault = faultOf(row, family, make)
        for (let again = 0; again < 2 && fault !== null; again++) fault = faultOf(row, family, make)
        if (fault !== null) failures.add(fault)
        cases++
        await new Promise(setImmediate)
      }
    return { cases, failures: [...failures] }
  },
}
