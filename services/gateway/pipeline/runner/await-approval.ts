import type { Clock } from '@plat/core'
import { deny, isDenial } from '../../call/index.ts'
import type { Plane } from '../plane.ts'
import type { Wait } from '../stage.ts'
import type { GovernedCall } from './call.ts'
import { aborted, abortedBy, type CallEnd, refused } from './call-abort.ts'
import { encodeFrames } from './relay.ts'

/** A wait shorter than this is answered as if there had been none: no head is sent, in milliseconds. */
const HEAD_AFTER_MS = 2_000
/** How often a waiting caller hears that its call is alive, in milliseconds. */
const HEARTBEAT_MS = 15_000
/** When a caller that asked for an early answer should come again, in milliseconds. */
const RETRY_AFTER_MS = 5_000

/** `Prefer: wait=10` (RFC 7240, section 4.3), in seconds. */
const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i

/**
 * Waits for a person. The caller's stream is opened after two seconds and kept alive, where the plane can do that; a
 * caller that leaves ends the call, not the approval, which the same session may pick up later.
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

/** What a waiting caller sees. */
class WaitingStream {
  readonly #call: GovernedCall
  readonly #wait: Wait
  readonly #plane: Plane
  readonly #clock: Clock
  #cancel: () => void = ignore
  /** The caller has not read the last beat yet; another would only fill memory. */
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
    // The head of a tunnel is the tunnel itself, so it waits for the decision.
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

  /** The caller asked not to be kept waiting; the approval stays open, and the next call of the session finds it. */
  #replyPending(): void {
    const { approvalId } = this.#wait
    const pending = { retryAfterMs: RETRY_AFTER_MS, data: { approvalId } }
    this.#call.stop('deadline', deny('approval_pending', 'the call waits for an approval', pending))
  }

  /** Nobody catches what a timer throws, so a plane that fails here stops the call. */
  #after(ms: number, job: () => void): void {
    this.#cancel = this.#clock.after(ms, () => {
      try {
        job()
      } catch (error) {
        this.#call.stop('denied', this.#call.request.internalError('keeping the held call alive', error))
      }
    })
  }
}

/** Seconds; null when the caller did not ask. */
function preferredWait(header: string | string[] | undefined): number | null {
  const seconds = PREFER_WAIT.exec(String(header ?? ''))?.[1]
  return seconds === undefined ? null : Number(seconds)
}

function ignore(): void {}
