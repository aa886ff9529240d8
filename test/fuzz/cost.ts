import { getHeapStatistics } from 'node:v8'
import type { ParserName } from './parsers.ts'
import type { FuzzTarget } from './target.ts'

/** A parser or decision that reads foreign text. Throwing is a refusal; work that yields returns a promise. */
export type Row = RowBase & ({ run(text: string): unknown } | { prepare(text: string): Work })

/** The measured parser. */
export type Work = () => unknown

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

/** Growth from n to 4n beyond which work or memory is not linear. */
const MAX_GROWTH = 6
/** Longest unbroken stretch of the event loop, in milliseconds, where `JSON.parse` of the same text is faster than a third of it. */
const MAX_STRETCH_MS = 20
/** A part of an input that needs more than this is a failure, in milliseconds: the whole would need far more. */
const GIVE_UP_MS = 200
/**
 * A run of so many seconds or more runs all rows, however long they take. A shorter one runs as many as fit into
 * its time.
 */
const COMPLETE_SECONDS = 60
/** Short runs share their cores with other work: stretches may be so many times longer there. */
const SHORT_SLACK = 4
/** Runs below this are too short to compare, in milliseconds. */
const MEASURABLE_MS = 8
/** Allocations below this are too small to compare, in bytes. */
const MEASURABLE_BYTES = 1024 * 1024
/** How often the attempts measure: of several measurements the smallest counts, the others were disturbed. */
const ATTEMPTS = [1, 3, 5, 7] as const

/** Cost of one run. */
interface Cost {
  /** Time of the thread, in milliseconds. */
  readonly ms: number
  /** The longest stretch in which no other callback could run, in milliseconds. */
  readonly stretchMs: number
  /** Bytes that were allocated: on the heap, freed ones included, and what was left outside of it. */
  readonly bytes: number
}

/** Milliseconds since `start`: CPU time if the thread was preempted, within the resolution of the CPU clock. */
class Stopwatch {
  readonly #wall = performance.now()
  readonly #cpu = process.threadCpuUsage()

  get ms(): number {
    const wall = performance.now() - this.#wall
    const { user, system } = process.threadCpuUsage(this.#cpu)
    const cpu = (user + system) / 1000
    return wall > CPU_CLOCK_MS ? Math.min(wall, cpu + CPU_CLOCK_MS) : wall
  }
}

/** Resolution of the CPU clock, in milliseconds: some systems count in ticks. */
const CPU_CLOCK_MS = 4

/** Looks in each turn of the event loop how long the last one was. */
class Stretches {
  #longest = 0
  #turn = new Stopwatch()
  #isRunning = true

  constructor() {
    this.#watch()
  }

  /** The longest stretch in milliseconds. */
  end(): number {
    this.#isRunning = false
    return Math.max(this.#longest, this.#turn.ms)
  }

  #watch(): void {
    setImmediate(() => {
      if (!this.#isRunning) return
      this.#longest = Math.max(this.#longest, this.#turn.ms)
      this.#turn = new Stopwatch()
      this.#watch()
    })
  }
}

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

async function onceCost(run: Work): Promise<Cost> {
  await new Promise(setImmediate)
  const outside = process.memoryUsage().arrayBuffers
  const allocated = getHeapStatistics().total_allocated_bytes
  const stretches = new Stretches()
  const whole = new Stopwatch()
  try {
    const result = run()
    if (result instanceof Promise) await result
  } catch {
    // Refused, which may cost no more than reading it.
  }
  const { ms } = whole
  const stretchMs = stretches.end()
  const left = Math.max(0, process.memoryUsage().arrayBuffers - outside)
  return { ms, stretchMs, bytes: getHeapStatistics().total_allocated_bytes - allocated + left }
}

/** The smallest of several measurements, each on its own. */
async function smallestCost(run: Work, repeats: number): Promise<Cost> {
  let smallest: Cost = {
    ms: Number.POSITIVE_INFINITY,
    stretchMs: Number.POSITIVE_INFINITY,
    bytes: Number.POSITIVE_INFINITY,
  }
  for (let repeat = 0; repeat < repeats; repeat++) {
    const { ms, stretchMs, bytes } = await onceCost(run)
    smallest = {
      ms: Math.min(smallest.ms, ms),
      stretchMs: Math.min(smallest.stretchMs, stretchMs),
      bytes: Math.min(smallest.bytes, bytes),
    }
  }
  return smallest
}

export function nameOf({ parser, part }: Row): string {
  return part === undefined ? parser : `${parser}, ${part}`
}

/** The problem of the cost of one family, or null. */
async function faultOf(row: Row, family: string, repeats: number, slack: number): Promise<string | null> {
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
  const parseMs = after.ms > MEASURABLE_MS ? (await smallestCost(() => JSON.parse(large), repeats)).ms : 0
  const fault = excessOf(before, after, 3 * parseMs, slack)
  return fault === null ? null : `${nameOf(row)}, ${family}, ${limit} characters: ${fault}`
}

function excessOf(before: Cost, after: Cost, parsesMs: number, slack: number): string | null {
  const allowedMs = slack * Math.max(MAX_STRETCH_MS, parsesMs)
  if (after.stretchMs > allowedMs)
    return `an unbroken stretch of ${after.stretchMs.toFixed(1)} ms, allowed are ${allowedMs.toFixed(1)}`
  // Not even JSON.parse is linear in all it makes: its objects are collected as well.
  if (grows(before.ms, after.ms, Math.max(MEASURABLE_MS, parsesMs)))
    return `grows from ${before.ms.toFixed(1)} to ${after.ms.toFixed(1)} ms with four times the input`
  if (grows(before.bytes, after.bytes, MEASURABLE_BYTES))
    return `allocates ${before.bytes} bytes and ${after.bytes} for four times the input`
  return null
}

function grows(before: number, after: number, measurable: number): boolean {
  return after > measurable && after > MAX_GROWTH * before
}

/** Measures every row with every family: time, stretch and memory at a quarter of the limit and at the limit. */
export function costTarget(name: string, rows: readonly Row[]): CostTarget {
  return {
    name,
    rows,
    async run(seconds) {
      const failures: string[] = []
      const start = performance.now()
      let cases = 0
      for (const row of rows) {
        for (const family of Object.keys(row.families)) {
          if (seconds < COMPLETE_SECONDS && performance.now() - start > seconds * 1000) return { cases, failures }
          const fault = await lastingFault(row, family, seconds < COMPLETE_SECONDS ? SHORT_SLACK : 1)
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
  for (const repeats of ATTEMPTS) {
    fault = await faultOf(row, family, repeats, slack)
    if (fault === null) break
  }
  return fault
}
