import { pricingSlot } from '../decide/budgets/index.ts'
import { EndedSessions } from '../operate/events/index.ts'
import { createSandboxUsage } from '../operate/sandbox-usage/index.ts'
import { createSessions } from '../operate/sessions/index.ts'
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
  const { snapshots, audit, keep, clock } = shared
  const sessions = keep(
    createSessions({
      ...shared,
      placed: audit.placed,
      onBegun: events.sessionStarted,
      pendingApprovals: (session) =>
        approvals.pendingOf({ ...session, tenant: authenticator.tenantOf(session.namespace) }),
      taints: (session) => taint.ownLabels(session),
      currency: () => snapshots.current.get(pricingSlot).currency,
    }),
  )
  const ended = keep(
    new EndedSessions({
      clock,
      sessions: () => sessions.listed(),
      hasEnded: (one) => revocations.hasEnded({ ...one, tenant: authenticator.tenantOf(one.namespace) }),
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
  const { charging } = budgets
  const find: typeof sessions.find = (name) => sessions.find(name)
  const see: typeof sessions.see = (record, at) => sessions.see(record, at)
  const usage = await createSandboxUsage({ ...shared, ledgers, charging, find, see })
  return usage === null ? null : shared.keep(usage)
}
