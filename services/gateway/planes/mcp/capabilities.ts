import { findSpan, isObject, member, withoutElements } from '@plat/core'
import { type Era, KNOWN_REVISIONS } from './classify.ts'
import type { McpFrame } from './frames/frame.ts'
import { freeMetaNames, META_CAPABILITIES, namesBeyond, resultOf } from './message.ts'
import { declaresTasks } from './tasks/status.ts'

/** A capability of clients that the gateway removes: tasks of clients, which servers would create, are not forwarded. */
const TASKS = 'tasks'
/** Members of `params.task` of revision 2025-11-25. */
const TASK_MEMBERS: ReadonlySet<string> = new Set(['ttl'])

/** Paths of the client's capabilities. */
const MODERN_OFFER = ['params', '_meta', META_CAPABILITIES]
const LEGACY_OFFER = ['params', 'capabilities']

const NOTHING: readonly never[] = []

/** The parts of a message that may have capabilities. */
export interface Offering {
  readonly method: string
  readonly era: Era
  readonly params: unknown
  readonly meta: unknown
}

/** Returns the paths of members that offer or request a capability that the gateway removes. */
export function withheldPaths({ method, era, params, meta }: Offering): readonly (readonly string[])[] {
  if (era === 'modern') {
    const offered = withheldIn(member(meta, META_CAPABILITIES), MODERN_OFFER)
    // Ignored by servers of this revision.
    return member(params, 'task') === undefined ? offered : [...offered, ['params', 'task']]
  }
  if (method === 'initialize') return withheldIn(member(params, 'capabilities'), LEGACY_OFFER)
  const task = method === 'tools/call' ? member(params, 'task') : undefined
  return isObject(task) ? namesBeyond(TASK_MEMBERS, task).map((name) => ['params', 'task', name]) : NOTHING
}

/** The members of `params` that the protocol defines, for methods of which policies judge only the arguments. */
const JUDGED: Readonly<Record<string, ReadonlySet<string>>> = {
  'tools/call': new Set(['name', 'arguments', '_meta', 'task', 'inputResponses', 'requestState']),
  'tasks/update': new Set(['taskId', 'inputResponses', '_meta']),
  'prompts/get': new Set(['name', 'arguments', '_meta', 'inputResponses', 'requestState']),
}

const LIST: ReadonlySet<string> = new Set(['cursor', '_meta'])
const META_ONLY: ReadonlySet<string> = new Set(['_meta'])
const TASK: ReadonlySet<string> = new Set(['taskId', '_meta'])

/** The same for methods that are forwarded without a policy decision. */
const UNJUDGED: Readonly<Record<string, ReadonlySet<string>>> = {
  initialize: new Set(['protocolVersion', 'capabilities', 'clientInfo', '_meta']),
  ping: META_ONLY,
  'logging/setLevel': new Set(['level', '_meta']),
  'notifications/initialized': META_ONLY,
  'notifications/progress': new Set(['progressToken', 'progress', 'total', 'message', '_meta']),
  'notifications/roots/list_changed': META_ONLY,
  'notifications/cancelled': new Set(['requestId', 'reason', '_meta']),
  'server/discover': META_ONLY,
  'tools/list': LIST,
  'resources/list': LIST,
  'resources/templates/list': LIST,
  'prompts/list': LIST,
  'tasks/list': LIST,
  'tasks/get': TASK,
  'tasks/result': TASK,
  'tasks/cancel': TASK,
  'subscriptions/listen': new Set(['notifications', '_meta']),
}

/**
 * Returns the paths of members that policies would not see: members of `params` that no revision defines and, for messages without a
 * policy decision, free members of `_meta`. They are not forwarded.
 */
export function unseenPaths(method: string, params: unknown): readonly (readonly string[])[] {
  if (!isObject(params)) return NOTHING
  const unjudged = Object.hasOwn(UNJUDGED, method) ? UNJUDGED[method] : undefined
  const known = Object.hasOwn(JUDGED, method) ? JUDGED[method] : unjudged
  if (known === undefined) return NOTHING
  const strange = namesBeyond(known, params)
  const free = unjudged === undefined ? NOTHING : freeMetaNames(params._meta)
  if (strange.length === 0 && free.length === 0) return NOTHING
  return [...strange.map((name) => ['params', name]), ...free.map((name) => ['params', '_meta', name])]
}

function withheldIn(capabilities: unknown, at: readonly string[]): readonly (readonly string[])[] {
  return member(capabilities, TASKS) === undefined ? NOTHING : [[...at, TASKS]]
}

/** Returns the client's capabilities in a message of revision 2026-07-28. */
function capabilitiesIn(message: unknown): unknown {
  return member(member(member(message, 'params'), '_meta'), META_CAPABILITIES)
}

/** Returns the response to `server/discover` without versions that are not permitted. Returns the same bytes when nothing was removed. */
export function trimAnnouncement(json: Uint8Array, message: unknown, revisions: readonly string[]): Uint8Array {
  const versions = member(member(message, 'result'), 'supportedVersions')
  const span = Array.isArray(versions) ? findSpan(json, ['result', 'supportedVersions']) : null
  if (span === null || !Array.isArray(versions)) return json
  return withoutElements(json, span[0], (index) => revisions.includes(String(versions[index])))
}

/** Returns the revisions that may be used with a server: those of its resource that the gateway supports. */
export function spokenRevisions(protocolVersions: readonly string[] | null): readonly string[] {
  if (protocolVersions === null || protocolVersions.length === 0) return KNOWN_REVISIONS
  return KNOWN_REVISIONS.filter((revision) => protocolVersions.includes(revision))
}

/** Requests that a server may send to a client, with the required capability. The gateway itself responds to all others. */
const ASKS: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
}

/** Returns true if a server may send this request to a client. */
export function isAsk(method: unknown): boolean {
  return typeof method === 'string' && Object.hasOwn(ASKS, method)
}

/**
 * Returns true if a result requires a capability that the client did not offer: a task, which only calls of tools create, or input of another
 * kind. `request` is the message of revision 2026-07-28 to which it responds; null for earlier revisions, whose results require nothing.
 */
export function asksForWithheld(answer: McpFrame, request: unknown): boolean {
  const result = resultOf(answer.value)
  if (result === null) return false
  if (result.resultType === 'task') return member(request, 'method') !== 'tools/call' || !declaresTasks(request)
  const { inputRequests } = result
  if (!isObject(inputRequests)) return false
  const offered = capabilitiesIn(request)
  return Object.values(inputRequests).some((one) => !isOffered(member(one, 'method'), offered))
}

function isOffered(method: unknown, capabilities: unknown): boolean {
  const name = typeof method === 'string' && Object.hasOwn(ASKS, method) ? ASKS[method] : undefined
  return name !== undefined && member(capabilities, name) !== undefined
}
