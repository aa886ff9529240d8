import { setTimeout } from 'node:timers/promises'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
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
/**
 * Shorter runs check each change on any machine, where a processor that runs other work is up to so many times slower. Growth does not depend
 * on that and is judged alike.
 */
const SHORT_RUN_SLACK = 3
/** Runs below this are too short to compare, in milliseconds. */
const MEASURABLE_MS = 8
/** Allocations below this are too small to compare, in bytes. */
const MEASURABLE_BYTES = 1024 * 1024
/** So many copies of its input any work may make. */
const COPIES = 3
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

/** Cost of one run. */
interface Cost {
  /** Time of the thread, in milliseconds; waiting for other threads does not count. */
  readonly ms: number
  /** The longest stretch in which no other callback could run, in milliseconds. */
  readonly stretchMs: number
  /** Bytes that were allocated on the heap, freed ones included. */
  readonly heapBytes: number
  /** Bytes outside of the heap that the work left, fewer if earlier ones were freed meanwhile. */
  readonly outsideBytes: number
}

/** CPU time of the thread, in milliseconds. */
function cpuMs(): number {
  // Linux counts a running thread's time when the scheduler runs, up to 4 ms late, but also when the time of the process is read.
  process.cpuUsage()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Resolution of the CPU clock, in milliseconds: some systems count in ticks. */
const CPU_CLOCK_MS = resolutionOf(cpuMs)

/** The median of 25 steps of a clock. */
function resolutionOf(clock: () => number): number {
  const steps: number[] = []
  for (let last = clock(); steps.length < 25; ) {
    const next = clock()
    if (next > last) steps.push(next - last)
    last = next
  }
  return steps.sort((one, other) => one - other)[12] ?? 0
}

/** Milliseconds since its creation: CPU time of the thread, so that preemption does not count. */
class Stopwatch {
  readonly #wall = performance.now()
  readonly #cpu = cpuMs()

  get ms(): number {
    return Math.min(performance.now() - this.#wall, cpuMs() - this.#cpu + CPU_CLOCK_MS)
  }
}

/** A turn of the event loop that is no longer only looked at the clock, in milliseconds. */
const IDLE_TURN_MS = 0.05

/** Measures each turn of the event loop. */
class Turns {
  /** The time of all turns that did something, in milliseconds. */
  busyMs = 0
  /** The longest turn, in milliseconds. */
  longestMs = 0
  /** How many turns there were. */
  count = 0
  #turn = new Stopwatch()
  #isRunning = true

  constructor() {
    this.#watch()
  }

  end(): void {
    this.#isRunning = false
    this.#add()
  }

  #watch(): void {
    setImmediate(() => {
      if (!this.#isRunning) return
      this.#add()
      this.#turn = new Stopwatch()
      this.#watch()
    })
  }

  #add(): void {
    const { ms } = this.#turn
    this.count++
    if (ms > IDLE_TURN_MS) this.busyMs += ms
    this.longestMs = Math.max(this.longestMs, ms)
  }
}

/** Bytes that watching one turn allocates. */
const TURN_BYTES = await bytesOfTurns(2000)

async function bytesOfTurns(count: number): Promise<number> {
  const allocated = getHeapStatistics().total_allocated_bytes
  const turns = new Turns()
  while (turns.count < count) await new Promise(setImmediate)
  turns.end()
  return (getHeapStatistics().total_allocated_bytes - allocated) / turns.count
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

setFlagsFromString('--expose-gc')
/** Frees what earlier work left, so that no later work is charged for it. */
const collectGarbage: () => void = runInNewContext('gc')

async function onceCost(run: Work): Promise<Cost> {
  await new Promise(setImmediate)
  collectGarbage()
  const outside = process.memoryUsage().arrayBuffers
  const allocated = getHeapStatistics().total_allocated_bytes
  const turns = new Turns()
  try {
    const result = run()
    if (result instanceof Promise) await result
  } catch {
    // Refused, which may cost no more than reading it.
  }
  turns.end()
  const outsideBytes = Math.max(0, process.memoryUsage().arrayBuffers - outside)
  const made = getHeapStatistics().total_allocated_bytes - allocated
  const heapBytes = Math.max(0, made - turns.count * TURN_BYTES)
  return { ms: turns.busyMs, stretchMs: turns.longestMs, heapBytes, outsideBytes }
}

/** The cost at a quarter of the limit and at the limit. */
interface Costs {
  readonly before: Cost
  readonly after: Cost
}

/** The smallest of several measurements, each on its own. */
async function smallestCost(run: Work, repeats: number): Promise<Cost> {
  let cost = UNMEASURED
  for (let repeat = 0; repeat < repeats; repeat++) cost = smaller(cost, await onceCost(run))
  return cost
}

const UNMEASURED: Cost = {
  ms: Number.POSITIVE_INFINITY,
  stretchMs: Number.POSITIVE_INFINITY,
  heapBytes: Number.POSITIVE_INFINITY,
  outsideBytes: 0,
}

function smaller(one: Cost, other: Cost): Cost {
  return {
    ms: Math.min(one.ms, other.ms),
    stretchMs: Math.min(one.stretchMs, other.stretchMs),
    heapBytes: Math.min(one.heapBytes, other.heapBytes),
    outsideBytes: Math.max(one.outsideBytes, other.outsideBytes),
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
  const fault = await excessOf({ before, after }, { text: large, repeats, slack })
  return fault === null ? null : `${nameOf(row)}, ${family}, ${limit} characters: ${fault}`
}

interface Attempt {
  /** How often it measures. */
  readonly repeats: number
  /** By how much stretches may exceed what is allowed. */
  readonly slack: number
}

/** Other work over the text at the limit, with which costs are compared. */
interface Comparison extends Attempt {
  readonly text: string
}

async function excessOf({ before, after }: Costs, { text, repeats, slack }: Comparison): Promise<string | null> {
  const timeOf = async (work: (text: string) => unknown) => (await smallestCost(() => work(text), repeats)).ms
  const parsesMs = after.ms > MEASURABLE_MS ? 3 * (await timeOf(JSON.parse)) : 0
  const allowedMs = slack * Math.max(MAX_STRETCH_MS, parsesMs)
  if (after.stretchMs > allowedMs)
    return `an unbroken stretch of ${after.stretchMs.toFixed(1)} ms, allowed are ${allowedMs.toFixed(1)}`
  // Not even JSON.parse is linear in all it makes: its objects are collected as well.
  if (
    grows(before.ms, after.ms, Math.max(MEASURABLE_MS, parsesMs)) &&
    growsBeyondCopies(before.ms, after.ms, await timeOf(copyAndScan))
  )
    return `grows from ${before.ms.toFixed(1)} to ${after.ms.toFixed(1)} ms with four times the input`
  const bytes = (cost: Cost) => Math.round(cost.heapBytes + cost.outsideBytes)
  if (grows(bytes(before), bytes(after), MEASURABLE_BYTES))
    return `allocates ${bytes(before)} bytes and ${bytes(after)} for four times the input`
  return null
}

/** Writes a text into new memory and reads it once. */
function copyAndScan(text: string): boolean {
  return Buffer.from(text).includes(NEVER_IN_UTF8)
}

const NEVER_IN_UTF8 = 0xff

/**
 * Whether work grows beyond what a few copies of its input cost: page faults of new memory, and large texts that do not fit into the caches of the
 * processor, make a machine look as if it were not linear.
 */
function growsBeyondCopies(before: number, after: number, copyMs: number): boolean {
  return grows(before, after - COPIES * copyMs, 0)
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
