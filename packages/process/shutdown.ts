import { type Clock, systemClock } from '@plat/core'

/** Reason for the shutdown. `parent`: the npm that started the process is gone. */
export type ShutdownReason = 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'parent'

/** Exit status by the convention 128 + signal number, for a second signal. */
const SECOND_SIGNAL_STATUS = { SIGTERM: 143, SIGINT: 130, SIGHUP: 129 } as const

/** npm and the terminal both deliver one Ctrl-C: signals this soon after the first count as the same request. In milliseconds. */
const SAME_REQUEST_MS = 500

/** Parent process, read early, so that a parent that ends before `onShutdown` is detected as well. */
const PARENT = process.ppid

/** Interval at which `process.ppid` is checked, in milliseconds. */
const PARENT_CHECK_MS = 1000

/**
 * Calls `drain` once, at the first SIGTERM, SIGINT or SIGHUP. A second signal ends the process at once, and so does a drain that throws (status 1).
 * When an npm script started the process (`npm_lifecycle_event` is set), the death of the parent drains as well, so that a killed npm leaves nothing
 * behind; a daemon under nohup keeps running.
 * Returns a function that removes the signal handlers.
 */
export function onShutdown(
  drain: (why: ShutdownReason) => Promise<void>,
  { clock = systemClock }: { clock?: Clock } = {},
): () => void {
  let signalledAt: number | null = null
  const begin = (why: ShutdownReason) => {
    signalledAt = clock.monotonic()
    drain(why).catch((error: unknown) => {
      process.stderr.write(`shutdown failed: ${error instanceof Error ? error.stack : String(error)}\n`)
      process.exit(1)
    })
  }
  const onSignal = (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => {
    if (signalledAt === null) begin(signal)
    else if (clock.monotonic() - signalledAt > SAME_REQUEST_MS) process.exit(SECOND_SIGNAL_STATUS[signal])
  }
  const stopWatching = watchParent(clock, () => {
    if (signalledAt === null) begin('parent')
  })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal)
  return () => {
    stopWatching()
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.off(signal, onSignal)
  }
}

function watchParent(clock: Clock, onGone: () => void): () => void {
  if (process.env.npm_lifecycle_event === undefined) return () => {}
  const stop = clock.every(PARENT_CHECK_MS, () => {
    if (process.ppid === PARENT) return
    stop()
    onGone()
  })
  return stop
}
