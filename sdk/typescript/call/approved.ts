import type { Clock } from '@plat/core'
import { sleep, waitingClock } from '../clock.ts'
import { ApprovalPendingError, type DeniedError } from '../denied/denied.ts'
import { deniedBy } from '../denied/error.ts'

/** Default pause before a call with a pending approval is repeated, in milliseconds. */
const ASK_AGAIN_MS = 5_000

/**
 * Repeats a call until its approval is decided. The gateway answers a waiting tool call before its client's timeout; `approvalWaitSeconds`
 * of {@link Session.mcp} sets when. Repeated calls wait for the same approval and use it once.
 *
 * @throws DeniedError if it is refused, by an error or by its result; other errors of `call`; the signal's reason.
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
    const done = await attempted(call)
    if ('result' in done) return done.result
    const { denied } = done
    if (!(denied instanceof ApprovalPendingError)) throw denied
    onPending?.(denied)
    await sleep(clock, denied.retryAfterMs ?? ASK_AGAIN_MS, signal ?? null)
  }
}

/** The result of a call, or its refusal. Throws other errors. */
async function attempted<T>(
  call: () => Promise<T>,
): Promise<{ readonly result: T } | { readonly denied: DeniedError }> {
  try {
    const result = await call()
    const denied = deniedBy(result)
    return denied === null ? { result } : { denied }
  } catch (error) {
    const denied = deniedBy(error)
    if (denied === null) throw error
    return { denied }
  }
}
