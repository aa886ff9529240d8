import type { FuzzTarget } from './target.ts'

/** A parser or decision that reads foreign text. */
export interface Row {
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
/** A part of an input that needs more than this is a failure, in milliseconds: the whole would need far more. */
const GIVE_UP_MS = 200
/** A run of so many seconds or more runs all rows, however long they take: the work is the same each time. */
const COMPLETE_SECONDS = 10
/** Runs below this are too short to compare, in milliseconds. */
const MEASURABLE_MS = 2
/** How often the attempts measure: of several measurements the shortest counts, the others were disturbed. */
const ATTEMPTS = [1, 5, 5, 5] as const

/** Hostile JSON texts. */
export const json: Row['families'] = {
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

/** Hostile texts of no particular form. */
export const text: Row['families'] = {
  digits: (n) => '1'.repeat(n),
  zeros: (n) => `${'0'.repeat(n)}1`,
  prefixes: (n) => 'ab'.repeat(n / 2),
  pairs: (n) => '1h'.repeat(n / 2),
  base64: (n) => 'QUJD'.repeat(n / 4),
  slashes: (n) => `spiffe://${'a/'.repeat(n / 2)}`,
}

/** CPU of one run. */
function onceMs(run: () => unknown): number {
  const start = process.cpuUsage()
  try {
    run()
  } catch {
    // Refused, which may cost no more than reading it.
  }
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

function shortestMs(run: () => unknown, repeats: number): number {
  let shortest = Number.POSITIVE_INFINITY
  for (let repeat = 0; repeat < repeats; repeat++) shortest = Math.min(shortest, onceMs(run))
  return shortest
}

/** What is wrong with the cost of one family; null when nothing is. */
function faultOf({ name, limit, families, run }: Row, family: string, repeats: number): string | null {
  const make = families[family] ?? String
  // From small to large, so that work that is not linear is reported and not waited for.
  for (const part of [64, 16, 4]) {
    const size = Math.floor(limit / part)
    const ms = onceMs(() => run(make(size)))
    if (ms > GIVE_UP_MS) return `${name}, ${family}, ${size} characters: ${ms.toFixed(1)} ms, larger ones were not run`
  }
  const [small, large] = [make(Math.floor(limit / 4)), make(limit)]
  const [before, after] = [shortestMs(() => run(small), repeats), shortestMs(() => run(large), repeats)]
  const allowed =
    after <= MAX_STRETCH_MS ? after : Math.max(MAX_STRETCH_MS, 3 * shortestMs(() => JSON.parse(large), repeats))
  const at = `${name}, ${family}, ${limit} characters`
  if (after > allowed) return `${at}: an unbroken stretch of ${after.toFixed(1)} ms, allowed are ${allowed.toFixed(1)}`
  if (after > MEASURABLE_MS && after > MAX_GROWTH * Math.max(before, MEASURABLE_MS / MAX_GROWTH))
    return `${at}: grows from ${before.toFixed(1)} to ${after.toFixed(1)} ms with four times the input`
  return null
}

/** Measures every row with every family: CPU at a quarter of the limit and at the limit. */
export function costTarget(name: string, rows: readonly Row[]): FuzzTarget {
  return {
    name,
    async run(seconds) {
      const failures: string[] = []
      const start = process.cpuUsage()
      let cases = 0
      for (const row of rows)
        for (const family of Object.keys(row.families)) {
          const { user, system } = process.cpuUsage(start)
          if (seconds < COMPLETE_SECONDS && user + system > seconds * 1_000_000) return { cases, failures }
          const fault = lastingFault(row, family)
          if (fault !== null) failures.push(fault)
          cases++
          await new Promise(setImmediate)
        }
      return { cases, failures }
    },
  }
}

/** What every attempt finds wrong; null when one of them finds nothing. */
function lastingFault(row: Row, family: string): string | null {
  let fault: string | null = null
  for (const repeats of ATTEMPTS) {
    fault = faultOf(row, family, repeats)
    if (fault === null) break
  }
  return fault
}
