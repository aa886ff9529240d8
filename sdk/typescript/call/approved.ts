import type { Clock } from '@plat/core'
import { sleep, waitingClock } from '../clock.ts'
import { ApprovalPendingError } from '../denied/denied.ts'
import { deniedBy } from '../denied/error.ts'

/** When a pending approval is asked for again where nobody said, in milliseconds. */
const ASK_AGAIN_MS = 5_000

/**
 * Makes a call again until a person has decided it. Use it with `approvalWaitSeconds` of {@link Session.mcp}: the call then answers early that
 * it waits, so that no time-out of the client ends it. The same call, made again, waits for the same approval and uses it once.
 *
 * @throws DeniedError when it is refused, whatever `call` throws otherwise, and the signal's reason.
 * @example
 * const result = await untilApproved(() => client.callTool({ name: 'delete_note', arguments: { name: 'old' } }))
 */
export async function untilApproved<T>(
  call: () => Promise<T>,
  options: {
    readonly signal?: AbortSignal
    /** Told each time that the call still waits. */
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
