import { isObject, member } from '@plat/core'
import type { Call, Frame, FrameVerdict, MediaUse, Outcome, Usage } from '../../../call/index.ts'
import type { RunningReview } from '../../../pipeline/stage.ts'
import { isTokens, tokens } from '../dialects/checks.ts'
import { isSeconds } from '../dialects/media.ts'
import type { ModelBody } from '../request.ts'
import { UploadBody } from '../uploads/body.ts'

/** Use of a finished call: units, and tokens with the image tokens of its input, as far as they are reported. */
export interface MediaReport {
  readonly use: MediaUse
  readonly tokens: (Usage & { readonly images: number }) | null
}

/** Returns the cost of what a call used in micro-units of the currency; null: no price for it is known. */
export type MediaPrice = (call: Call<'target' | 'hold'>, report: MediaReport) => number | null

/** Counts images, characters and seconds of a call: those of the response where it has them, otherwise those of the request. */
export class MediaMeter implements RunningReview {
  readonly #call: Call<'target' | 'hold'>
  readonly #body: ModelBody
  readonly #price: MediaPrice
  #answer: unknown = null
  #refused = false
  #complete = false

  constructor(call: Call<'target' | 'hold'>, body: ModelBody, price: MediaPrice) {
    this.#call = call
    this.#body = body
    this.#price = price
  }

  frame(frame: Frame): FrameVerdict {
    // A refused call used nothing, and providers do not charge for it.
    if (frame.role === 'error') this.#refused = true
    if (frame.role === 'final') this.#answer = frame.value
    return [frame]
  }

  end(): FrameVerdict {
    this.#complete = true
    return []
  }

  tally(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros' | 'media'> {
    if (this.#refused) return { usage: null, usageSource: 'reported', costMicros: 0 }
    const use = this.#complete ? this.#use() : null
    if (use === null) return { usage: null, usageSource: 'none', costMicros: 0 }
    const reported = tokensOf(member(this.#answer, 'usage'))
    const cost = this.#price(this.#call, { use, tokens: reported })
    const usage = reported === null ? null : withoutImages(reported)
    return { usage, usageSource: cost === null ? 'none' : 'reported', costMicros: cost ?? 0, media: use }
  }

  /** Null: neither the response nor the request says how much it is. */
  #use(): MediaUse | null {
    const { dialect, value } = this.#body
    const files = this.#body instanceof UploadBody ? this.#body.files : []
    const demand = dialect.media?.(value, files)
    if (demand === undefined) return null
    const count = demand.unit === 'characters' ? demand.atMost : this.#reported(demand.unit)
    return count === null ? null : { unit: demand.unit, count }
  }

  #reported(unit: 'images' | 'seconds'): number | null {
    if (unit === 'images') {
      const data = member(this.#answer, 'data')
      return Array.isArray(data) ? data.length : null
    }
    const usage = member(this.#answer, 'usage')
    const seconds = member(usage, 'type') === 'duration' ? member(usage, 'seconds') : member(this.#answer, 'duration')
    return isSeconds(seconds) ? Math.ceil(seconds) : null
  }
}

function tokensOf(usage: unknown): MediaReport['tokens'] {
  if (!isObject(usage) || !isTokens(usage.input_tokens) || !isTokens(usage.output_tokens)) return null
  const images = tokens(member(usage.input_tokens_details, 'image_tokens'))
  const { input_tokens: prompt, output_tokens: completion } = usage
  return { prompt, completion, cachedRead: 0, cachedWrite: 0, reasoning: 0, images }
}

function withoutImages({ prompt, completion, cachedRead, cachedWrite, reasoning }: Usage): Usage {
  return { prompt, completion, cachedRead, cachedWrite, reasoning }
}
