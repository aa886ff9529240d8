import type { Call, Frame, FrameRun, Outcome, Passed, Usage } from '../../call/index.ts'
import { type Review, type Running, review } from '../../pipeline/stage.ts'
import { isObject, member } from '../wire/json.ts'
import { mayReport, usageOfBody } from './frame.ts'
import { ModelBody, type ModelRequest } from './request.ts'

/** What `usage` costs a call, in micro-units of the currency; 0 where nothing has a price. */
export type Price = (call: Call<'target' | 'hold'>, usage: Usage) => number

/**
 * Counts what a model call used: as the provider reports it, which is asked for in every stream, else as an estimate. The chunk that
 * carries the usage of a stream goes no further when the caller did not ask for it.
 */
export function createMeter(price: Price): Review<'target' | 'hold'> {
  return review({
    name: 'meter',
    needs: ['target', 'hold'],
    open: (call) => (call.body instanceof ModelBody ? new Meter(call, call.body.request, price) : null),
  })
}

/** Bytes of text that make one token, for estimates: English has four, source code and other scripts fewer. */
const BYTES_PER_TOKEN = 3

const NOTHING: Usage = { prompt: 0, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0 }

class Meter implements Running {
  readonly #call: Call<'target' | 'hold'>
  readonly #request: ModelRequest
  readonly #price: Price
  #reported: Usage | null = null
  #events = 0
  #bytes = 0
  /** Of the shortest event: about what stands around the text of each. */
  #shortest = Number.POSITIVE_INFINITY

  constructor(call: Call<'target' | 'hold'>, request: ModelRequest, price: Price) {
    this.#call = call
    this.#request = request
    this.#price = price
  }

  frame(frame: Frame): Passed {
    if (frame.role === 'error') {
      // A refused call generated nothing, and providers do not charge for it.
      this.#reported ??= NOTHING
      return [frame]
    }
    this.#count(frame)
    const { raw, role } = frame
    if (role !== 'final' && raw !== null && !mayReport(raw)) return [frame]
    const usage = usageOf(role === 'final' && raw !== null ? usageOfBody(raw) : member(frame.value, 'usage'))
    if (usage === null) return [frame]
    this.#reported = usage
    return role === 'partial' && !this.#request.usageAsked && hasNoChoices(frame.value) ? [] : [frame]
  }

  skim({ count, raw, shortest }: FrameRun): void {
    this.#events += count
    this.#bytes += raw.byteLength
    if (shortest < this.#shortest) this.#shortest = shortest
  }

  end(): Passed {
    return []
  }

  tally(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros'> {
    const usage = this.#reported ?? this.#estimate()
    const usageSource = this.#reported === null ? 'estimated' : 'reported'
    return { usage, usageSource, costMicros: this.#price(this.#call, usage) }
  }

  #count({ role, raw }: Frame): void {
    const isDone = role === 'final' && this.#events > 0
    if (raw === null || role === 'progress' || isDone) return
    this.#events++
    this.#bytes += raw.byteLength
    if (raw.byteLength < this.#shortest) this.#shortest = raw.byteLength
  }

  /** Providers send at least one token an event; what is longer than the shortest event is text. */
  #estimate(): Usage {
    const text = this.#events < 2 ? this.#bytes : this.#bytes - this.#events * this.#shortest
    const completion = Math.max(this.#events, Math.ceil(text / BYTES_PER_TOKEN))
    return { ...NOTHING, prompt: this.#request.inputTokensAtMost, completion }
  }
}

function hasNoChoices(chunk: unknown): boolean {
  const choices = member(chunk, 'choices')
  return Array.isArray(choices) && choices.length === 0
}

/** `usage` as OpenAI reports it: `prompt` has the cached tokens in it, `completion` those of reasoning. Null: no such report. */
function usageOf(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const { prompt_tokens: prompt, completion_tokens: completion } = usage
  if (!isCount(prompt) || !isCount(completion)) return null
  const cachedRead = countOf(usage.prompt_tokens_details, 'cached_tokens')
  const reasoning = countOf(usage.completion_tokens_details, 'reasoning_tokens')
  return { prompt, completion, cachedRead, cachedWrite: 0, reasoning }
}

/** 0: nobody says. */
function countOf(details: unknown, name: string): number {
  const count = member(details, name)
  return isCount(count) ? count : 0
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
