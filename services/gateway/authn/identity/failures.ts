import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { AuthReason } from '@plat/tokens'

/** At most one line per reason in this time, in milliseconds, so that a flood of bad tokens cannot fill the disk. */
const LINE_EVERY_MS = 1000

/** Logs failed authentications, sampled. Writes nothing of the token or its claims. */
export interface FailureLog {
  note(reason: AuthReason, remote: string): void
}

export function createFailureLog(clock: Clock, log: Log): FailureLog {
  const seen = new Map<AuthReason, { at: number; suppressed: number }>()
  return {
    note(reason, remote) {
      const now = clock.monotonic()
      const last = seen.get(reason)
      if (last !== undefined && now - last.at < LINE_EVERY_MS) {
        last.suppressed++
        return
      }
      seen.set(reason, { at: now, suppressed: 0 })
      log.warn({ reason, remote, suppressed: last?.suppressed ?? 0 }, 'authentication failed')
    },
  }
}
