import type { Clock } from '@plat/core'
import { type Denial, deny, type Ending, type Frame, isDenial } from '../../call/index.ts'
import type { Running, StepName } from '../stage.ts'
import { type GovernedCall, nothingUsed, type Tally } from './call.ts'
import { stopped } from './stopper.ts'

/** How long one review may think about one frame, in milliseconds. */
const REVIEW_DEADLINE_MS = 30_000

/** What the reviews make of frames: `stopped` when the call was stopped while one of them was thinking. */
export type Reviewed = readonly Frame[] | Denial | typeof stopped

/** The reviews of one reply, in order. Each is opened once and ended once, whatever happens; one that throws denies. */
export class ReviewChain {
  readonly #call: GovernedCall
  readonly #clock: Clock
  readonly #running: { readonly name: StepName; readonly review: Running }[] = []
  #ended = 0

  constructor(call: GovernedCall, clock: Clock) {
    this.#call = call
    this.#clock = clock
  }

  open(): Denial | null {
    for (const opener of this.#call.plan.reviews) {
      try {
        const review = opener.open(this.#call)
        if (review !== null) this.#running.push({ name: opener.name, review })
      } catch (error) {
        return this.#call.incoming.broke(`the review ${opener.name}`, error)
      }
    }
    return null
  }

  /** One batch through all reviews. Without reviews the batch itself comes back, and nothing was looked at. */
  pass(frames: readonly Frame[]): Reviewed | Promise<Reviewed> {
    return this.#running.length === 0 ? frames : this.#through(0, frames)
  }

  /** Ends each review, and lets what it held back pass through those after it. */
  finish(): Reviewed | Promise<Reviewed> {
    return this.#running.length === 0 ? [] : this.#finishAll()
  }

  async #finishAll(): Promise<Reviewed> {
    let out: readonly Frame[] = []
    while (this.#ended < this.#running.length) {
      const running = this.#running[this.#ended++]
      if (running === undefined) break
      const kept = await this.#ask(running.name, () => running.review.end('complete'))
      if (!isFrames(kept)) return kept
      const passed = await this.#through(this.#ended, kept)
      if (!isFrames(passed)) return passed
      out = out.length === 0 ? passed : [...out, ...passed]
    }
    return out
  }

  /** Ends the reviews that have not ended yet; what they held back is not sent. */
  abandon(how: Ending): void {
    while (this.#ended < this.#running.length) {
      try {
        const last = this.#running[this.#ended++]?.review.end(how)
        if (last instanceof Promise) last.catch(ignore)
      } catch (error) {
        // The call is over and was not complete: a review that fails now changes nothing for the caller.
        this.#call.incoming.broke('the end of a review', error)
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
        this.#call.incoming.broke(`the tally of ${name}`, error)
      }
    }
    return tally
  }

  async #through(from: number, frames: readonly Frame[]): Promise<Reviewed> {
    let current = frames
    for (const { name, review } of this.#running.slice(from)) {
      const out: Frame[] = []
      for (const frame of current) {
        const passed = await this.#ask(name, () => review.frame(frame))
        if (!isFrames(passed)) return passed
        out.push(...passed)
      }
      current = out
    }
    return current
  }

  async #ask(name: StepName, work: () => unknown): Promise<Reviewed> {
    try {
      const answer = work()
      const passed = answer instanceof Promise ? await this.#inTime(name, answer) : answer
      if (isFrames(passed) || isDenial(passed) || passed === stopped) return passed
      return deny('internal', `the review ${name} gave no verdict`)
    } catch (error) {
      return this.#call.incoming.broke(`the review ${name}`, error)
    }
  }

  #inTime(name: StepName, answer: Promise<unknown>): Promise<unknown> {
    const reason = `the review ${name} gave no verdict in time`
    return this.#call.within(answer, { now: this.#clock.now(), ms: REVIEW_DEADLINE_MS, code: 'internal', reason })
  }
}

function isFrames(value: unknown): value is readonly Frame[] {
  return Array.isArray(value)
}

function ignore(): void {}
