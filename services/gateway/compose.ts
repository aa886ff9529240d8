import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { BuildInfo, Clock, Ids } from '@plat/core'
import { createDialer, type Dialer, type RawRoute } from '@plat/http'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import { createAdmin } from './admin/index.ts'
import { isDenial, Snapshots } from './call/index.ts'
import type { GatewayConfig } from './config.ts'
import {
  authMetrics,
  budgetMetrics,
  captureMetrics,
  dlpMetrics,
  failoverMetrics,
  guardMetrics,
  modelMetrics,
  pinMetrics,
  policyMetrics,
  regoMetrics,
  residencyMetrics,
  revocationMetrics,
  runnerMetrics,
  serverMetrics,
  svidMetrics,
  taintMetrics,
} from './counting.ts'
import { createApprovals } from './features/approvals/index.ts'
import { createAudit } from './features/audit/index.ts'
import { createBudgets, type OpeningLimits, openLimits, pricingSlot } from './features/budgets/index.ts'
import { createCaptures } from './features/captures/index.ts'
import { createCredentials } from './features/credentials/index.ts'
import { createDlp, createEraser } from './features/dlp/index.ts'
import { createGuards } from './features/guards/index.ts'
import { type Authenticator, createAuthenticator, openPeople, type People } from './features/identity/index.ts'
import { bindToSvid, createProfiling } from './features/listeners/index.ts'
import { createModels } from './features/models/index.ts'
import { createPins, type PinsFeature, type ServerPins } from './features/pins/index.ts'
import { createPolicies, createRego, policySlot } from './features/policy/index.ts'
import { createResidency, type ResidencyFeature } from './features/residency/index.ts'
import { createRevocations } from './features/revocations/index.ts'
import { createServers, registrySlot } from './features/servers/index.ts'
import { createTaint } from './features/taint/index.ts'
import { createTokenVault } from './features/token-vault/index.ts'
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts'
import {
  createLiveCalls,
  createRunner,
  type LiveCalls,
  matrix,
  type Plane,
  type Runner,
  resolveByPlane,
  scopeOnlyModels,
  stages,
} from './pipeline/index.ts'
import {
  type AskingPlane,
  createListReview,
  createMcpPlane,
  createMessageRedactReview,
  createPinReview,
  createSealer,
  loadSealKeys,
  mcpTexts,
  type Sealer,
} from './planes/mcp/index.ts'
import {
  createAnswerRedactReview,
  createDemand,
  createMeter,
  createModelPlane,
  modelTexts,
} from './planes/model/index.ts'

