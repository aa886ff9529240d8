import type { Call, Frame, FrameRun, FrameVerdict, Outcome, Usage } from '../../call/index.ts'
import { type Review, type RunningReview, review } from '../../pipeline/stage.ts'
import type { Dialect, ModelRequest, Report } from './dialects/dialect.ts'
import { isCached } from './note.ts'
import { ModelBody } from './request.ts'

/** Returns the cost of `usage` in micro-units of the currency; 0 without prices. */
export type Price = (call: Call<'target' | 'hold'>, usage: Usage) => number

/**
 * Counts the usage of a model call: as the provider reports it, which is requested for every stream, otherwise as an estimate. The chunk
 * with the usage of a stream is not relayed if the caller did not request it.
 */
export function createMeter(price: Price): Review<'target' | 'hold'> {
  return review({
    name: 'meter',
    needs: ['target', 'hold'],
    open: (call) => (call.body instanceof ModelBody ? new Meter(call, call.body, price) : null),
  })
}

/** Bytes of text per token, for estimates: English has four, source code and other scripts fewer. */
const BYTES_PER_TOKEN = 3

const NOTHING: Usage = { prompt: 0, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0 }
const NOTHING_REPORTED: Report = { usage: NOTHING, whole: true }

/** A stored response uses no tokens. */
const FROM_CACHE = { usage: NOTHING, usageSource: 'cached', costMicros: 0 } as const

class Meter implements RunningReview {
  readonly #call: Call<'target' | 'hold'>
  readonly #request: ModelRequest
  readonly #price: Price
  readonly #dialect: Dialect
  #reported: Report | null = null
  #events = 0
  #bytes = 0
  /** Bytes of the shortest event, which approximates the size of an event without its text. */
  #shortest = Number.POSITIVE_INFINITY

  constructor(call: Call<'target' | 'hold'>, { request, dialect }: ModelBody, price: Price) {
    this.#call = call
    this.#request = request
    this.#dialect = dialect
    this.#price = price
  }

  frame(frame: Frame): FrameVerdict {
    if (frame.role === 'error') {
      // A refused call generated nothing, and providers do not charge for it.
      this.#reported ??= NOTHING_REPORTED
      return [frame]
    }
    this.#count(frame)
    const report = this.#dialect.report(frame, this.#reported)
    if (report === null) return [frame]
    this.#reported = report
    return this.#dialect.hides(frame, this.#request) ? [] : [frame]
  }

  skim({ count, raw, shortest }: FrameRun): void {
    this.#events += count
    this.#bytes += raw.byteLength
    if (shortest < this.#shortest) this.#shortest = shortest
  }

  end(): FrameVerdict {
    return []
  }

  tally(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros'> {
    if (isCached(this.#call.wire)) return FROM_CACHE
    const reported = this.#reported
    const usage = reported?.whole === true ? reported.usage : this.#estimate(reported?.usage ?? null)
    const usageSource = reported?.whole === true ? 'reported' : 'estimated'
    return { usage, usageSource, costMicros: this.#price(this.#call, usage) }
  }

  #count({ role, raw }: Frame): void {
    const isDone = role === 'final' && this.#events > 0
    if (raw === null || role === 'progress' || isDone) return
    this.#events++
    this.#bytes += raw.byteLength
    if (raw.byteLength < this.#shortest) this.#shortest = raw.byteLength
  }

  /** Estimates tokens: at least one per event, and bytes beyond the shortest event are text. Usage reported at the start is included. */
  #estimate(begun: Usage | null): Usage {
    const text = this.#events < 2 ? this.#bytes : this.#bytes - this.#events * this.#shortest
    const completion = Math.max(this.#events, Math.ceil(text / BYTES_PER_TOKEN))
    if (begun !== null) return { ...begun, completion: Math.max(begun.completion, completion) }
    return { ...NOTHING, prompt: this.#request.inputTokensAtMost, completion }
  }
}
