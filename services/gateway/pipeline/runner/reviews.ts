import type { Clock } from '@plat/core'
import { type Denial, deny, type Ending, type Frame, FrameRun, isDenial } from '../../call/index.ts'
import type { RunningReview, StepName } from '../stage.ts'
import { type GovernedCall, nothingUsed, type Tally } from './call.ts'
import { aborted } from './call-abort.ts'

/** How long one review may think about one frame, in milliseconds. */
const REVIEW_DEADLINE_MS = 30_000

const NO_FRAMES: readonly Frame[] = []

/** What the reviews make of frames: `stopped` when the call was stopped while one of them was thinking. */
export type ReviewResult = readonly Frame[] | Denial | typeof aborted

interface OpenedReview {
  readonly name: StepName
  readonly review: RunningReview
}

/** The reviews of one reply, in order. Each is opened once and ended once, whatever happens; one that throws denies. */
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

  /** What each review requires before a tunnel opens; null: it may open. */
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

  /** One batch through all reviews. Without reviews the batch itself comes back, and nothing was looked at. */
  pass(frames: readonly Frame[]): ReviewResult | Promise<ReviewResult> {
    if (this.#running.length === 0) return frames
    if (this.#allSkim && frames.length === 1 && frames[0] instanceof FrameRun) return this.#skim(frames[0], frames)
    return this.#through(0, !this.#allSkim && frames.some(isRun) ? frames.flatMap(splitRun) : frames)
  }

  /** A run passes all reviews as it is. */
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

  /** Ends each review, and lets what it held back pass through those after it. */
  finish(): ReviewResult | Promise<ReviewResult> {
    return this.#running.length === 0 ? NO_FRAMES : this.#finishFrom(NO_FRAMES)
  }

  #finishFrom(out: readonly Frame[]): ReviewResult | Promise<ReviewResult> {
    const opened = this.#running[this.#ended++]
    if (opened === undefined) return out
    const kept = this.#callReview(opened, null)
    const passed = then(kept, (frames) => this.#through(this.#ended, frames))
    return then(passed, (frames) => this.#finishFrom(out.length === 0 ? frames : [...out, ...frames]))
  }

  /** Ends the reviews that have not ended yet; what they held back is not sent. */
  abandon(how: Ending): void {
    while (this.#ended < this.#running.length) {
      try {
        const last = this.#running[this.#ended++]?.review.end(how)
        if (last instanceof Promise)
          last.catch((error) => this.#call.request.internalError('the end of a review', error))
      } catch (error) {
        // The call is over and was not complete: a review that fails now changes nothing for the caller.
        this.#call.request.internalError('the end of a review', error)
      }
    }
  }

  /** What was used, as the last review that counts tells it. */
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

  /** Frames through the reviews from place `from` on. */
  #through(from: number, frames: readonly Frame[]): ReviewResult | Promise<ReviewResult> {
    const opened = this.#running[from]
    if (opened === undefined || frames.length === 0) return frames
    return then(this.#each(opened, frames, 0, []), (passed) => this.#through(from + 1, passed))
  }

  /** One frame after another through one review. A plain value unless the review has to think. */
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
      if (passed instanceof Promise)
        return passed.then((late) => (isFrames(late) ? this.#each(opened, frames, at + 1, [...out, ...late]) : late))
      if (!isFrames(passed)) return passed
      for (const one of passed) out.push(one)
    }
    return out
  }

  /** What a review makes of a frame; null: the answer is complete. */
  #callReview({ name, review }: OpenedReview, frame: Frame | null): ReviewResult | Promise<ReviewResult> {
    try {
      if (frame instanceof FrameRun && review.skim !== undefined) {
        review.skim(frame)
        return [frame]
      }
      const answer: unknown = frame === null ? review.end('complete') : review.frame(frame)
      if (!(answer instanceof Promise)) return this.#checked(name, answer)
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

/** Goes on with frames, now or when they are there; a denial or a stop is the end. */
function then(
  reviewed: ReviewResult | Promise<ReviewResult>,
  next: (frames: readonly Frame[]) => ReviewResult | Promise<ReviewResult>,
): ReviewResult | Promise<ReviewResult> {
  if (reviewed instanceof Promise) return reviewed.then((late) => (isFrames(late) ? next(late) : late))
  return isFrames(reviewed) ? next(reviewed) : reviewed
}

function isRun(frame: Frame): boolean {
  return frame instanceof FrameRun
}

function splitRun(frame: Frame): readonly Frame[] {
  return frame instanceof FrameRun ? frame.apart() : [frame]
}
