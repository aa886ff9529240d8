import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Clock } from '@plat/core'
import type { Log } from './log.ts'
import { giveBackStartMemory } from './start-memory.ts'

export interface LoadSource {
  /** The larger of two parts, 0 to 1: of the heap limit, and of the memory that the container may use. */
  memory(): number
  /** Mean delay of the event loop since the last call, in milliseconds. */
  delayMs(): number
  /** Collects garbage, so that the next reading shows what is in use. */
  collect(): void
  close(): void
}

/** How often each signal is read, in milliseconds: memory can be exhausted within a second. */
const MEMORY_EVERY_MS = 250
const DELAY_EVERY_MS = 1000
/** Part of the memory limit from which new work is refused, and below which it is accepted again. */
const MEMORY_ENTER = 0.9
const MEMORY_LEAVE = 0.8
/** Delay of the event loop from which new work is refused, and below which it is accepted again, in milliseconds. */
const DELAY_ENTER_MS = 500
const DELAY_LEAVE_MS = 250
/** Readings in a row that must agree, so that one slow second changes nothing. */
const READINGS = 3
/** The same before memory counts as sufficient again: three seconds. */
const MEMORY_LEAVE_READINGS = 12
/** While memory is short, garbage is collected at most this often, in milliseconds. */
const COLLECT_EVERY_MS = 10_000
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

/** Decides whether the process can accept new work. */
export class Overload implements OverloadState {
  active = false
  readonly #clock: Clock
  readonly #log: Log
  readonly #source: LoadSource
  readonly #stops: readonly (() => void)[]
  readonly #memory = new Signal({
    enter: MEMORY_ENTER,
    leave: MEMORY_LEAVE,
    readings: READINGS,
    leaveReadings: MEMORY_LEAVE_READINGS,
  })
  readonly #delay = new Signal({
    enter: DELAY_ENTER_MS,
    leave: DELAY_LEAVE_MS,
    readings: READINGS,
    leaveReadings: READINGS,
  })
  #collectedAt = Number.NEGATIVE_INFINITY

  constructor({
    clock,
    log,
    load,
  }: { readonly clock: Clock; readonly log: Log; readonly load?: LoadSource | undefined }) {
    this.#clock = clock
    this.#log = log
    this.#source = load ?? new ProcessLoad()
    this.#stops = [
      clock.every(MEMORY_EVERY_MS, () => this.#readMemory()),
      clock.every(DELAY_EVERY_MS, () => this.#readDelay()),
    ]
  }

  close(): void {
    for (const stop of this.#stops) stop()
    this.#source.close()
  }

  /** Garbage that was not collected yet counts as used, and without new work nothing would collect it. */
  #readMemory(): void {
    let memory = this.#source.memory()
    const isShort = memory >= (this.#memory.active ? MEMORY_LEAVE : MEMORY_ENTER)
    const isCollected = isShort && this.#collect()
    if (isCollected) memory = this.#source.memory()
    // Memory in use after a collection will not be freed later: one reading is enough.
    this.#memory.read(memory, isCollected)
    this.#update()
  }

  #readDelay(): void {
    this.#delay.read(this.#source.delayMs(), false)
    this.#update()
  }

  #update(): void {
    const active = this.#memory.active || this.#delay.active
    if (active === this.active) return
    this.active = active
    const load = { memoryPercent: Math.round(this.#memory.last * 100), delayMs: Math.round(this.#delay.last) }
    if (active) this.#log.warn(load, 'overloaded: new work is refused')
    else this.#log.info(load, 'no longer overloaded: new work is accepted')
  }

  /** Returns whether garbage was collected now. */
  #collect(): boolean {
    const now = this.#clock.monotonic()
    if (now - this.#collectedAt < COLLECT_EVERY_MS) return false
    this.#collectedAt = now
    this.#source.collect()
    return true
  }
}

interface Bounds {
  /** Becomes active from here on. */
  readonly enter: number
  /** Ends below. */
  readonly leave: number
  /** Readings in a row that each change needs. */
  readonly readings: number
  readonly leaveReadings: number
}

/** One measured value that is too high or not, with hysteresis. */
class Signal {
  readonly #bounds: Bounds
  active = false
  /** The last reading. */
  last = 0
  /** Readings in a row that contradict `active`. */
  #contrary = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** `isCertain`: the value alone is enough to become active. */
  read(value: number, isCertain: boolean): void {
    this.last = value
    const { enter, leave, readings, leaveReadings } = this.#bounds
    const shouldBeActive = value >= (this.active ? leave : enter)
    this.#contrary = shouldBeActive === this.active ? 0 : this.#contrary + 1
    const needed = this.active ? leaveReadings : isCertain ? 1 : readings
    if (this.#contrary < needed) return
    this.#contrary = 0
    this.active = shouldBeActive
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

  memory(): number {
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    return Math.max(used / limit, process.memoryUsage.rss() / this.#memoryLimit)
  }

  delayMs(): number {
    const delayMs = this.#delay.count === 0 ? 0 : this.#delay.mean / NANOSECONDS_PER_MS
    this.#delay.reset()
    return delayMs
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
