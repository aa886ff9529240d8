import { isObject, type JsonObject, member } from '@plat/core'
import { NestedJson } from '../../wire/nested.ts'
import { callsIn, itemParts, jsonCallPart, partsOf, reasoningPart, textPart } from './parts.ts'

/** Maximum number of reported choices and tool calls of one response. */
const MAX_CHOICES = 128

/** A call of a tool whose arguments come in pieces. */
interface OpenCall {
  id: unknown
  name: unknown
  args: string
}

/** One choice of a response, collected while it streams. */
class Choice {
  text = ''
  reasoning = ''
  finish: string | null = null
  /** Parts of a whole response, as opposed to a stream. */
  parts: readonly JsonObject[] = []
  readonly calls = new Map<number, OpenCall>()

  messageOf(nested: NestedJson): JsonObject {
    const parts = [
      ...(this.reasoning === '' ? [] : [reasoningPart(this.reasoning)]),
      ...(this.text === '' ? [] : [textPart(this.text)]),
      ...this.parts,
      ...[...this.calls.values()].map(({ id, name, args }) => jsonCallPart(id, name, args, nested)),
    ]
    return { role: 'assistant', parts, finish_reason: this.finish ?? 'unknown' }
  }
}

/** Collects the output of a model from whole responses and from the events of streams of OpenAI's and Anthropic's APIs. */
export class Choices {
  readonly #byIndex = new Map<number, Choice>()
  readonly #nested = new NestedJson()
  /** Characters that may still come; below zero: more came than is kept. */
  #left: number

  constructor(maxLength: number) {
    this.#left = maxLength
  }

  get finishReasons(): readonly string[] {
    return [...this.#byIndex.values()].map(({ finish }) => finish).filter((finish) => finish !== null)
  }

  /** Null: more was said than is kept. */
  get messages(): readonly JsonObject[] | null {
    if (this.#left < 0) return null
    return [...this.#byIndex.values()].map((choice) => choice.messageOf(this.#nested))
  }

  /** Adds a whole response, or an event of a streamed one. */
  take(value: JsonObject): void {
    if (Array.isArray(value.choices)) for (const choice of value.choices) this.#choice(choice)
    else if (Array.isArray(value.candidates)) for (const candidate of value.candidates) this.#candidate(candidate)
    else if (value.type === 'message') this.#whole(partsOf(value.content), value.stop_reason)
    else if (isObject(value.response)) this.#response(value.response)
    else if (Array.isArray(value.output)) this.#response(value)
    else this.#block(value)
  }

  /** Of OpenAI's `chat/completions` and `completions`: a whole one, or what an event adds. */
  #choice(choice: unknown): void {
    const at = this.#at(indexIn(choice))
    const whole = member(choice, 'message')
    const delta = isObject(whole) ? whole : member(choice, 'delta')
    const reason = member(choice, 'finish_reason')
    if (at === null) return
    if (typeof reason === 'string') at.finish = reason
    at.text += this.#limited(member(delta, 'content') ?? member(choice, 'text'))
    at.text += this.#limited(member(delta, 'refusal'))
    at.reasoning += this.#limited(member(delta, 'reasoning_content'))
    if (isObject(whole)) at.parts = this.#room(callsIn(whole, this.#nested))
    else for (const call of listIn(delta, 'tool_calls')) this.#calls(at, indexIn(call), call)
  }

  /** Of Google's `generateContent`: a whole one, or a chunk. */
  #candidate(candidate: unknown): void {
    const at = this.#at(indexIn(candidate))
    const reason = member(candidate, 'finishReason')
    if (at === null) return
    if (typeof reason === 'string') at.finish = reason
    for (const part of listIn(member(candidate, 'content'), 'parts')) {
      const text = this.#limited(member(part, 'text'))
      if (member(part, 'thought') === true) at.reasoning += text
      else at.text += text
      const call = member(part, 'functionCall')
      if (!isObject(call) || at.calls.size >= MAX_CHOICES) continue
      const args = this.#limited(JSON.stringify(call.args ?? {}))
      at.calls.set(at.calls.size, { id: call.id, name: call.name, args })
    }
  }

  #calls(at: Choice, index: number, call: unknown): void {
    const open = at.calls.get(index) ?? { id: member(call, 'id'), name: undefined, args: '' }
    open.name ??= member(member(call, 'function'), 'name')
    open.args += this.#limited(member(member(call, 'function'), 'arguments'))
    if (at.calls.size < MAX_CHOICES) at.calls.set(index, open)
  }

  /** An event of Anthropic's `messages`. */
  #block({ type, index, delta, content_block: block }: JsonObject): void {
    const at = this.#at(0)
    if (at === null) return
    const place = typeof index === 'number' ? index : 0
    if (type === 'content_block_start' && member(block, 'type') === 'tool_use' && at.calls.size < MAX_CHOICES) {
      at.calls.set(place, { id: member(block, 'id'), name: member(block, 'name'), args: '' })
    } else if (type === 'content_block_delta') {
      at.text += this.#limited(member(delta, 'text'))
      at.reasoning += this.#limited(member(delta, 'thinking'))
      const call = at.calls.get(place)
      if (call !== undefined) call.args += this.#limited(member(delta, 'partial_json'))
    } else if (type === 'message_delta') {
      const reason = member(delta, 'stop_reason')
      if (typeof reason === 'string') at.finish = reason
    }
  }

  /** OpenAI's `responses`: a stream ends with the whole of it, and begins with what is not there yet. */
  #response(response: JsonObject): void {
    if (response.status === 'in_progress' || response.status === 'queued') return
    const parts = listIn(response, 'output')
      .filter(isObject)
      .flatMap((item) => itemParts(item, this.#nested))
    const reason = member(response.incomplete_details, 'reason')
    this.#whole(parts, typeof reason === 'string' ? reason : response.status)
  }

  #whole(parts: readonly JsonObject[], reason: unknown): void {
    const at = this.#at(0)
    if (at === null) return
    at.parts = this.#room(parts)
    if (typeof reason === 'string') at.finish = reason
  }

  #at(index: number): Choice | null {
    if (!this.#byIndex.has(index) && this.#byIndex.size >= MAX_CHOICES) return null
    return this.#byIndex.getOrInsertComputed(index, () => new Choice())
  }

  /** The text, while there is room for it. */
  #limited(text: unknown): string {
    if (typeof text !== 'string' || text === '' || this.#left < 0) return ''
    this.#left -= text.length
    return this.#left < 0 ? '' : text
  }

  /** The parts, if there is room for them. */
  #room(parts: readonly JsonObject[]): readonly JsonObject[] {
    if (parts.length === 0 || this.#left <= 0) return []
    this.#left -= JSON.stringify(parts).length
    return this.#left < 0 ? [] : parts
  }
}

function indexIn(value: unknown): number {
  const index = member(value, 'index')
  return typeof index === 'number' ? index : 0
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = member(value, name)
  return Array.isArray(list) ? list : []
}
