import { PoolFullError } from '@plat/state'
import { type Denial, deny } from './denial.ts'

/** After which a caller at its share may call again, in milliseconds. */
const SHARE_RETRY_MS = 1_000

/**
 * Returns the denial of a call whose event could not be appended to a journal: `backlog_full` if only its caller is refused, otherwise
 * `state_unavailable` with `message`, and `onFault` is called.
 */
export function unstored(error: unknown, message: string, onFault: (error: unknown) => void): Denial {
  if (error instanceof PoolFullError) return deny('backlog_full', error.message, { retryAfterMs: SHARE_RETRY_MS })
  onFault(error)
  return deny('state_unavailable', message)
}
