import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Clock } from '@plat/core'
import type { Log } from './log.ts'
import { giveBackStartMemory } from './start-memory.ts'

/** Load of the process at one moment. */
export interface LoadReading {
  /** The larger of two parts, 0 to 1: of the heap limit, and of the memory that the container may use. */
  readonly memory: number
  /** Mean delay of the event loop since the last reading, in milliseconds. */
  readonly delayMs: number
}

/** Reads the load of the process. */
export interface LoadSource {
  read(): LoadReading
  /** Collects garbage, so that the next reading shows what is in use. */
  collect(): void
  close(): void
}

/** How often the load is read, in milliseconds. */
const READ_EVERY_MS = 1000
/** Part of the memory limit from which new work is refused, and below which it is accepted again. */
const MEMORY_ENTER = 0.9
const MEMORY_LEAVE = 0.8
/** Delay of the event loop from which new work is refused, and below which it is accepted again, in milliseconds. */
const DELAY_ENTER_MS = 500
const DELAY_LEAVE_MS = 250
/** Readings in a row that must agree, so that one slow second changes nothing. */
const READINGS = 3
/** While memory is short, garbage is collected at most this often, in milliseconds. */
const COLLECT_EVERY_MS = 10_000
/** Resolution of the delay, in milliseconds. */
const DELAY_RESOLUTION_MS = 50
const NANOSECONDS_PER_MS = 1e6

/** When callers should try again after a refusal, in milliseconds. */
export const OVERLOAD_RETRY_MS = 2000

/** Whether a process accepts new work. */
export interface OverloadState {
  /** New work must be refused. A field, because every request reads it. */
  readonly active: boolean
  close(): void
}

/** Decides once a second whether the process can accept new work. */
export class Overload implements OverloadState {
  active = false
  readonly #clock: Clock
  readonly #log: Log
  readonly #source: LoadSource
  readonly #stop: () => void
  /** Readings in a row that contradict `active`. */
  #contrary = 0
  #collectedAt = Number.NEGATIVE_INFINITY

  constructor({
    clock,
    log,
    load,
  }: { readonly clock: Clock; readonly log: Log; readonly load?: LoadSource | undefined }) {
    this.#clock = clock
    this.#log = log
    this.#source = load ?? new ProcessLoad()
    this.#stop = clock.every(READ_EVERY_MS, () => this.#update(this.#source.read()))
  }

  close(): void {
    this.#stop()
    this.#source.close()
  }

  #update(load: LoadReading): void {
    if (load.memory >= MEMORY_ENTER) this.#collect()
    const shouldBeActive = this.active
      ? load.memory >= MEMORY_LEAVE || load.delayMs >= DELAY_LEAVE_MS
      : load.memory >= MEMORY_ENTER || load.delayMs >= DELAY_ENTER_MS
    this.#contrary = shouldBeActive === this.active ? 0 : this.#contrary + 1
    if (this.#contrary < READINGS) return
    this.#contrary = 0
    this.active = shouldBeActive
    const shown = { memoryPercent: Math.round(load.memory * 100), delayMs: Math.round(load.delayMs) }
    if (shouldBeActive) this.#log.warn(shown, 'overloaded: new work is refused')
    else this.#log.info(shown, 'no longer overloaded: new work is accepted')
  }

  /** Garbage that nobody has collected yet counts as used, and without new work nothing would collect it. */
  #collect(): void {
    const now = this.#clock.monotonic()
    if (now - this.#collectedAt < COLLECT_EVERY_MS) return
    this.#collectedAt = now
    this.#source.collect()
  }
}

/** The load of this process: its heap limit (`--max-old-space-size` and the like), and the limit of its container. */
class ProcessLoad implements LoadSource {
  readonly #delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  /** Bytes; infinite without a limit. */
  readonly #memoryLimit = memoryLimitOf(process.constrainedMemory())

  constructor() {
    this.#delay.enable()
  }

  read(): LoadReading {
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    const memory = Math.max(used / limit, process.memoryUsage.rss() / this.#memoryLimit)
    const delayMs = this.#delay.count === 0 ? 0 : this.#delay.mean / NANOSECONDS_PER_MS
    this.#delay.reset()
    return { memory, delayMs }
  }

  collect(): void {
    giveBackStartMemory()
  }

  close(): void {
    this.#delay.disable()
  }
}

/** Without a control group Node reports 0, and without a limit in it a number beyond every machine. */
function memoryLimitOf(constrained: number): number {
  return constrained > 0 && constrained < Number.MAX_SAFE_INTEGER ? constrained : Number.POSITIVE_INFINITY
}
