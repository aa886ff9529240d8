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
/** Retry-After of a call that is refused because its approval is pending, in milliseconds. */
const RETRY_AFTER_MS = 5_000

/** `Prefer: wait=10` (RFC 7240, section 4.3), in seconds. */
const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i

/**
 * Waits for an approval. A call whose caller limits its wait (`Prefer: wait`, or the plane's `pause`) is then refused with
 * `approval_pending`. After two seconds the response stream of any other call is opened and kept alive with heartbeats, if the plane
 * supports it. If the caller leaves, the call ends. In both cases the approval stays pending: a later call of the same session can use it.
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

class WaitingStream {
  readonly #call: GovernedCall
  readonly #wait: Wait
  readonly #plane: Plane
  readonly #clock: Clock
  #cancel: () => void = ignore
  #cancelLimit: () => void = ignore
  /** The caller has not read the last heartbeat, so no further one is written. */
  #full = false

  constructor(call: GovernedCall, wait: Wait, plane: Plane, clock: Clock) {
    this.#call = call
    this.#wait = wait
    this.#plane = plane
    this.#clock = clock
  }

  schedule(): void {
    const call = this.#call
    const patienceMs = this.#plane.pause?.(call, () => call.stop('client', null)) ?? null
    const preferredMs = preferredWaitMs(call.wire.headers.prefer)
    const limitMs = preferredMs ?? patienceMs
    if (limitMs !== null) this.#cancelLimit = this.#after(limitMs, () => this.#replyPending())
    // A short wait needs no heartbeats, and without them the refusal has its own head.
    const isShort = preferredMs !== null || (limitMs !== null && limitMs <= HEARTBEAT_MS)
    if (!isShort) this.#cancel = this.#after(HEAD_AFTER_MS, () => this.#open())
  }

  stop(): void {
    this.#cancel()
    this.#cancelLimit()
  }

  #open(): void {
    // The head opens the tunnel, so it cannot be sent before the decision.
    if (this.#call.plan.row.reply === 'tunnel') return
    const keepAlive = this.#plane.keepAlive(this.#call, this.#wait.approvalId)
    if (keepAlive === null) return
    if (!this.#call.sink.headSent)
      this.#call.sink.open(keepAlive.head, this.#call.overheadMs(this.#clock.monotonic()), true)
    const sendHeartbeat = () => {
      if (!this.#full) this.#write(encodeFrames(this.#plane, [keepAlive.heartbeat()]))
      this.#cancel = this.#after(HEARTBEAT_MS, sendHeartbeat)
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

  /** Ends the call with `approval_pending`. The approval stays pending, and a later call can use it. */
  #replyPending(): void {
    const { approvalId } = this.#wait
    const { action, policy, rule } = this.#call.facts.decision
    const requiring = action === 'require_approval' ? { policy, rule } : {}
    const pending = { ...requiring, retryAfterMs: RETRY_AFTER_MS, data: { approvalId } }
    const reason = `waiting for approval ${approvalId}; repeat this call to learn the outcome`
    this.#call.stop('deadline', deny('approval_pending', reason, pending))
  }

  /**
   * Runs `job` after `ms`; returns a function that cancels it. Aborts the call if `job` throws, because an exception in a timer would end
   * the process.
   */
  #after(ms: number, job: () => void): () => void {
    return this.#clock.after(ms, () => {
      try {
        job()
      } catch (error) {
        this.#call.stop('denied', this.#call.request.internalError('keeping the waiting call alive', error))
      }
    })
  }
}

/** Returns the milliseconds of `Prefer: wait`, or null without that preference. */
function preferredWaitMs(header: string | string[] | undefined): number | null {
  const seconds = PREFER_WAIT.exec(String(header ?? ''))?.[1]
  return seconds === undefined ? null : Number(seconds) * 1000
}

function ignore(): void {}
