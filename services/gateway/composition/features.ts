import type { Ledgers } from '@plat/ledger'
import {
  agentMetrics,
  authMetrics,
  budgetMetrics,
  bundleMetrics,
  captureMetrics,
  collectorMetrics,
  guardMetrics,
  modelMetrics,
  offlineMetrics,
  pinMetrics,
  policyMetrics,
  regoMetrics,
  revocationMetrics,
  serverMetrics,
  sinkMetrics,
  taintMetrics,
} from '../counting.ts'
import { createAgents } from '../features/a2a/index.ts'
import { createApprovals } from '../features/approvals/index.ts'
import { createAuditCollector } from '../features/audit-collector/index.ts'
import { startAuditSinks } from '../features/audit-sinks/index.ts'
import { createBudgets, pricingSlot } from '../features/budgets/index.ts'
import { createCaptures } from '../features/captures/index.ts'
import { createCiba } from '../features/ciba/index.ts'
import { createConfigBundle } from '../features/config-bundle/index.ts'
import { createCredentials } from '../features/credentials/index.ts'
import { createEraser } from '../features/dlp/index.ts'
import { createGuards } from '../features/guards/index.ts'
import { type Authenticator, createAuthenticator } from '../features/identity/index.ts'
import { createCloudLoans, createModels } from '../features/models/index.ts'
import { createNotifications, listened } from '../features/notifications/index.ts'
import { createOffline } from '../features/offline/index.ts'
import { createPins } from '../features/pins/index.ts'
import { createPolicies, createRego } from '../features/policy/index.ts'
import { createRevocations } from '../features/revocations/index.ts'
import { createServers } from '../features/servers/index.ts'
import { createSessions } from '../features/sessions/index.ts'
import { createTaint } from '../features/taint/index.ts'
import { createTokenVault } from '../features/token-vault/index.ts'
import { createTxnTokens } from '../features/txn-tokens/index.ts'
import { namedInCall } from '../planes/a2a/index.ts'
import type { AskingPlane } from '../planes/mcp/index.ts'
import { createDemand } from '../planes/model/index.ts'
import { startBuiltins } from './builtins.ts'
import { problemsOfBundle } from './bundled.ts'
import type { Shared } from './shared.ts'

/** Every feature of a gateway, by its folder's name. */
export type Features = Awaited<ReturnType<typeof startFeatures>>

