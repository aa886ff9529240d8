import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '@plat/core'

/** The engine's garbage collector, as with `--expose-gc`. */
type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/**
 * Releases memory that loading and starting used and serving does not need: source texts, discarded parse results, and the young generation that
 * grew meanwhile. About 35 MB of an idle service. Blocks the process once, for up to a tenth of a second.
 */
export function giveBackStartMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  if (isCollect(collect)) collect({ type: 'major', flavor: 'last-resort' })
}

/** Interval at which the load is read, in milliseconds. */
const READ_EVERY_MS = 250
/** Part of such an interval in which an idle process runs at most. */
const IDLE = 0.1

/**
 * Calls `giveBackStartMemory` as soon as the process has been idle for a quarter of a second, so that neither the first requests nor the probes of
 * its readiness wait for it. Call it when the service listens and handles signals.
 */
export function giveBackStartMemoryWhenIdle({
  clock,
  utilization = utilizationSince,
  collect = giveBackStartMemory,
}: {
  readonly clock: Pick<Clock, 'every'>
  /** Returns the part of the time since its last call in which the process ran. */
  readonly utilization?: () => number
  readonly collect?: () => void
}): void {
  utilization()
  const stop = clock.every(READ_EVERY_MS, () => {
    if (utilization() > IDLE) return
    stop()
    collect()
  })
}

let last = performance.eventLoopUtilization()

function utilizationSince(): number {
  const before = last
  last = performance.eventLoopUtilization()
  return performance.eventLoopUtilization(last, before).utilization
}

function isCollect(value: unknown): value is Collect {
  return typeof value === 'function'
}
