import { elementSpans, findSpan, findValue, isObject, member } from '@plat/core'
import { withValue } from '../message.ts'
import { withSharedFollowedIds, withSharedTaskIds } from '../tasks/messages.ts'
import { sharedUri } from './naming.ts'

/**
 * Returns a message of a server with the URIs of its resources as the client must write them: in contents of results, in links of
 * content, and in notifications. `method` is that of the request. Returns the same bytes if there are none.
 */
export function withSharedUris(
  json: Uint8Array,
  value: unknown,
  { method, prefix }: { readonly method: string; readonly prefix: string },
): Uint8Array {
  const result = member(value, 'result')
  const uris = new Uris(json)
  if (method === 'resources/read') uris.inList(['result', 'contents'], member(result, 'contents'), uris.ofContents)
  else if (method === 'tasks/get')
    uris.inList(['result', 'result', 'content'], member(member(result, 'result'), 'content'), uris.ofBlock)
  else if (method === 'tools/call' || method === 'tasks/result')
    uris.inList(['result', 'content'], member(result, 'content'), uris.ofBlock)
  else if (method === 'prompts/get') uris.inList(['result', 'messages'], member(result, 'messages'), uris.ofMessage)
  return uris.places.length === 0 ? json : withInserted(json, uris.places, prefixText(prefix))
}

/** Visits a value and the bytes at which it begins. */
type Visit = (at: number, value: unknown) => void

/** Collects where the texts of URIs begin: all get the same prefix there. */
class Uris {
  /** In order. */
  readonly places: number[] = []
  readonly #json: Uint8Array

  constructor(json: Uint8Array) {
    this.#json = json
  }

  inList(path: readonly string[], list: unknown, visit: Visit): void {
    const start = Array.isArray(list) && list.length > 0 ? findSpan(this.#json, path)?.[0] : undefined
    if (start !== undefined) this.#each(start, list, visit)
  }

  #each(start: number, list: unknown, visit: Visit): void {
    if (!Array.isArray(list)) return
    for (const [index, [at]] of elementSpans(this.#json, start).entries()) visit(at, list[index])
  }

  readonly ofContents: Visit = (at, contents) => this.#add(at, ['uri'], member(contents, 'uri'))

  readonly ofBlock: Visit = (at, block) => {
    const type = member(block, 'type')
    if (type === 'resource_link') this.#add(at, ['uri'], member(block, 'uri'))
    if (type === 'resource') this.#add(at, ['resource', 'uri'], member(member(block, 'resource'), 'uri'))
  }

  readonly ofMessage: Visit = (at, message) => {
    const content = member(message, 'content')
    const start = typeof content === 'object' ? findValue(this.#json, at, ['content']) : null
    if (start === null) return
    if (isObject(content)) this.ofBlock(start, content)
    else this.#each(start, content, this.ofBlock)
  }

  #add(at: number, path: readonly string[], uri: unknown): void {
    const start = typeof uri === 'string' ? findValue(this.#json, at, path) : null
    // Behind the quote.
    if (start !== null) this.places.push(start + 1)
  }
}

/** The prefix of URIs, as it is written in a string of JSON. */
function prefixText(prefix: string): Uint8Array {
  return Buffer.from(JSON.stringify(sharedUri(prefix, '')).slice(1, -1))
}

function withInserted(json: Uint8Array, places: readonly number[], text: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(json.length + places.length * text.length)
  let [from, to] = [0, 0]
  for (const place of places) {
    bytes.set(json.subarray(from, place), to)
    to += place - from
    bytes.set(text, to)
    to += text.length
    from = place
  }
  bytes.set(json.subarray(from), to)
  return bytes
}

/** Returns a notification of a server with its URI and its ids of tasks, if it has any, as the client must write them. */
export function withSharedNames(json: Uint8Array, value: unknown, prefix: string): Uint8Array {
  const located = withNotifiedUri(json, value, prefix)
  return withSharedFollowedIds(withSharedTaskIds(located, value, prefix), value, prefix)
}

function withNotifiedUri(json: Uint8Array, value: unknown, prefix: string): Uint8Array {
  if (member(value, 'method') !== 'notifications/resources/updated') return json
  const uri = member(member(value, 'params'), 'uri')
  return typeof uri === 'string' ? withValue(json, ['params', 'uri'], jsonText(sharedUri(prefix, uri))) : json
}

function jsonText(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(text))
}
