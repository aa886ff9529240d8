import type { Operation } from '../../call/index.ts'

/** The supported revisions, oldest first. */
export const KNOWN_REVISIONS: readonly string[] = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

/** The first revision without sessions: every request has its version and its capabilities. */
export const FIRST_MODERN_REVISION = '2026-07-28'

/** The revision of a legacy request without a version header (revision 2025-06-18, "Protocol Version Header"). */
export const ASSUMED_REVISION = '2025-03-26'

/** `legacy` has sessions and a handshake, `modern` has neither. Messages are not translated between the two. */
export type Era = 'legacy' | 'modern'

/** A supported method. */
export interface MethodRow {
  readonly operation: Operation
  /** The member of `params` with the requested name, which `Mcp-Name` mirrors. */
  readonly name: 'name' | 'uri' | 'taskId' | null
  readonly eras: readonly Era[]
}

const both: readonly Era[] = ['legacy', 'modern']
const legacy: readonly Era[] = ['legacy']
const modern: readonly Era[] = ['modern']

/** The supported methods, each with the operation whose row of the stage matrix applies. Other methods are refused as unknown. */
const table: Readonly<Record<string, MethodRow>> = {
  initialize: { operation: 'mcp.control', name: null, eras: legacy },
  ping: { operation: 'mcp.control', name: null, eras: legacy },
  'logging/setLevel': { operation: 'mcp.control', name: null, eras: legacy },
  'notifications/initialized': { operation: 'mcp.control', name: null, eras: legacy },
  'notifications/progress': { operation: 'mcp.control', name: null, eras: legacy },
  'notifications/roots/list_changed': { operation: 'mcp.control', name: null, eras: legacy },
  'notifications/cancelled': { operation: 'mcp.control', name: null, eras: both },
  'server/discover': { operation: 'mcp.list', name: null, eras: modern },
  'tools/list': { operation: 'mcp.list', name: null, eras: both },
  'resources/list': { operation: 'mcp.list', name: null, eras: both },
  'resources/templates/list': { operation: 'mcp.list', name: null, eras: both },
  'prompts/list': { operation: 'mcp.list', name: null, eras: both },
  'tools/call': { operation: 'mcp.call', name: 'name', eras: both },
  'resources/read': { operation: 'mcp.get', name: 'uri', eras: both },
  'prompts/get': { operation: 'mcp.get', name: 'name', eras: both },
  'completion/complete': { operation: 'mcp.get', name: null, eras: both },
  'resources/subscribe': { operation: 'mcp.get', name: 'uri', eras: legacy },
  'resources/unsubscribe': { operation: 'mcp.get', name: 'uri', eras: legacy },
  'tasks/get': { operation: 'mcp.task', name: 'taskId', eras: both },
  'tasks/cancel': { operation: 'mcp.task', name: 'taskId', eras: both },
  'tasks/result': { operation: 'mcp.task', name: 'taskId', eras: legacy },
  'tasks/update': { operation: 'mcp.task', name: 'taskId', eras: modern },
  'tasks/list': { operation: 'mcp.list', name: null, eras: legacy },
  'subscriptions/listen': { operation: 'mcp.listen', name: null, eras: modern },
}

/** Returns the row of a method, or null when the method does not exist in this era. */
export function methodRow(method: string, era: Era): MethodRow | null {
  const row = Object.hasOwn(table, method) ? table[method] : undefined
  return row?.eras.includes(era) ? row : null
}

/** The methods that are label values of metrics; others are counted as `_OTHER`. */
export const KNOWN_METHODS: readonly string[] = Object.keys(table)

/** Revisions are ISO dates, so that they can be compared as strings. */
const REVISION = /^\d{4}-\d{2}-\d{2}$/

/** Returns true for versions of the era without sessions, including future dates. */
export function isModernRevision(version: string): boolean {
  return REVISION.test(version) && version >= FIRST_MODERN_REVISION
}

/** Prefix of the path; the rest is the name of a server. */
const PREFIX = '/mcp/'
/** Names of an MCPServer (docs/spec/crds.md) and of static upstreams (docs/spec/gateway.md, rule 7). */
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

let lastPath = ''
let lastName: string | null = null

/**
 * Returns the name of the server in a path, or null when the path has no valid name. Keeps the last one: V8 internalizes each new string that
 * is looked up in a `Map`.
 */
export function serverName(path: string): string | null {
  if (path === lastPath) return lastName
  const name = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : ''
  lastPath = path
  lastName = SERVER_NAME.test(name) ? name : null
  return lastName
}
