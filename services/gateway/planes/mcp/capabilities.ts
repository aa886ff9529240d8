import { checkJson, findSpan, type Span, withoutMembers } from '@plat/core'
import { isObject, member } from '../wire/json.ts'
import { type Era, KNOWN_REVISIONS } from './classify.ts'
import { mentions } from './frames/frame.ts'
import { META_CAPABILITIES } from './message.ts'

/** What a server could ask a client for. Until such requests are governed, no server is told that it may. */
const WITHHELD = ['sampling', 'elicitation', 'roots', 'tasks']

/** The tasks extension of revision 2026-07-28. */
const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** The members of a message that announce what the gateway does not carry, as paths that exist. */
export function withheldPaths(method: string, era: Era, message: unknown): readonly (readonly string[])[] {
  const params = member(message, 'params')
  const modern = era === 'modern'
  if (!modern && method !== 'initialize') return []
  const at = modern ? ['params', '_meta', META_CAPABILITIES] : ['params', 'capabilities']
  const capabilities = modern ? member(member(params, '_meta'), META_CAPABILITIES) : member(params, 'capabilities')
  const paths = WITHHELD.filter((name) => member(capabilities, name) !== undefined).map((name) => [...at, name])
  if (member(member(capabilities, 'extensions'), TASKS_EXTENSION) === undefined) return paths
  return [...paths, [...at, 'extensions', TASKS_EXTENSION]]
}

/** What a server announces in its answer and the gateway does not carry. */
const NOT_CARRIED = [
  ['result', 'capabilities', 'tasks'],
  ['result', 'capabilities', 'extensions', TASKS_EXTENSION],
]

/**
 * The answer to `initialize` or `server/discover` without what the gateway does not carry; of the versions of a discovery only
 * those stay that may be spoken. The same bytes when nothing had to go. Throws a `JsonError` for what is not strict JSON.
 */
export function trimAnnouncement(json: Uint8Array, message: unknown, spoken: readonly string[]): Uint8Array {
  checkJson(json)
  const trimmed = withoutMembers(json, NOT_CARRIED)
  const versions = member(member(message, 'result'), 'supportedVersions')
  if (!Array.isArray(versions)) return trimmed
  const span = findSpan(trimmed, ['result', 'supportedVersions'])
  return span === null ? trimmed : keepElements(trimmed, span, (index) => spoken.includes(String(versions[index])))
}

/** The versions that a server may be spoken to with: what its resource says and the gateway knows. */
export function spokenRevisions(protocolVersions: readonly string[] | null | undefined): readonly string[] {
  if (!protocolVersions || protocolVersions.length === 0) return KNOWN_REVISIONS
  return KNOWN_REVISIONS.filter((revision) => protocolVersions.includes(revision))
}

const INPUT_REQUESTS = Buffer.from('"inputRequests"')
const RESULT_TYPE_TASK = Buffer.from('"task"')

/**
 * Whether a result asks the client for something that was not offered (revision 2026-07-28: `inputRequests` of a multi-round result, or
 * a task). The message is only parsed when the bytes could hold such a thing.
 */
export function asksForWithheld(json: Uint8Array, message: { readonly value: unknown }): boolean {
  if (!mentions(json, INPUT_REQUESTS) && !mentions(json, RESULT_TYPE_TASK)) return false
  const result = member(message.value, 'result')
  const requests = member(result, 'inputRequests')
  const asks = isObject(requests) && Object.keys(requests).length > 0
  return asks || member(result, 'resultType') === 'task'
}

/** The array at `span` with only the elements that `keep` wants; every kept byte stays as it was. */
export function keepElements(bytes: Uint8Array, span: Span, keep: (index: number) => boolean): Uint8Array {
  const elements = elementSpans(bytes, span)
  const kept = elements.filter((_, index) => keep(index))
  if (kept.length === elements.length) return bytes
  const comma = Buffer.from(',')
  const parts = kept.flatMap(([start, end], index) => {
    const element = bytes.subarray(start, end)
    return index === 0 ? [element] : [comma, element]
  })
  return Buffer.concat([bytes.subarray(0, span[0] + 1), ...parts, bytes.subarray(span[1] - 1)])
}

/** Where each element of an array stands. The bytes have passed the strict scanner. */
function elementSpans(bytes: Uint8Array, [start, end]: Span): Span[] {
  const found: Span[] = []
  let at = start + 1
  while (at < end - 1) {
    const span = findSpan(bytes.subarray(at, end - 1), [])
    if (span === null || span[0] >= end - 1 - at) break
    found.push([at + span[0], at + span[1]])
    const comma = bytes.indexOf(COMMA, at + span[1])
    if (comma === -1 || comma >= end) break
    at = comma + 1
  }
  return found
}

const COMMA = 0x2c
