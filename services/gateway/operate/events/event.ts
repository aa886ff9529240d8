import type { Rec } from '@plat/ledger'

/** An event of the stream. */
export interface GatewayEvent {
  /** `<topic>.<what>`. */
  readonly type: string
  /** Null: of no single namespace; readers need the role in all of them. */
  readonly namespace: string | null
  readonly data: Readonly<Record<string, unknown>>
  /** Members for auditors only. */
  readonly audit?: Readonly<Record<string, unknown>>
}

/** Maximum length of a text in an event, in characters. Names of tools are as long as callers and servers make them, and events are retained. */
const TEXT_MAX_CHARS = 256

/** Returns the event with long texts cut. */
export function boundedEvent(event: GatewayEvent): GatewayEvent {
  const { data, audit } = event
  if (!hasLongText(data) && (audit === undefined || !hasLongText(audit))) return event
  return { ...event, data: cutTexts(data), ...(audit !== undefined && { audit: cutTexts(audit) }) }
}

function hasLongText(members: GatewayEvent['data']): boolean {
  return Object.values(members).some(isLong)
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > TEXT_MAX_CHARS
}

function cutTexts(members: GatewayEvent['data']): GatewayEvent['data'] {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, isLong(value) ? cut(value) : value]))
}

/** Copied, because a slice would keep the whole text in memory. */
function cut(text: string): string {
  return `${Buffer.from(text.slice(0, TEXT_MAX_CHARS - 1)).toString()}…`
}

/** Event of a record of the ledger, or null if it has none. Approvals and revocations have events from their journals, on every replica. */
export function eventOf(rec: Rec): GatewayEvent | null {
  if (rec.kind === 'revocation' && rec.source === 'file') {
    return { type: `revocation.${rec.action}`, namespace: null, data: { source: 'file' } }
  }
  if (rec.kind !== 'alert') return null
  const { alert, budget, key, window, percent, spent, cap, unit, currency, server, tool, digest } = rec
  if (alert === 'budget.threshold') {
    return { type: alert, namespace: null, data: { budget, key, window, percent, spent, cap, unit, currency } }
  }
  if (alert === 'pin.drift' || alert === 'pin.accepted' || alert === 'pin.rejected') {
    return { type: alert, namespace: String(server).split('/')[0] ?? '', data: { server, tool, digest } }
  }
  return null
}

/** Event of the last record of a call that was refused; null for other calls. */
export function denialOf(rec: Readonly<Record<string, unknown>>): GatewayEvent | null {
  const { action, namespace, agent, session, user, call, op, server, tool, code, policy, rule } = rec
  if (action !== 'deny' || typeof namespace !== 'string') return null
  return {
    type: 'denial.created',
    namespace,
    data: { namespace, agent, session },
    audit: { user, call, op, server, tool, code, policy, rule },
  }
}
