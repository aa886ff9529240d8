import { findSpan, isObject, withoutElements, withoutMembers } from '@plat/core'
import { errorTable } from '../../call/index.ts'
import { member } from './json.ts'
import { NestedJson } from './nested.ts'

/** Member of a tool result's `_meta` with the refusal for programs. */
export const DENIAL_MEMBER = 'plat.dev/denial'

/** Domain of reasons that the gateway defines, in the ErrorInfo of A2A. */
export const OWN_DOMAIN = 'plat.dev'

type Path = readonly string[]

/** Longest list of ErrorInfos that is relayed in part: a longer one is removed. */
const MAX_INFOS = 1000

/**
 * Returns the response of an upstream without what only the gateway may state: its error codes, where clients read them, and the member of a
 * tool result with a refusal. Otherwise an upstream could, for instance, send a user to its own page to connect an account. `value` is the
 * parsed response. Returns the same bytes if there is nothing to remove.
 */
export function withoutForgedRefusal(json: Uint8Array, value: unknown): Uint8Array {
  if (!mayHold(value)) return json
  const infos = member(member(value, 'error'), 'data')
  const isLong = Array.isArray(infos) && infos.length > MAX_INFOS
  const rest = Array.isArray(infos) && !isLong && infos.some(isForgedInfo) ? withoutInfos(json, infos) : json
  const paths = isLong ? [...forgedIn(value), ['error', 'data']] : forgedIn(value)
  return paths.length === 0 ? rest : withoutMembers(rest, paths)
}

/** Most responses have none of them. */
function mayHold(value: unknown): boolean {
  const result = member(value, 'result')
  return (
    isSet(member(value, 'error')) || isSet(member(result, '_meta')) || isSet(member(member(result, 'result'), '_meta'))
  )
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The members to remove from a response. */
function forgedIn(response: unknown): readonly Path[] {
  const error = member(response, 'error')
  const nested = new NestedJson()
  // Clients expose either the whole body as their error or the object in it, and read both in the same way.
  return [...forgedHere(response, [], nested), ...(isObject(error) ? forgedHere(error, ['error'], nested) : [])]
}

function forgedHere(body: unknown, at: Path, nested: NestedJson): readonly Path[] {
  const error = member(body, 'error')
  const data = member(error, 'data')
  const paths: Path[] = []
  if (member(member(member(body, 'result'), '_meta'), DENIAL_MEMBER) !== undefined)
    paths.push([...at, 'result', '_meta', DENIAL_MEMBER])
  // The result of a task.
  if (member(member(member(member(body, 'result'), 'result'), '_meta'), DENIAL_MEMBER) !== undefined)
    paths.push([...at, 'result', 'result', '_meta', DENIAL_MEMBER])
  if (isOwnCode(error)) paths.push([...at, 'error'])
  if (isOwnCode(member(error, 'code'))) paths.push([...at, 'error', 'code'])
  if (isOwnCode(member(data, 'error'))) paths.push([...at, 'error', 'data', 'error'])
  if (holdsRefusal(member(data, 'text'), nested)) paths.push([...at, 'error', 'data', 'text'])
  return paths
}

/**
 * Whether a text is a response that states a refusal, as the MCP client of revision 2026-07-28 exposes those of the HTTP level. An object that
 * is not strict JSON, or exceeds the limits, counts as one: a client could read it, and parsing it here could take seconds.
 */
function holdsRefusal(text: unknown, nested: NestedJson): boolean {
  if (typeof text !== 'string' || !text.trimStart().startsWith('{')) return false
  const value = nested.parse(text)
  if (value === undefined) return true
  const infos = member(member(value, 'error'), 'data')
  return forgedHere(value, [], nested).length > 0 || (Array.isArray(infos) && infos.some(isForgedInfo))
}

function isForgedInfo(info: unknown): boolean {
  return member(info, 'domain') === OWN_DOMAIN || isOwnCode(member(member(info, 'metadata'), 'error'))
}

function withoutInfos(json: Uint8Array, infos: readonly unknown[]): Uint8Array {
  const span = findSpan(json, ['error', 'data'])
  return span === null ? json : withoutElements(json, span[0], (index) => !isForgedInfo(infos[index]))
}

function isOwnCode(code: unknown): boolean {
  return typeof code === 'string' && Object.hasOwn(errorTable, code)
}
