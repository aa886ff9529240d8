import type { Rec } from '@plat/ledger'
import { pricingSlot } from '../decide/budgets/index.ts'
import { EndedSessions } from '../operate/events/index.ts'
import { isViewable } from '../operate/live-view/index.ts'
import { createSandboxUsage } from '../operate/sandbox-usage/index.ts'
import { createSessions, type Session } from '../operate/sessions/index.ts'
import type { Callers } from './callers.ts'
import type { Decisions } from './decide.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

/** The sessions that called, with their pending approvals, taint labels and cost. */
export function startSessions(
  shared: Shared,
  {
    authenticator,
    approvals,
    taint,
    events,
    revocations,
  }: Pick<Callers, 'authenticator' | 'events' | 'revocations'> & Targets & Decisions,
) {
  const { snapshots, audit, keep, clock, config } = shared
  const { tenancy } = shared
  // Without a list, the broker's keys name the tenants.
  const withTenant = <T extends Readonly<Session>>(session: T): T =>
    tenancy.isOn ? session : { ...session, tenant: authenticator.tenantOf(session.namespace) }
  const sessions = keep(
    createSessions({
      ...shared,
      ledgersAtStart: audit.all(),
      ledgersOf: (tenant) => audit.fleet.ledgers(tenant, '*'),
      reading: (work) => audit.fleet.reading(work),
      onBegun: events.sessionStarted,
      pendingApprovals: (session) => approvals.pendingOf(withTenant(session)),
      taints: (session) => taint.ownLabels(session),
      isViewable: (session) => isViewable(config.liveView, session) && !revocations.hasStopped(withTenant(session)),
      currency: () => snapshots.current.get(pricingSlot).currency,
    }),
  )
  audit.follow((rec, at, tenant) => sessions.see(rec, at, tenant))
  const ended = keep(
    new EndedSessions({
      clock,
      sessions: () => sessions.listed(),
      hasEnded: (one) => revocations.hasEnded(withTenant(one)),
      report: events.sessionEnded,
    }),
  )
  revocations.followChanges(ended.changed)
  revocations.followCuts(ended.changed)
  return sessions
}

/** Usage reports of sandboxes. Returns null when `sandboxUsage` is off. */
export async function startUsage(
  shared: Shared,
  {
    ledgers,
    budgets,
    sessions,
  }: Pick<Callers & Decisions, 'ledgers' | 'budgets'> & {
    readonly sessions: ReturnType<typeof startSessions>
  },
) {
  const { audit, tenancy } = shared
  const charging: typeof budgets.charging = {
    ...budgets.charging,
    take: (id, payer, cost) => budgets.charging.take(id, { ...payer, tenant: tenancy.of(payer.namespace) }, cost),
  }
  const find: typeof sessions.find = (name) => sessions.find({ ...name, tenant: tenancy.of(name.namespace) })
  const see = (record: Rec, at: number) => sessions.see(record, at, tenancy.of(String(record.namespace)))
  const ledgerOf = (namespace: string) => {
    const tenant = tenancy.of(namespace)
    return { ledger: ledgers.of(tenant), path: (audit.of(tenant) ?? audit).path }
  }
  const usage = await createSandboxUsage({ ...shared, ledgerOf, charging, find, see })
  return usage === null ? null : shared.keep(usage)
}
