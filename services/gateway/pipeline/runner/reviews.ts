import { type Clock, isPromise } from '@plat/core'
import { type Denial, deny, type Ending, type Frame, FrameRun, isDenial } from '../../call/index.ts'
import type { RunningReview, StepName } from '../stage.ts'
import { type GovernedCall, nothingUsed, type Tally } from './call.ts'
import { aborted } from './call-abort.ts'

/** Time limit of one review for one frame, in milliseconds. */
const REVIEW_DEADLINE_MS = 30_000

const NO_FRAMES: readonly Frame[] = []

/** Frames that passed the reviews, a denial, or `aborted` when the call was aborted while a review was running. */
export type ReviewResult = readonly Frame[] | Denial | typeof aborted

interface OpenedReview {
  readonly name: StepName
  readonly review: RunningReview
}

/** The reviews of one reply, in order. Each is opened once and ended once, whatever happens. If a review throws, the reply is denied. */
export class ReviewChain {
  readonly #call: GovernedCall
  readonly #clock: Clock
  readonly #running: OpenedReview[] = []
  #ended = 0
  #allSkim = true

  constructor(call: GovernedCall, clock: Clock) {
    this.#call = call
    this.#clock = clock
  }

  open(): Denial | null {
    for (const opener of this.#call.plan.reviews) {
      try {
        const review = opener.open(this.#call)
        if (review === null) continue
        this.#running.push({ name: opener.name, review })
        if (review.skim === undefined) this.#allSkim = false
        if (review.marking !== undefined) this.#call.markings = [...this.#call.markings, review.marking]
      } catch (error) {
        return this.#call.request.internalError(`the review ${opener.name}`, error)
      }
    }
    return null
  }

  /** Runs `beforeTunnel` of each review. Resolves to the first denial, or null when the tunnel may open. */
  async beforeTunnel(): Promise<Denial | null> {
    for (const { name, review } of this.#running) {
      try {
        const denial = (await review.beforeTunnel?.()) ?? null
        if (denial !== null) return denial
      } catch (error) {
        return this.#call.request.internalError(`the review ${name}`, error)
      }
    }
    return null
  }

  /** Passes a batch through all reviews. Returns the batch itself when there are none. */
  pass(frames: readonly Frame[]): ReviewResult | Promise<ReviewResult> {
    if (this.#running.length === 0) return frames
    if (this.#allSkim && frames.length === 1 && frames[0] instanceof FrameRun) return this.#skim(frames[0], frames)
    return this.#through(0, !this.#allSkim && frames.some(isRun) ? frames.flatMap(splitRun) : frames)
  }

  /** Lets all reviews count a run that passes unchanged. */
  #skim(run: FrameRun, passed: readonly Frame[]): ReviewResult {
    for (const { name, review } of this.#running) {
      try {
        review.skim?.(run)
      } catch (error) {
        return this.#call.request.internalError(`the review ${name}`, error)
      }
    }
    return passed
  }

  /** Ends each review, and passes the frames that it held back through the reviews after it. */
  finish(): ReviewResult | Promise<ReviewResult> {
    return this.#running.length === 0 ? NO_FRAMES : this.#finishFrom(NO_FRAMES)
  }

  #finishFrom(out: readonly Frame[]): ReviewResult | Promise<ReviewResult> {
    const opened = this.#running[this.#ended++]
    if (opened === undefined) return out
    const first = this.#callReview(opened, null)
    const passed = then(first, (frames) => this.#through(this.#ended, frames))
    return then(passed, (frames) => this.#finishFrom(out.length === 0 ? frames : [...out, ...frames]))
  }

  /** Ends the reviews that have not ended yet. Frames that they held back are not sent. */
  abandon(how: Ending): void {
    while (this.#ended < this.#running.length) {
      try {
        const last = this.#running[this.#ended++]?.review.end(how)
        if (isPromise(last)) last.catch((error) => this.#call.request.internalError('the end of a review', error))
      } catch (error) {
        // The response was incomplete already, so a failure here changes nothing for the caller.
        this.#call.request.internalError('the end of a review', error)
      }
    }
  }

  /** Returns the tally of the last review that has one. */
  tally(): Tally {
    let tally = nothingUsed
    for (const { name, review } of this.#running) {
      try {
        tally = review.tally?.() ?? tally
      } catch (error) {
        // Without a tally the meter settles as for an upstream that reported nothing.
        this.#call.request.internalError(`the tally of ${name}`, error)
      }
    }
    return tally
  }

  /** Passes frames through the reviews from index `from` on. */
  #through(from: number, frames: readonly Frame[]): ReviewResult | Promise<ReviewResult> {
    const opened = this.#running[from]
    if (opened === undefined || frames.length === 0) return frames
    return then(this.#each(opened, frames, 0, []), (passed) => this.#through(from + 1, passed))
  }

  /** Passes frames one by one through one review. Returns a promise only if the review does. */
  #each(
    opened: OpenedReview,
    frames: readonly Frame[],
    from: number,
    out: Frame[],
  ): ReviewResult | Promise<ReviewResult> {
    for (let at = from; at < frames.length; at++) {
      const frame = frames[at]
      if (frame === undefined) break
      const passed = this.#callReview(opened, frame)
      if (isPromise(passed))
        return passed.then((late) => (isFrames(late) ? this.#each(opened, frames, at + 1, [...out, ...late]) : late))
      if (!isFrames(passed)) return passed
      for (const one of passed) out.push(one)
    }
    return out
  }

  /** Passes a frame to a review, or ends the review when `frame` is null. */
  #callReview({ name, review }: OpenedReview, frame: Frame | null): ReviewResult | Promise<ReviewResult> {
    try {
      if (frame instanceof FrameRun && review.skim !== undefined) {
        review.skim(frame)
        return [frame]
      }
      const answer: unknown = frame === null ? review.end('complete') : review.frame(frame)
      if (!isPromise(answer)) return this.#checked(name, answer)
      return this.#inTime(name, answer).then(
        (late) => this.#checked(name, late),
        (error) => this.#call.request.internalError(`the review ${name}`, error),
      )
    } catch (error) {
      return this.#call.request.internalError(`the review ${name}`, error)
    }
  }

  #checked(name: StepName, answer: unknown): ReviewResult {
    if (isFrames(answer) || isDenial(answer) || answer === aborted) return answer
    return deny('internal', `the review ${name} gave no verdict`)
  }

  #inTime(name: StepName, answer: Promise<unknown>): Promise<unknown> {
    const reason = `the review ${name} gave no verdict in time`
    return this.#call.within(answer, {
      monotonic: this.#clock.monotonic(),
      ms: REVIEW_DEADLINE_MS,
      code: 'internal',
      reason,
    })
  }
}

function isFrames(value: unknown): value is readonly Frame[] {
  return Array.isArray(value)
}

/** Applies `next` to frames, at once or when they arrive; returns a denial or `aborted` unchanged. */
function then(
  reviewed: ReviewResult | Promise<ReviewResult>,
  next: (frames: readonly Frame[]) => ReviewResult | Promise<ReviewResult>,
): ReviewResult | Promise<ReviewResult> {
  if (isPromise(reviewed)) return reviewed.then((late) => (isFrames(late) ? next(late) : late))
  return isFrames(reviewed) ? next(reviewed) : reviewed
}

function isRun(frame: Frame): boolean {
  return frame instanceof FrameRun
}

function splitRun(frame: Frame): readonly Frame[] {
  return frame instanceof FrameRun ? frame.apart() : [frame]
}
