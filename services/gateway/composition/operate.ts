import { pricingSlot } from '../decide/budgets/index.ts'
import { createSandboxUsage } from '../operate/sandbox-usage/index.ts'
import { createSessions } from '../operate/sessions/index.ts'
import type { Callers } from './callers.ts'
import type { Decisions } from './decide.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

/** The sessions that called, with their pending approvals, taint labels and cost. */
export function startSessions(
  shared: Shared,
  { authenticator, approvals, taint, events }: Pick<Callers, 'authenticator' | 'events'> & Targets & Decisions,
) {
  const { snapshots, audit, keep } = shared
  return keep(
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