/** What a gateway is made of, beside its own parts. */
export interface GatewayOptions {
  /** As `loadGatewayConfig` gives it. */
  readonly config: GatewayConfig
  /** Where secrets come from (document 3, "Secrets that never go in the file"). */
  readonly env: NodeJS.ProcessEnv
  readonly build: BuildInfo
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** What `gateway.ts` serves. */
export interface Parts {
  readonly routes: readonly RawRoute[]
  /** Host names that a listener on loopback answers to, beside the loopback ones. */
  readonly hosts: readonly string[]
  /** Origins of the gateway's own pages. */
  readonly origins: readonly string[]
  readonly metrics: GatewayMetrics
  readonly live: LiveCalls
  /** Adds the admin API to the listener that serves it. */
  admin(app: FastifyInstance): void
  /** Adds what people open in a browser to the main listener. */
  pages(app: FastifyInstance): void
  /** How the tools of every server stand against their pins. */
  pins(): readonly ServerPins[]
  close(): Promise<void>
}

/** What every feature may be given. */
interface Shared extends GatewayOptions, OpeningLimits {
  readonly metrics: GatewayMetrics
  readonly snapshots: Snapshots
  readonly audit: Awaited<ReturnType<typeof createAudit>>
  readonly dialer: Dialer
  readonly residency: ResidencyFeature
  readonly live: LiveCalls
  readonly sealer: Sealer
  /** `upstreamCAFile`, its PEM; null when empty. */
  readonly extraCA: string | null
  /** Closes the part when the gateway stops, after everything that was started later. */
  keep<T extends { close(): unknown }>(part: T): T
}

/**
 * The composition root: builds the features in order, lists the stages, mounts the planes. No logic.
 * Rejects when a feature cannot start; what was started before it is stopped.
 */
export async function compose(options: GatewayOptions): Promise<Parts> {
  await using starting = new AsyncDisposableStack()
  const shared = await openShared(options, starting)
  const features = await startFeatures(shared)
  const mcp = await mcpPlane(shared, features)
  const model = modelPlane(shared, features)
  const pins = await startPins(shared, features, mcp)
  const runner = createPipeline(shared, { ...features, pins })
  const { config, env, clock, log, metrics, audit, live } = shared
  const people = await openAdmins(shared)
  const admin = createAdmin({ env, config: config.adminAuth, people, ledgers: audit.ledgers, log })
  const mount = (prefix: string, plane: Plane): RawRoute => ({
    prefix,
    handle: (exchange) => void runner.run(exchange, plane),
  })
  const { vault } = features
  const urls = [config.identity.resourceBaseURL || null, vault.publicURL].filter((url) => url !== null)
  const started = starting.move()
  return {
    routes: [mount('/mcp/', mcp), mount('/llm/', model), features.authenticator.metadata],
    hosts: urls.map((url) => new URL(url).hostname),
    origins: vault.publicURL === null ? [] : [vault.publicURL.origin],
    metrics,
    live,
    admin: (app) =>
      admin.mount(app, [
        features.approvals.routes,
        features.revocations.routes,
        pins.routes,
        features.budgets.routes,
        vault.routes,
        audit.routes,
        createProfiling(clock),
      ]),
    pages: (app) => vault.pages(app),
    pins: () => pins.reports(),
    close: () => started.disposeAsync(),
  }
}

async function openShared(options: GatewayOptions, started: AsyncDisposableStack): Promise<Shared> {
  const { config, env, clock, ids, log } = options
  const keep: Shared['keep'] = (part) => started.adopt(part, async () => void (await part.close()))
  const metrics = createGatewayMetrics(options.build, config)
  const snapshots = new Snapshots()
  const residency = keep(createResidency({ config, snapshots, clock, log, ...residencyMetrics(metrics) }))
  await residency.check()
  const opening = await openLimits({ config, clock, log })
  return {
    ...options,
    ...opening,
    keep,
    metrics,
    snapshots,
    residency,
    audit: keep(await createAudit({ ...options, metrics, onRecord: opening.spending.see })),
    dialer: keep(residency.dialer(createDialer({ clock, log }))),
    live: keep(createLiveCalls(clock)),
    sealer: createSealer(await loadSealKeys({ env, stateDir: path.dirname(config.auditPath), ids }), clock, ids),
    extraCA: config.upstreamCAFile === '' ? null : await readFile(config.upstreamCAFile, 'utf8'),
  }
}

/** Whose OIDC tokens the admin API takes; null in mode `token`. */
async function openAdmins({ config, dialer, clock, log, keep }: Shared): Promise<People | null> {
  const { mode, oidc } = config.adminAuth
  if (mode === 'token') return null
  return keep(await openPeople({ leewaySeconds: config.identity.leewaySeconds, ...oidc }, { dialer, clock, log }))
}

type Features = Awaited<ReturnType<typeof startFeatures>>

async function startFeatures(shared: Shared) {
  const { config, snapshots, clock, log, metrics, keep } = shared
  const { ledgers, placed } = shared.audit
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
  const vault = keep(await createTokenVault({ ...shared, revokedUsers, ledgers }))
  const credentials = keep(createCredentials({ ...shared, userTokens: vault.tokens, sessionToken }))
  const servers = keep(createServers({ ...shared, missingScopes, credentials, metrics: serverMetrics(metrics) }))
  const models = keep(createModels({ ...shared, metrics: modelMetrics(metrics) }))
  const taint = keep(
    await createTaint({ ...shared, clears: (snapshot) => servers.clears(snapshot), metrics: taintMetrics(metrics) }),
  )
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
  const pending = metrics.gauge('plat_gateway_approvals_pending')
  const approvals = keep(
    await createApprovals({ ...shared, ledgers, metrics: { pending: (count) => pending.set({}, count) } }),
  )
  const demandOf = createDemand(models.route)
  const budgets = keep(await createBudgets({ ...shared, ledgers, placed, demandOf, metrics: budgetMetrics(metrics) }))
  await Promise.all([servers.check(), models.check(), guards.check(), policies.check(), budgets.check()])
  return {
    authenticator,
    revocations,
    vault,
    credentials,
    servers,
    models,
    taint,
    captures,
    guards,
    policies,
    approvals,
    budgets,
  }
}

/** Pins ask servers for their tools, so they come after the plane that can. */
async function startPins(shared: Shared, { servers }: Features, mcp: AskingPlane) {
  const { audit, metrics, keep } = shared
  return keep(
    await createPins({
      ...shared,
      rules: (snapshot, key) => servers.upstream(snapshot, key)?.pins ?? null,
      list: (call) => mcp.listTools(call),
      ledgers: audit.ledgers,
      metrics: pinMetrics(metrics),
    }),
  )
}

/** What must not pass, by the profiles of the configuration and the names that servers and routes give. */
function createRedaction({ config, metrics }: Shared, { servers, models }: Features) {
  return createDlp({
    config,
    ownProfile({ snapshot, facts: { target } }) {
      const place =
        target.kind === 'model' ? models.route(snapshot, target.key) : servers.upstream(snapshot, target.key)
      return place?.dlpProfile ?? null
    },
    texts: { mcp: mcpTexts, model: modelTexts },
    count: dlpMetrics(metrics),
  })
}

/** The order of the governed call: the request's stages, the reply's reviews. */
function createPipeline(shared: Shared, features: Features & { readonly pins: PinsFeature }): Runner {
  const { authenticator, revocations, servers, models, taint, guards, policies, approvals, budgets, pins } = features
  const { config, audit, residency, live, snapshots, clock, log, metrics, keep } = shared
  const resolve = residency.resolve(resolveByPlane({ mcp: servers.stage, model: models.stage }), models.places)
  const { svidMode: mode, svidTrustDomains: trustDomains } = config.tls
  const svids = { mode, trustDomains, clock, ...svidMetrics(metrics) }
  const meters = [createMeter(budgets.price), budgets.toolMeter]
  const dlp = createRedaction(shared, features)
  return keep(
    createRunner({
      stages: stages([
        revocations.stage,
        resolve,
        pins.stage,
        taint.stage,
        policies.stage,
        dlp.stage,
        guards.stage,
        approvals.stage,
        budgets.stage,
      ]),
      reviews: [
        guards.review,
        createPinReview(pins.shows),
        createMessageRedactReview(dlp.redactor),
        createAnswerRedactReview(dlp.redactor),
        createListReview(({ snapshot, facts: { identity, target } }, tools) => {
          const sinksOf = (tool: string) => servers.labels(snapshot, target, tool).sinks
          return policies.shows(snapshot, { identity, target, taints: taint.labelsOf(identity), sinksOf }, tools)
        }),
        taint.review,
        ...meters,
      ],
      matrix: config.modelPolicy === 'policy' ? matrix : scopeOnlyModels,
      authenticate: bindToSvid((arrival) => authenticator.authenticate(arrival.wire), svids),
      ledgers: audit.ledgers,
      auditFailurePolicy: config.auditFailurePolicy,
      live,
      snapshots,
      clock,
      metrics: runnerMetrics(metrics),
      policyRevision: (snapshot) => snapshot.get(policySlot).revision,
      prices: (snapshot) => snapshot.get(pricingSlot),
      onArguments: features.captures.onArguments,
      log,
    }),
  )
}

/** What every plane reads and connects under. */
function limitsOf({ config, dialer, clock, extraCA }: Shared) {
  return {
    dialer,
    clock,
    extraCA,
    maxBodyBytes: config.maxBodyBytes,
    bodyReadTimeoutMs: config.bodyReadTimeoutSeconds * 1000,
    upstreamTimeoutMs: config.upstreamTimeoutSeconds * 1000,
  }
}

function modelPlane(shared: Shared, { models, budgets }: Features): Plane {
  const { config, metrics } = shared
  const attemptTimeoutMs = (config.modelRouting.attemptTimeoutSeconds || config.upstreamTimeoutSeconds) * 1000
  return createModelPlane({
    ...limitsOf(shared),
    attemptTimeoutMs,
    routes: models,
    residencyFault: shared.residency.fault,
    metrics: failoverMetrics(metrics),
    affords: budgets.affords,
  })
}

async function mcpPlane(shared: Shared, { servers, credentials }: Features): Promise<AskingPlane> {
  const { config, sealer, log } = shared
  return createMcpPlane({
    upstreams: {
      upstream: (snapshot, key) => servers.upstream(snapshot, key),
      named(snapshot, identity, server) {
        const found = snapshot.get(registrySlot).resolve(identity, server)
        return isDenial(found) ? null : found
      },
    },
    ...limitsOf(shared),
    credentials,
    sealer,
    log,
    origins: new Set(config.corsOrigins),
    resourceBaseURL: config.identity.resourceBaseURL || null,
  })
}
