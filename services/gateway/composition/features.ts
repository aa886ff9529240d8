import { followLicense, licenseMeter } from '@plat/license'
import { marksOf } from '../admin/index.ts'
import { createCiba } from '../authn/ciba/index.ts'
import { createCredentials } from '../authn/credentials/index.ts'
import { type Authenticator, createAuthenticator } from '../authn/identity/index.ts'
import { createTokenVault } from '../authn/token-vault/index.ts'
import { createTxnTokens } from '../authn/txn-tokens/index.ts'
import { createMemory } from '../builtin/memory/index.ts'
import { isDenial, type Snapshot } from '../call/index.ts'
import { createCaptures, REDACT_ALL } from '../content/captures/index.ts'
import { createEraser, createScreens } from '../content/dlp/index.ts'
import { createGuards } from '../content/guards/index.ts'
import { createApprovals } from '../decide/approvals/index.ts'
import { createBudgets, pricingSlot } from '../decide/budgets/index.ts'
import { createPins } from '../decide/pins/index.ts'
import { createPolicies, createRego, createSimulation } from '../decide/policy/index.ts'
import { createRevocations } from '../decide/revocations/index.ts'
import { createTaint } from '../decide/taint/index.ts'
import { createAuditCollector } from '../evidence/audit-collector/index.ts'
import { startAuditSinks } from '../evidence/audit-sinks/index.ts'
import { createEnergy } from '../evidence/energy/index.ts'
import { createEvidence } from '../evidence/objects/index.ts'
import { createOffline } from '../evidence/offline/index.ts'
import { createTransparency } from '../evidence/transparency/index.ts'
import { createConfigBundle } from '../operate/config-bundle/index.ts'
import { createNotifications, listened } from '../operate/notifications/index.ts'
import { createSandboxUsage } from '../operate/sandbox-usage/index.ts'
import { createSessions } from '../operate/sessions/index.ts'
import { namedInCall } from '../planes/a2a/index.ts'
import type { RequestingPlane } from '../planes/mcp/index.ts'
import { createAnswered, createDemand } from '../planes/model/index.ts'
import { createAgents } from '../targets/a2a/index.ts'
import { createCloudLoans, createModels } from '../targets/models/index.ts'
import { createServers, registrySlot } from '../targets/servers/index.ts'
import { startBuiltins } from './builtins.ts'
import { problemsOfBundle } from './bundled.ts'
import { startCopies } from './copies.ts'
import type { Shared } from './shared.ts'
import { startTraces } from './traces.ts'

/** Every feature of a gateway, by its folder's name. */
export type Features = Awaited<ReturnType<typeof startFeatures>>

/** Starts the features, each after those whose interfaces it is handed. Rejects when one cannot start. */
export async function startFeatures(shared: Shared) {
  const callers = await startCallers(shared)
  const carriers = await startCarriers(shared, callers)
  const targets = await startTargets(shared, callers)
  const watchers = await startWatchers(shared, callers, targets)
  const judges = await startJudges(shared, { ...callers, ...carriers, ...targets })
  const sessions = startSessions(shared, { ...callers, ...targets, ...judges })
  const simulation = startSimulation(shared, watchers)
  const traces = startTraces(shared, targets)
  const { memory, servers, models, agents } = targets
  const activity = await startCopies(shared, { ...callers, ...targets })
  const { policies, budgets, energy } = judges
  const files = [memory, servers, models, agents, watchers.guards, policies, budgets, energy]
  await Promise.all(files.map((feature) => feature.check()))
  // What was not finished is charged at once, which needs the budgets.
  const usage = await startUsage(shared, { ...callers, ...judges, sessions })
  return { ...callers, ...carriers, ...targets, ...watchers, ...judges, sessions, usage, simulation, activity, traces }
}

