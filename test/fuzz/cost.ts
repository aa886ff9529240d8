import { setTimeout } from 'node:timers/promises'
import { excessOf, MEASURABLE_MS } from './excess.ts'
import { onceCost, smallestCost, type Work } from './measure.ts'
import type { ParserName } from './parsers.ts'
import type { FuzzTarget } from './target.ts'

/** A parser or decision that reads foreign text. Throwing is a refusal; work that yields returns a promise. */
export type Row = RowBase & ({ run(text: string): unknown } | { prepare(text: string): Work })

interface RowBase {
  readonly parser: ParserName
  /** Name of the row, if a parser has several. */
  readonly part?: string
  /** Characters of its largest input, by the limits of the default configuration. */
  readonly limit: number
  /** Hostile inputs of about `n` characters. */
  readonly families: Families
}

export type Families = Readonly<Record<string, (n: number) => string>>

/** A target with its rows, so that a test can see whether a parser has one. */
export interface CostTarget extends FuzzTarget {
  readonly rows: readonly Row[]
}

/** The families whose full name (parser, part, family) contains `text`, as a target. Null when there is none. */
export function withRows({ name, rows }: CostTarget, text: string): CostTarget | null {
  const chosen: Row[] = []
  for (const row of rows) {
    const families = Object.entries(row.families).filter(([family]) => `${nameOf(row)}, ${family}`.includes(text))
    if (families.length > 0) chosen.push({ ...row, families: Object.fromEntries(families) })
  }
  return chosen.length === 0 ? null : costTarget(name, chosen)
}

export function isCostTarget(target: FuzzTarget): target is CostTarget {
  return 'rows' in target && Array.isArray(target.rows)
}

/** A part of an input that needs more than this is a failure, in milliseconds: the whole would need far more. */
const GIVE_UP_MS = 200
/**
 * A run of so many seconds or more runs all rows, however long they take. A shorter one runs as many as fit into
 * its time.
 */
const COMPLETE_SECONDS = 60
/**
 * Shorter runs check each change on any machine, where a processor that runs other work is up to so many times slower. Growth does not depend
 * on that and is judged alike.
 */
const SHORT_RUN_SLACK = 3
/**
 * How often the attempts measure: of several measurements the smallest counts, the others were disturbed. Before a further attempt the thread
 * rests, so that on a busy machine the threads that compile it and collect its garbage make progress.
 */
const ATTEMPTS = [
  { repeats: 1, restMs: 0 },
  { repeats: 3, restMs: 50 },
  { repeats: 5, restMs: 200 },
  { repeats: 7, restMs: 1000 },
] as const

/** The work over a text. What is prepared is not measured: another row measures what made it. */
function workOf(row: Row, text: string): Work {
  if ('run' in row) return () => row.run(text)
  try {
    return row.prepare(text)
  } catch {
    // Refused by what comes before it.
    return () => {}
  }
}

export function nameOf({ parser, part }: Row): string {
  return part === undefined ? parser : `${parser}, ${part}`
}

/** The problem of the cost of one family, or null. */
async function faultOf(row: Row, family: string, { repeats, slack }: Attempt): Promise<string | null> {
  const { limit, families } = row
  const make = families[family] ?? String
  // From small to large, so that work that is not linear is reported and not waited for.
  for (const part of [64, 16, 4]) {
    const size = Math.floor(limit / part)
    const text = make(size)
    const { ms, stretchMs } = await onceCost(workOf(row, text))
    if (stretchMs > GIVE_UP_MS && stretchMs > 3 * (await onceCost(() => JSON.parse(text))).ms)
      return `${nameOf(row)}, ${family}, ${size} characters: ${ms.toFixed(1)} ms, larger ones were not run`
  }
  const [small, large] = [make(Math.floor(limit / 4)), make(limit)]
  const before = await smallestCost(workOf(row, small), repeats)
  const after = await smallestCost(workOf(row, large), repeats)
  const timeOf = async (work: (text: string) => unknown) =>
    after.ms > MEASURABLE_MS ? (await smallestCost(() => work(large), repeats)).ms : 0
  const yardstick = { parseMs: await timeOf(JSON.parse), copyMs: await timeOf(copyAndScan), slack }
  const fault = excessOf({ before, after }, yardstick)
  return fault === null ? null : `${nameOf(row)}, ${family}, ${limit} characters: ${fault}`
}

interface Attempt {
  /** How often it measures. */
  readonly repeats: number
  /** By how much stretches may exceed what is allowed. */
  readonly slack: number
}

/** Writes a text into new memory and reads it once. */
function copyAndScan(text: string): boolean {
  return Buffer.from(text).includes(NEVER_IN_UTF8)
}

const NEVER_IN_UTF8 = 0xff

/** Measures every row with every family: time, stretch and memory at a quarter of the limit and at the limit. */
export function costTarget(name: string, rows: readonly Row[]): CostTarget {
  return {
    name,
    rows,
    async run(seconds) {
      const failures: string[] = []
      const start = performance.now()
      const slack = seconds < COMPLETE_SECONDS ? SHORT_RUN_SLACK : 1
      let cases = 0
      for (const row of rows) {
        for (const family of Object.keys(row.families)) {
          if (seconds < COMPLETE_SECONDS && performance.now() - start > seconds * 1000) return { cases, failures }
          const fault = await lastingFault(row, family, slack)
          if (fault !== null) failures.push(fault)
          cases++
        }
      }
      return { cases, failures }
    },
  }
}

/** The problem that all attempts find; null if one attempt finds none. */
async function lastingFault(row: Row, family: string, slack: number): Promise<string | null> {
  let fault: string | null = null
  for (const { repeats, restMs } of ATTEMPTS) {
    await setTimeout(restMs)
    fault = await faultOf(row, family, { repeats, slack })
    if (fault === null) break
  }
  return fault
}
