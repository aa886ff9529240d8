import { isObject, type JsonObject, member } from '@plat/core'
import { NestedJson } from '../../wire/nested.ts'
import { isSet } from '../dialects/checks.ts'
import { type Part, type Turn, UntranslatableError } from './prompt.ts'

/** Reads the messages of a chat. Instructions come first, wherever the caller put them. */
export interface Conversation {
  readonly system: readonly string[]
  readonly turns: readonly Turn[]
}

/** Members that clients give back as they got them, and that say nothing to a model. */
const ECHOED: ReadonlySet<string> = new Set(['reasoning_content', 'annotations'])

/** Most tool calls of a request that is translated: each is parsed, and the translation does not yield. */
const MAX_CALLS = 10_000

/** Names of the called tools, by the id of their calls. */
export class CalledTools {
  readonly #names = new Map<string, string>()
  readonly #nested = new NestedJson()
  #count = 0

  /** Throws `UntranslatableError` for too many calls. */
  add(id: string, name: string, at: string): void {
    this.#count++
    if (this.#count > MAX_CALLS) throw new UntranslatableError(at, `is more than the ${MAX_CALLS}th tool call`)
    this.#names.set(id, name)
  }

  get(id: string): string | undefined {
    return this.#names.get(id)
  }

  /** Parses the arguments of a call. Numbers keep their literals: an id of twenty digits must not become another one. Throws `UntranslatableError`. */
  argumentsOf(text: string, at: string): JsonObject {
    const args = text === '' ? {} : this.#nested.parseLossless(text)
    if (this.#nested.isFull)
      throw new UntranslatableError(at, 'exceeds 2 MiB or 30,000 values, together with the arguments before it')
    if (args === undefined) throw new UntranslatableError(at, 'must be JSON')
    if (!isObject(args) || JSON.isRawJSON(args)) throw new UntranslatableError(at, 'must be a JSON object')
    return args
  }
}

/** Throws `UntranslatableError`. */
export function readMessages(messages: unknown): Conversation {
  if (!Array.isArray(messages)) throw new UntranslatableError('messages', 'must be a list')
  const system: string[] = []
  const turns: { side: Turn['side']; parts: Part[] }[] = []
  const names = new CalledTools()
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    if (!isObject(message)) throw new UntranslatableError(at, 'must be an object')
    if (message.role === 'system' || message.role === 'developer') {
      onlyMembers(message, ['role', 'content'], at)
      system.push(textOf(message.content, `${at}.content`))
      continue
    }
    const [side, parts] = turnOf(message, at, names)
    if (parts.length === 0) continue
    const last = turns.at(-1)
    if (last?.side !== side) turns.push({ side, parts: [...parts] })
    // Not with a spread: the caller chooses how many parts there are, and a call has room for about 100,000 arguments.
    else for (const part of parts) last.parts.push(part)
  }
  return { system: system.filter((text) => text !== ''), turns }
}

/** `names`: the tools whose results are awaited. */
function turnOf(message: JsonObject, at: string, names: CalledTools): readonly [Turn['side'], readonly Part[]] {
  switch (message.role) {
    case 'user':
      onlyMembers(message, ['role', 'content'], at)
      return ['user', partsOf(message.content, `${at}.content`)]
    case 'assistant':
      onlyMembers(message, ['role', 'content', 'refusal', 'tool_calls'], at)
      return ['assistant', [...contentParts(message, at), ...callsOf(message.tool_calls, `${at}.tool_calls`, names)]]
    case 'tool': {
      // CrewAI repeats the name of the call.
      onlyMembers(message, ['role', 'content', 'tool_call_id', 'name'], at)
      const { tool_call_id: id } = message
      const name = typeof id === 'string' ? names.get(id) : undefined
      if (typeof id !== 'string' || name === undefined)
        throw new UntranslatableError(`${at}.tool_call_id`, 'names no tool call of a message before')
      if (isSet(message.name) && message.name !== name)
        throw new UntranslatableError(`${at}.name`, 'is not the name of its tool call')
      return ['user', [{ kind: 'result', id, name, text: textOf(message.content, `${at}.content`), failed: false }]]
    }
    default:
      throw new UntranslatableError(`${at}.role`, 'must be system, developer, user, assistant or tool')
  }
}

function contentParts({ content, refusal }: JsonObject, at: string): readonly Part[] {
  const parts = isSet(content) ? partsOf(content, `${at}.content`) : []
  return isSet(refusal) ? [...parts, ...texts(textOf(refusal, `${at}.refusal`))] : parts
}

/** Throws `UntranslatableError` if an object has an unknown member. */
export function onlyMembers(value: JsonObject, known: readonly string[], at: string): void {
  for (const [name, one] of Object.entries(value)) {
    if (known.includes(name) || ECHOED.has(name) || !isSet(one)) continue
    if (Array.isArray(one) && one.length === 0) continue
    throw new UntranslatableError(
      at === '' ? name : `${at}.${name}`,
      'has no counterpart at the provider of this route',
    )
  }
}

function textOf(content: unknown, at: string): string {
  if (typeof content === 'string') return content
  const parts = partsOf(content, at)
  return parts
    .map((part) => {
      if (part.kind !== 'text') throw new UntranslatableError(at, 'must be text')
      return part.text
    })
    .join('')
}

function partsOf(content: unknown, at: string): readonly Part[] {
  if (typeof content === 'string') return texts(content)
  if (!Array.isArray(content)) throw new UntranslatableError(at, 'must be text or a list of parts')
  return content.flatMap((part: unknown, index) => partOf(part, `${at}[${index}]`))
}

/** No part for no text: providers refuse parts that are empty. */
export function texts(text: string): readonly Part[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function partOf(part: unknown, at: string): readonly Part[] {
  const type = member(part, 'type')
  if (!isObject(part) || typeof type !== 'string') throw new UntranslatableError(at, 'must be a part with a type')
  onlyMembers(part, ['type', type], at)
  const body = part[type]
  switch (type) {
    case 'text':
    case 'refusal':
      if (typeof body !== 'string') throw new UntranslatableError(`${at}.${type}`, 'must be text')
      return texts(body)
    case 'image_url':
      return [imageOf(body, `${at}.image_url`)]
    case 'input_audio':
      return [audioOf(body, `${at}.input_audio`)]
    case 'file':
      return [fileOf(body, `${at}.file`)]
    default:
      throw new UntranslatableError(`${at}.type`, 'is not a type of part that can be translated')
  }
}

export const DATA_URL = /^data:([a-z]+\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/]*={0,2})$/i

function imageOf(image: unknown, where: string): Part {
  const at = `${where}.url`
  const url = member(image, 'url')
  if (!isObject(image) || typeof url !== 'string') throw new UntranslatableError(at, 'must be a URL')
  onlyMembers(image, image.detail === 'auto' ? ['url', 'detail'] : ['url'], where)
  if (!url.startsWith('data:')) return { kind: 'link', url, at }
  const [, type = '', data = ''] = DATA_URL.exec(url) ?? []
  if (!type.startsWith('image/')) throw new UntranslatableError(at, 'must hold an image in base64')
  return { kind: 'data', of: 'image', type, data, name: '', at }
}

function audioOf(audio: unknown, at: string): Part {
  const data = member(audio, 'data')
  const format = member(audio, 'format')
  if (!isObject(audio) || typeof data !== 'string' || typeof format !== 'string')
    throw new UntranslatableError(at, 'must have data and a format')
  onlyMembers(audio, ['data', 'format'], at)
  return { kind: 'data', of: 'audio', type: `audio/${format}`, data, name: '', at }
}

function fileOf(file: unknown, at: string): Part {
  const url = member(file, 'file_data')
  const name = member(file, 'filename')
  const [, type = '', data = ''] = typeof url === 'string' ? (DATA_URL.exec(url) ?? []) : []
  if (!isObject(file) || type === '')
    throw new UntranslatableError(`${at}.file_data`, 'must be a data: URL with base64')
  onlyMembers(file, ['file_data', 'filename'], at)
  return { kind: 'data', of: 'document', type, data, name: typeof name === 'string' ? name : '', at }
}

function callsOf(calls: unknown, at: string, names: CalledTools): readonly Part[] {
  if (!isSet(calls)) return []
  if (!Array.isArray(calls)) throw new UntranslatableError(at, 'must be a list')
  return calls.map((call: unknown, index): Part => {
    const here = `${at}[${index}]`
    const called = member(call, 'function')
    const { id, name, text } = {
      id: member(call, 'id'),
      name: member(called, 'name'),
      text: member(called, 'arguments'),
    }
    if (typeof id !== 'string' || typeof name !== 'string' || typeof text !== 'string')
      throw new UntranslatableError(here, 'must be a call of a function with id, name and arguments')
    names.add(id, name, here)
    const signature = member(member(member(call, 'extra_content'), 'google'), 'thought_signature')
    const args = names.argumentsOf(text, `${here}.function.arguments`)
    return { kind: 'call', id, name, args, signature: typeof signature === 'string' ? signature : null }
  })
}