/** Starts the features, each after those whose interfaces it is handed. Rejects when one cannot start. */
export async function startFeatures(shared: Shared) {
  const { config, snapshots, clock, log, metrics, keep } = shared
  const { placed, signer } = shared.audit
  const notifications = keep(await createNotifications(shared))
  shared.audit.onUnavailable((reason) => notifications.auditUnavailable(reason))
  const ledgers = listened(shared.audit.ledgers, notifications)
  const keepsTokens = config.tokenExchangeURL !== ''
  const { identity, dpop } = config
  const authenticator = keep(
    await createAuthenticator({ ...shared, config: identity, dpop, keepsTokens, metrics: authMetrics(metrics) }),
  )
  const forgetTokens = () => authenticator.clear()
  const revocations = keep(
    await createRevocations({ ...shared, forgetTokens, ledgers, metrics: revocationMetrics(metrics) }),
  )
  const missingScopes = authenticator.scopes.missing
  const sessionToken: Authenticator['sessionToken'] = (caller) => authenticator.sessionToken(caller)
  const { users: revokedUsers } = revocations
  const offline = keep(await createOffline({ ...shared, ledgers, signer, metrics: offlineMetrics(metrics) }))
  const bundles = keep(
    await createConfigBundle({
      ...shared,
      problemsOf: problemsOfBundle(config),
      ledger: ledgers.of(''),
      metrics: bundleMetrics(metrics),
    }),
  )
  const collector = keep(await createAuditCollector({ ...shared, ledgers, signer, metrics: collectorMetrics(metrics) }))
  const vault = keep(await createTokenVault({ ...shared, revokedUsers, ledgers }))
  const credentials = keep(createCredentials({ ...shared, userTokens: vault.tokens, sessionToken }))
  const builtins = await startBuiltins(shared)
  const servers = keep(
    createServers({ ...shared, missingScopes, credentials, builtins, metrics: serverMetrics(metrics) }),
  )
  const models = keep(createModels({ ...shared, metrics: modelMetrics(metrics) }))
  const agents = keep(await createAgents({ ...shared, namedIn: namedInCall, metrics: agentMetrics(metrics) }))
  const taint = keep(
    await createTaint({ ...shared, clears: (snapshot) => servers.clears(snapshot), metrics: taintMetrics(metrics) }),
  )
  const transactions = await createTxnTokens({
    ...shared,
    subjectOf: (caller) => authenticator.subject(caller),
    labelsOf: (caller) => taint.labelsOf(caller),
  })
  const redact = createEraser(config.dlpProfiles, config.captureArgs.dlpProfile)
  const captures = keep(await createCaptures({ ...shared, redact, metrics: captureMetrics(metrics) }))
  const guards = keep(
    createGuards({
      ...shared,
      taint: (identity, labels) => taint.add(identity, labels),
      labelsOf: (identity) => taint.labelsOf(identity),
      ledgers,
      metrics: guardMetrics(metrics),
    }),
  )
  const rego = createRego({ ...shared, ...regoMetrics(metrics) })
  const policies = keep(createPolicies({ config, snapshots, clock, log, rego, metrics: policyMetrics(metrics) }))
  const approvals = await startApprovals(shared, { policies, offline, notifications, ledgers })
  const demandOf = createDemand(models.route)
  const budgets = keep(await createBudgets({ ...shared, ledgers, placed, demandOf, metrics: budgetMetrics(metrics) }))
  const sessions = keep(
    createSessions({
      ...shared,
      placed,
      pendingApprovals: (session) => approvals.pendingOf(session),
      taints: (session) => taint.ownLabels(session),
      currency: () => snapshots.current.get(pricingSlot).currency,
    }),
  )
  await Promise.all([
    servers.check(),
    models.check(),
    agents.check(),
    guards.check(),
    policies.check(),
    budgets.check(),
  ])
  return {
    authenticator,
    revocations,
    offline,
    collector,
    bundles,
    vault,
    credentials,
    servers,
    models,
    agents,
    taint,
    transactions,
    captures,
    guards,
    policies,
    approvals,
    notifications,
    budgets,
    sessions,
  }
}

/** People are asked: users by their identity provider, approvers wherever they are told. */
async function startApprovals(
  shared: Shared,
  { policies, offline, notifications, ledgers }: Pick<Features, 'policies' | 'offline' | 'notifications'> & Told,
) {
  const { audit, metrics, keep } = shared
  const ciba = await createCiba(shared)
  const pending = metrics.gauge('plat_gateway_approvals_pending')
  const recorded = audit.recent()
  const approvals = await createApprovals({
    ...shared,
    asking: (call) => policies.asking(call),
    mayApprove: offline.mayApprove,
    confirmer: ciba && keep(ciba),
    ledgers,
    recorded,
    metrics: { pending: (count) => pending.set({}, count) },
  })
  notifications.begin((id) => approvals.view(id), recorded)
  return keep(approvals)
}

/** Ledgers whose records people are told of. */
interface Told {
  readonly ledgers: Ledgers
}

/** Streams the ledger to the sinks. They come first: what is recorded while everything else stops still goes out. */
export async function startSinks(shared: Shared) {
  const { audit, metrics, keep } = shared
  const head = () => audit.ledgers.of('').head()
  const clouds = keep(createCloudLoans(shared))
  keep(await startAuditSinks({ ...shared, head, clouds, metrics: sinkMetrics(metrics) }))
}

/** Pins ask servers for their tools, so they come after the plane that can. */
export async function startPins(shared: Shared, { servers, notifications }: Features, mcp: AskingPlane) {
  const { audit, metrics, keep } = shared
  return keep(
    await createPins({
      ...shared,
      rules: (snapshot, key) => servers.upstream(snapshot, key)?.pins ?? null,
      list: (call) => mcp.listTools(call),
      ledgers: listened(audit.ledgers, notifications),
      metrics: pinMetrics(metrics),
    }),
  )
}