type Callers = Awaited<ReturnType<typeof startCallers>>
type Carriers = Awaited<ReturnType<typeof startCarriers>>
type Targets = Awaited<ReturnType<typeof startTargets>>
type Judges = Awaited<ReturnType<typeof startJudges>>

/** Who calls, and who may not any more. What is recorded from here on is told to notifiers too. */
async function startCallers(shared: Shared) {
  const { config, audit, keep } = shared
  const { identity, dpop } = config
  const notifications = keep(await createNotifications(shared))
  audit.onUnavailable((reason) => notifications.auditUnavailable(reason))
  const ledgers = listened(audit.ledgers, notifications)
  const keepsTokens = config.tokenExchangeURL !== ''
  const authenticator = keep(await createAuthenticator({ ...shared, config: identity, dpop, keepsTokens }))
  const forgetTokens = () => authenticator.clear()
  const revocations = keep(await createRevocations({ ...shared, forgetTokens, ledgers }))
  shared.readiness.add('revocations', () => revocations.isKnown())
  return { notifications, ledgers, authenticator, revocations }
}

/** What carries records away and configuration in, and the licence. */
async function startCarriers(shared: Shared, { ledgers }: Callers) {
  const { config, metrics, audit, keep } = shared
  const { signer } = audit
  const offline = keep(await createOffline({ ...shared, ledgers, signer }))
  const collector = keep(await createAuditCollector({ ...shared, ledgers, signer }))
  const { checkpoints } = audit
  const anchors = keep(await createTransparency({ ...shared, ledgers, checkpoints }))
  const evidence = createEvidence({ ...shared, checkpoints, ledgers })
  const problemsOf = problemsOfBundle(config)
  const bundles = keep(await createConfigBundle({ ...shared, problemsOf, ledger: ledgers.of('') }))
  keep(await followLicense({ ...shared, path: config.licenseFile, onStanding: licenseMeter(metrics) }))
  return { offline, collector, anchors, evidence, bundles }
}

/** What can be called, and what it is shown. */
async function startTargets(shared: Shared, { authenticator, revocations, ledgers }: Callers) {
  const { config, metrics, keep } = shared
  const vault = keep(await createTokenVault({ ...shared, revokedUsers: revocations.users, ledgers }))
  const sessionToken: Authenticator['sessionToken'] = (caller) => authenticator.sessionToken(caller)
  const credentials = keep(createCredentials({ ...shared, userTokens: vault.tokens, sessionToken }))
  const clears = (snapshot: Snapshot) => snapshot.get(registrySlot).clears
  const taint = keep(await createTaint({ ...shared, clears }))
  const screens = createScreens(config.dlpProfiles, metrics)
  const memory = keep(await createMemory({ ...shared, labels: taint, screens, ledgers }))
  const builtins = [...(await startBuiltins(shared)), memory.server].filter((server) => server !== null)
  const missingScopes = authenticator.scopes.missing
  const servers = keep(createServers({ ...shared, missingScopes, credentials, builtins }))
  const models = keep(createModels({ ...shared, labelsOf: (caller) => taint.seen(caller) }))
  const agents = keep(
    await createAgents({
      ...shared,
      namedIn: namedInCall,
      labels: taint,
    }),
  )
  return { vault, credentials, taint, memory, servers, models, agents }
}

/** What looks into calls and remembers what it saw. */
async function startWatchers(shared: Shared, { authenticator, ledgers }: Callers, { taint }: Targets) {
  const { config, keep } = shared
  const labelsOf: typeof taint.labelsOf = (caller) => taint.labelsOf(caller)
  const transactions = await createTxnTokens({
    ...shared,
    subjectOf: (caller) => authenticator.subject(caller),
    labelsOf,
  })
  const redact = createEraser(config.dlpProfiles, config.captureArgs.dlpProfile)
  const captures = keep(await createCaptures({ ...shared, redact }))
  const guards = keep(
    createGuards({
      ...shared,
      taint: (identity, labels) => taint.add(identity, labels),
      labelsOf,
      ledgers,
    }),
  )
  return { transactions, captures, guards }
}

