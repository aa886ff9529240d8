import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isPromise } from '@plat/core'

/** The measured parser. */
export type Work = () => unknown

/** Cost of one run. */
export interface Cost {
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

setFlagsFromString('--expose-gc')
/** Frees what earlier work left, so that no later work is charged for it. */
const collectGarbage: () => void = runInNewContext('gc')

export async function onceCost(run: Work): Promise<Cost> {
  await new Promise(setImmediate)
  collectGarbage()
  const outside = process.memoryUsage().arrayBuffers
  const allocated = getHeapStatistics().total_allocated_bytes
  const turns = new Turns()
  try {
    const result = run()
    if (isPromise(result)) await result
  } catch {
    // Refused, which may cost no more than reading it.
  }
  turns.end()
  const outsideBytes = Math.max(0, process.memoryUsage().arrayBuffers - outside)
  const made = getHeapStatistics().total_allocated_bytes - allocated
  const heapBytes = Math.max(0, made - turns.count * TURN_BYTES)
  return { ms: turns.busyMs, stretchMs: turns.longestMs, heapBytes, outsideBytes }
}

/** The smallest of several measurements, each on its own. */
export async function smallestCost(run: Work, repeats: number): Promise<Cost> {
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
