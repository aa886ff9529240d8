import { member } from '@plat/core'
import type { Call, Frame, FrameRun, FrameVerdict, Outcome, Usage } from '../../call/index.ts'
import { type Review, type RunningReview, review } from '../../pipeline/stage.ts'
import type { Dialect, ModelRequest, Report } from './dialects/dialect.ts'
import { ModelFrame } from './frame.ts'
import { MediaMeter, type MediaPrice } from './media/meter.ts'
import { isCached } from './note.ts'
import { ModelBody } from './request.ts'
import { TokenEstimate } from './tokens/estimate.ts'
import { addPrompt, addTexts } from './tokens/texts.ts'

/** Returns the cost of `usage` in micro-units of the currency; 0 without prices. */
export type Price = (call: Call<'target' | 'hold'>, usage: Usage) => number

/**
 * Counts the usage of a model call: as the provider reports it, which is requested for every stream, otherwise as an estimate. The chunk
 * with the usage of a stream is not relayed if the caller did not request it.
 */
export function createMeter(price: Price, mediaPrice: MediaPrice = () => null): Review<'target' | 'hold'> {
  return review({
    name: 'meter',
    needs: ['target', 'hold'],
    open(call) {
      const { body } = call
      if (!(body instanceof ModelBody)) return null
      return body.dialect.media === undefined ? new Meter(call, body, price) : new MediaMeter(call, body, mediaPrice)
    },
  })
}

/** Bytes of a stream from which the tokens of its text are estimated; the rest is assumed to be alike. */
const SAMPLE_BYTES = 32_768

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
  /** Bytes of pieces of text. */
  #bytes = 0
  #sample: Buffer[] = []
  #sampled = 0
  /** A response that is not a stream. */
  #body: unknown = null
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
    this.#add(raw, shortest)
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

  #count(frame: Frame): void {
    const { role, raw, value } = frame
    const isDone = role === 'final' && this.#events > 0
    if (raw === null || role === 'progress' || isDone) return
    if (role === 'final') this.#body = value
    else if (!(frame instanceof ModelFrame) || !this.#dialect.events.isPlain(frame)) return
    else this.#add(raw, raw.byteLength)
    this.#events++
  }

  /** Counts pieces of text, and copies the first of them: they would keep the whole buffers that they are parts of. */
  #add(raw: Uint8Array, shortest: number): void {
    this.#bytes += raw.byteLength
    if (shortest < this.#shortest) this.#shortest = shortest
    if (this.#sampled >= SAMPLE_BYTES) return
    const piece = Buffer.from(raw.subarray(0, SAMPLE_BYTES - this.#sampled))
    this.#sample.push(piece)
    this.#sampled += piece.byteLength
  }

  /** Estimates what was not reported. Usage reported at the start of a stream is included. */
  #estimate(begun: Usage | null): Usage {
    const completion = this.#dialect.operation === 'model.generate' ? this.#completion() : 0
    if (begun !== null) return { ...begun, completion: Math.max(begun.completion, completion) }
    const estimate = new TokenEstimate(this.#dialect.tokenizer)
    const beside = addPrompt(this.#call.body instanceof ModelBody ? this.#call.body.value : {}, estimate)
    const prompt = Math.min(this.#request.inputTokensAtMost, Math.ceil(beside + estimate.tokens))
    return { ...NOTHING, prompt, completion }
  }

  /** Tokens of the generated text: at least one for each piece. */
  #completion(): number {
    const estimate = new TokenEstimate(this.#dialect.tokenizer)
    if (this.#body !== null) {
      for (const name of this.#dialect.generated) addTexts(member(this.#body, name), estimate)
      return Math.ceil(estimate.tokens)
    }
    // Pieces of a stream may end within a word.
    const pieces: string[] = []
    for (const line of Buffer.concat(this.#sample).toString().split('\n'))
      if (line.startsWith('data:')) addTexts(parsed(line.slice('data:'.length)), { add: (text) => pieces.push(text) })
    estimate.add(pieces.join(''))
    const share = this.#sampled === 0 ? 0 : this.#bytes / this.#sampled
    return Math.max(this.#events, Math.ceil(estimate.tokens * share))
  }
}

/** Returns the event of a line; null for the last one of a sample, which is incomplete. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