/** What decides: rules, people, money. And what calls take beside money. */
async function startJudges(shared: Shared, { ledgers, notifications, offline, models }: Callers & Carriers & Targets) {
  const { config, windowClock: clock, audit, keep } = shared
  const rego = createRego(shared)
  const policies = keep(createPolicies({ ...shared, clock, rego }))
  const ciba = await createCiba(shared)
  const recorded = audit.recent()
  const approvals = keep(
    await createApprovals({
      ...shared,
      asking: (call) => policies.asking(call),
      personOf: (user) => marksOf({ names: [user], subject: null }, config.adminAuth.people),
      redactAll: createEraser(config.dlpProfiles, REDACT_ALL),
      mayApprove: offline.mayApprove,
      confirmer: ciba && keep(ciba),
      ledgers,
      recorded,
    }),
  )
  notifications.begin((id) => approvals.view(id), recorded)
  const demandOf = createDemand(models.route)
  const { placed } = audit
  const budgets = keep(await createBudgets({ ...shared, clock, ledgers, placed, demandOf }))
  const energy = keep(createEnergy({ ...shared, answered: createAnswered(models.route) }))
  return { policies, approvals, budgets, energy }
}

/** Who has called, and what stands against them. */
function startSessions(
  shared: Shared,
  { authenticator, approvals, taint }: Pick<Callers, 'authenticator'> & Targets & Judges,
) {
  const { snapshots, audit, keep } = shared
  return keep(
    createSessions({
      ...shared,
      placed: audit.placed,
      pendingApprovals: (session) =>
        approvals.pendingOf({ ...session, tenant: authenticator.tenantOf(session.namespace) }),
      taints: (session) => taint.ownLabels(session),
      currency: () => snapshots.current.get(pricingSlot).currency,
    }),
  )
}

/** What policies that are not in force would say of calls that were made. */
function startSimulation(
  { config, snapshots }: Shared,
  { captures }: Pick<Awaited<ReturnType<typeof startWatchers>>, 'captures'>,
) {
  return createSimulation({
    auditPath: config.auditPath,
    captured: (namespace, argsSha256) => captures.read(namespace, argsSha256),
    sinksOf(identity, server, tool) {
      const found = snapshots.current.get(registrySlot).resolve(identity, server)
      return isDenial(found) ? [] : found.labels.of(tool).sinks
    },
  })
}

/** What sandboxes used without calling; null: nobody reports it. */
async function startUsage(
  shared: Shared,
  {
    ledgers,
    budgets,
    sessions,
  }: Pick<Callers & Judges, 'ledgers' | 'budgets'> & {
    readonly sessions: ReturnType<typeof startSessions>
  },
) {
  const { charging } = budgets
  const find: typeof sessions.find = (name) => sessions.find(name)
  const see: typeof sessions.see = (record, at) => sessions.see(record, at)
  const usage = await createSandboxUsage({ ...shared, ledgers, charging, find, see })
  return usage === null ? null : shared.keep(usage)
}

/** Streams the ledger to the sinks. They come first: what is recorded while everything else stops still goes out. */
export async function startSinks(shared: Shared) {
  const { audit, keep } = shared
  const head = () => audit.ledgers.of('').head()
  const clouds = keep(createCloudLoans(shared))
  keep(await startAuditSinks({ ...shared, head, clouds }))
}

/** Pins ask servers for their tools, so they come after the plane that can. */
export async function startPins(shared: Shared, { servers, notifications }: Features, mcp: RequestingPlane) {
  const { audit, keep } = shared
  return keep(
    await createPins({
      ...shared,
      rules: (snapshot, key) => servers.upstream(snapshot, key)?.pins ?? null,
      list: (call) => mcp.listTools(call),
      ledgers: listened(audit.ledgers, notifications),
    }),
  )
}
