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
