import type { Clock } from '@plat/core'
import { sleep, waitingClock } from '../clock.ts'
import { ApprovalPendingError } from '../denied/denied.ts'
import { deniedBy } from '../denied/error.ts'

/** Default pause before a call with a pending approval is repeated, in milliseconds. */
const ASK_AGAIN_MS = 5_000

/**
 * Repeats a call until its approval is decided. Use it with `approvalWaitSeconds` of {@link Session.mcp}: the call then fails early with
 * a pending approval, before the client's timeout. Repeated calls wait for the same approval and use it once.
 *
 * @throws DeniedError if it is refused; other errors of `call`; the signal's reason.
 * @example
 * const result = await untilApproved(() => client.callTool({ name: 'delete_note', arguments: { name: 'old' } }))
 */
export async function untilApproved<T>(
  call: () => Promise<T>,
  options: {
    readonly signal?: AbortSignal
    /** Called each time the approval is still pending. */
    readonly onPending?: (pending: ApprovalPendingError) => void
    readonly clock?: Clock
  } = {},
): Promise<T> {
  const { signal, onPending, clock = waitingClock } = options
  for (;;) {
    try {
      return await call()
    } catch (error) {
      const denied = deniedBy(error)
      if (!(denied instanceof ApprovalPendingError)) throw denied ?? error
      onPending?.(denied)
      await sleep(clock, denied.retryAfterMs ?? ASK_AGAIN_MS, signal ?? null)
    }
  }
}
