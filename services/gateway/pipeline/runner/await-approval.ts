import type { Clock } from '@plat/core'
import { deny, isDenial } from '../../call/index.ts'
import type { Plane } from '../plane.ts'
import type { Wait } from '../stage.ts'
import type { GovernedCall } from './call.ts'
import { aborted, abortedBy, type CallEnd, refused } from './call-abort.ts'
import { encodeFrames } from './relay.ts'

/** Milliseconds of waiting after which the response stream is opened. */
const HEAD_AFTER_MS = 2_000
/** Milliseconds between heartbeats to a waiting caller. */
const HEARTBEAT_MS = 15_000
/** Retry-After for a caller that limited its wait with `Prefer: wait`, in milliseconds. */
const RETRY_AFTER_MS = 5_000

/** `Prefer: wait=10` (RFC 7240, section 4.3), in seconds. */
const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i

/**
 * Waits for an approval. After two seconds the response stream is opened and kept alive with heartbeats, if the plane supports it.
 * If the caller leaves, the call ends but the approval stays pending: a later call of the same session can use it.
 */
export async function awaitApproval(
  call: GovernedCall,
  wait: Wait,
  plane: Plane,
  clock: Clock,
): Promise<'granted' | CallEnd> {
  const began = clock.monotonic()
  const stream = new WaitingStream(call, wait, plane, clock)
  stream.schedule()
  try {
    const decision: unknown = await call.abort.until(wait.until)
    if (decision === aborted) return abortedBy(call.abort)
    if (decision === 'granted' || isDenial(decision)) return decision === 'granted' ? decision : refused(decision)
    return refused(deny('internal', 'the approval gave no verdict'))
  } catch (error) {
    return refused(call.request.internalError('the approval', error))
  } finally {
    stream.stop()
    call.waitedMs += clock.monotonic() - began
  }
}

/** The response stream of a call that waits for an approval. */
class WaitingStream {
  readonly #call: GovernedCall
  readonly #wait: Wait
  readonly #plane: Plane
  readonly #clock: Clock
  #cancel: () => void = ignore
  /** The caller has not read the last heartbeat, so no further one is written. */
  #full = false

  constructor(call: GovernedCall, wait: Wait, plane: Plane, clock: Clock) {
    this.#call = call
    this.#wait = wait
    this.#plane = plane
    this.#clock = clock
  }

  schedule(): void {
    const seconds = preferredWait(this.#call.wire.headers.prefer)
    if (seconds === null) this.#after(HEAD_AFTER_MS, () => this.#open())
    else this.#after(seconds * 1000, () => this.#replyPending())
  }

  stop(): void {
    this.#cancel()
  }

  #open(): void {
    // The head opens the tunnel, so it cannot be sent before the decision.
    if (this.#call.plan.row.reply === 'tunnel') return
    const leave = () => this.#call.stop('client', null)
    const keepAlive = this.#plane.keepAlive(this.#call, this.#wait.approvalId, leave)
    if (keepAlive === null) return
    if (!this.#call.sink.headSent)
      this.#call.sink.open(keepAlive.head, this.#call.overheadMs(this.#clock.monotonic()), true)
    const sendHeartbeat = () => {
      if (!this.#full) this.#write(encodeFrames(this.#plane, [keepAlive.heartbeat()]))
      this.#after(HEARTBEAT_MS, sendHeartbeat)
    }
    sendHeartbeat()
  }

  #write(bytes: Uint8Array): void {
    this.#call.bytesDown += bytes.byteLength
    const room = this.#call.sink.write(bytes)
    if (room === undefined) return
    this.#full = true
    room.then(() => {
      this.#full = false
    }, ignore)
  }

  /** Ends the call with `approval_pending`: the caller limited its wait. The approval stays pending, and a later call can use it. */
  #replyPending(): void {
    const { approvalId } = this.#wait
    const pending = { retryAfterMs: RETRY_AFTER_MS, data: { approvalId } }
    this.#call.stop('deadline', deny('approval_pending', 'the call waits for an approval', pending))
  }

  /** Runs `job` after `ms`. Aborts the call if `job` throws, because an exception in a timer would end the process. */
  #after(ms: number, job: () => void): void {
    this.#cancel = this.#clock.after(ms, () => {
      try {
        job()
      } catch (error) {
        this.#call.stop('denied', this.#call.request.internalError('keeping the waiting call alive', error))
      }
    })
  }
}

/** Returns the seconds of `Prefer: wait`, or null without that preference. */
function preferredWait(header: string | string[] | undefined): number | null {
  const seconds = PREFER_WAIT.exec(String(header ?? ''))?.[1]
  return seconds === undefined ? null : Number(seconds)
}

function ignore(): void {}
