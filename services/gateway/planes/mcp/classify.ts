import type { Operation } from '../../call/index.ts'

/** The revisions that the gateway speaks, oldest first. */
export const KNOWN_REVISIONS: readonly string[] = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

/** The first revision without sessions: every request names its version and its capabilities itself. */
export const FIRST_MODERN_REVISION = '2026-07-28'

/** What a legacy request without a version header speaks (revision 2025-06-18, "Protocol Version Header"). */
export const ASSUMED_REVISION = '2025-03-26'

/** `legacy` has sessions and a handshake, `modern` has neither. The two are relayed, never translated. */
export type Era = 'legacy' | 'modern'

/** A method that passes. */
export interface MethodRow {
  readonly operation: Operation
  /** The member of `params` that names what is asked for, and that `Mcp-Name` mirrors. */
  readonly name: 'name' | 'uri' | null
  readonly eras: readonly Era[]
}

const both: readonly Era[] = ['legacy', 'modern']
const legacy: readonly Era[] = ['legacy']
const modern: readonly Era[] = ['modern']

/**
 * Every method that passes, with the operation whose row of the stage matrix governs it. A method that is not here is refused
 * as unknown: what has no row has no verdict. `tasks/*` is left out on purpose, because the gateway takes the capability away.
 */
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
  'subscriptions/listen': { operation: 'mcp.listen', name: null, eras: modern },
}

/** The row of a method in an era; null: the method does not exist there. */
export function methodRow(method: string, era: Era): MethodRow | null {
  const row = Object.hasOwn(table, method) ? table[method] : undefined
  return row?.eras.includes(era) ? row : null
}

/** The methods that metrics may carry as a label; anything else is `_OTHER`. */
export const KNOWN_METHODS: readonly string[] = Object.keys(table)

/** Revisions are dates, so that the order of the texts is the order in time. */
const REVISION = /^\d{4}-\d{2}-\d{2}$/

/** Whether a version belongs to the era without sessions; future dates do. */
export function isModernRevision(version: string): boolean {
  return REVISION.test(version) && version >= FIRST_MODERN_REVISION
}
