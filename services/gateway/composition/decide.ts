import { marksOf } from '../admin/index.ts'
import { createCiba } from '../authn/ciba/index.ts'
import { isDenial } from '../call/index.ts'
import { REDACT_ALL } from '../content/captures/index.ts'
import { createEraser } from '../content/dlp/index.ts'
import { approvalEvent, createApprovals, grantEvent } from '../decide/approvals/index.ts'
import { createBudgets } from '../decide/budgets/index.ts'
import { createPins } from '../decide/pins/index.ts'
import { createPolicies, createRego, createSimulation } from '../decide/policy/index.ts'
import { createEnergy } from '../evidence/energy/index.ts'
import { startPinReports } from '../operate/pin-reports/index.ts'
import type { RequestingPlane } from '../planes/mcp/index.ts'
import { createAnswered, createDemand } from '../planes/model/index.ts'
import { currentTool, registrySlot, targetOf } from '../targets/servers/index.ts'
import type { Callers } from './callers.ts'
import type { Content } from './content.ts'
import type { Evidence } from './evidence.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

export type Decisions = Awaited<ReturnType<typeof startDecisions>>

/** Policies, approvals and budgets; and estimates of energy, which use the routes of models as well. */
export async function startDecisions(
  shared: Shared,
  { ledgers, notifications, events, offline, models, revocations, taint }: Callers & Evidence & Targets,
) {
  const { config, windowClock: clock, audit, keep } = shared
  const rego = createRego(shared)
  const policies = keep(createPolicies({ ...shared, clock, rego }))
  const ciba = await createCiba(shared)
  const recorded = audit.recent()
  const approvals = keep(
    await createApprovals({
      ...shared,
      approvalRules: (call) => policies.asking(call),
      personOf: (user) => marksOf({ names: [user], subject: null }, config.adminAuth.people),
      redactAll: createEraser(config.dlpProfiles, REDACT_ALL),
      mayApprove: offline.mayApprove,
      hasEnded: (session) => revocations.hasEnded(session),
      labelsOf: (session) => taint.ownLabels(session),
      onChange: (event, approval) => events.add(approvalEvent(event.t, approval)),
      onGrant: (change, entry) => events.add(grantEvent(change, entry)),
      confirmer: ciba && keep(ciba),
      ledgers,
      recorded,
    }),
  )
  notifications.begin(
    (id) => approvals.view(id),
    recorded,
    () => approvals.latest(),
  )
  const demandOf = createDemand(models.route)
  const { placed, flushed } = audit
  const ofTenants = {
    tenantLedgers: () => audit.all().filter(({ tenant }) => tenant !== ''),
    ledgerPaths: () => audit.all().map(({ path }) => path),
  }
  const budgets = keep(await createBudgets({ ...shared, ...ofTenants, clock, ledgers, placed, flushed, demandOf }))
  const energy = keep(createEnergy({ ...shared, endpointOf: createAnswered(models.route) }))
  return { policies, approvals, budgets, energy }
}

/** Evaluates policies that are not in force for calls of the ledger. */
export function startSimulation(
  { audit, snapshots, clock }: Shared,
  { captures, policies }: Pick<Content & Decisions, 'captures' | 'policies'>,
) {
  return createSimulation({
    clock,
    inForce: () => policies.listed(),
    targetOf(identity, name, tool) {
      const registry = snapshots.current.get(registrySlot)
      const server = registry.nameOf(identity, name)
      const found = registry.resolve(identity, server)
      return isDenial(found) ? found : targetOf({ operation: 'mcp.call', server, name: tool }, found)
    },
    ledgerOf: (tenant) => audit.of(tenant)?.path ?? null,
    captured: (namespace, argsSha256) => captures.read(namespace, argsSha256),
    currentToolOf: (identity, server, tool) =>
      currentTool(snapshots.current.get(registrySlot).resolve(identity, server), tool),
  })
}

/** Pins list the tools of servers, so they start after the MCP plane; their reports go to the cluster. */
export async function startPins(
  shared: Shared,
  { servers, ledgers }: Pick<Targets, 'servers'> & Pick<Callers, 'ledgers'>,
  mcp: RequestingPlane,
) {
  const pins = shared.keep(
    await createPins({
      ...shared,
      rules: (snapshot, key) => servers.upstream(snapshot, key)?.pins ?? null,
      list: (call) => mcp.listTools(call),
      ledgers,
    }),
  )
  const reports = await startPinReports({
    ...shared,
    servers: () => pins.servers(),
    report: (server) => pins.report(server),
  })
  if (reports !== null) shared.keep(reports)
  return pins
}
