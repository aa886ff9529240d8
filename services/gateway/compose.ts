import type { IncomingMessage } from 'node:http'
import { pathOfTarget } from '@plat/core'
import type { RawRoute, TunnelRequest } from '@plat/http'
import type { FastifyInstance } from 'fastify'
import {
  type Admin,
  AdminError,
  createAdmin,
  isRequired,
  type KnownPerson,
  marksOf,
  may,
  type Person,
  principalOf,
} from './admin/index.ts'
import { openPeople, type People } from './authn/identity/index.ts'
import { openBrowsers, startConsole } from './composition/console.ts'
import { startPins } from './composition/decide.ts'
import { startSinks } from './composition/evidence.ts'
import { type Features, startFeatures } from './composition/features.ts'
import { infraRoutes, startInfra } from './composition/infra.ts'
import { inventoryOf } from './composition/inventory.ts'
import { createPipeline } from './composition/pipeline.ts'
import { a2aPlane, mcpPlane, modelPlane, sharedMcpPlane } from './composition/planes.ts'
import { previewOf } from './composition/preview.ts'
import { execRoutes, type Sandboxes, startSandboxes, tunnelRoute } from './composition/sandbox.ts'
import { type GatewayOptions, openShared, type Shared } from './composition/shared.ts'
import { QuoteSum } from './decide/budgets/index.ts'
import type { PinsFeature, ServerPins } from './decide/pins/index.ts'
import type { GatewayMetrics } from './metrics.ts'
import { createOpenApi } from './openapi/document.ts'
import { createProfiling } from './operate/listeners/index.ts'
import { isViewPath } from './operate/live-view/index.ts'
import { createPostureRoutes } from './operate/posture/routes.ts'
import { createResources, type ResourcesFeature } from './operate/resource-api/index.ts'
import { createResourceProblems } from './operate/resource-problems/routes.ts'
import type { LiveCalls, Plane } from './pipeline/index.ts'

export type { GatewayOptions } from './composition/shared.ts'

/** The composed gateway, which `gateway.ts` serves. */
export interface Parts {
  readonly routes: readonly RawRoute[]
  /** The part that a separate admin listener serves. */
  readonly adminRoutes: readonly RawRoute[]
  /** Whether a route of the admin API may take the connection of a request for a WebSocket. */
  upgrades(request: IncomingMessage): boolean
  /** Takes CONNECT on the main listener; undefined: it is refused. */
  readonly tunnel: ((request: TunnelRequest) => void) | undefined
  /** Host names that a listener on loopback answers to, beside the loopback ones. */
  readonly hosts: readonly string[]
  /** Origins of the gateway's own pages. */
  readonly origins: readonly string[]
  readonly metrics: GatewayMetrics
  readonly live: LiveCalls
  /** Why most calls would be denied now; empty: they would not. */
  unavailable(): readonly string[]
  /** Ends watches, event streams and views, which have no end otherwise. */
  leave(): void
  /** The resource API; it is served where the admin API is. */
  readonly resources: ResourcesFeature
  /** The console is on, and has pages. */
  readonly hasConsole: boolean
  /** Adds the admin API and the console to the listener that serves them. */
  admin(app: FastifyInstance): void
  /** Adds what people open in a browser to the main listener. */
  pages(app: FastifyInstance): void
  /** How the tools of every server stand against their pins. */
  pins(): readonly ServerPins[]
  close(): Promise<void>
}

/**
 * The composition root: starts the features, puts them in the order of a call, mounts the planes. No logic.
 * Rejects when a feature cannot start; what was started before it is stopped.
 */
export async function compose(options: GatewayOptions): Promise<Parts> {
  await using starting = new AsyncDisposableStack()
  const shared = await openShared(options, starting)
  const sinks = await startSinks(shared)
  const features = await startFeatures(shared, sinks)
  const { traces, vault } = features
  const mcp = await mcpPlane(shared, features)
  const model = modelPlane(shared, features)
  const pins = await startPins(shared, features, mcp)
  const sandboxes = await startSandboxes(shared, features)
  const infra = startInfra(shared, features)
  const runner = createPipeline(shared, { ...features, pins, sandboxes, infra, mcp })
  model.judgeWith({ run: runner.nested, ids: shared.ids, sum: () => new QuoteSum() })
  const { config, metrics, live } = shared
  const admin = await startAdmin(shared)
  const console = startConsole(shared, admin, features.events)
  const resources = startResources(shared, admin)
  const mount = (prefix: string, plane: Plane): RawRoute => ({
    prefix,
    handle: (exchange) => void runner.run(exchange, plane),
  })
  const sharedMcp = traces.plane(sharedMcpPlane(shared, features, { plane: mcp, runner }))
  const a2a = traces.plane(a2aPlane(shared, features))
  const agents = features.agents.route((exchange) => void runner.run(exchange, a2a))
  const urls = [config.identity.resourceBaseURL || null, vault.publicURL, console.origin].filter((url) => url !== null)
  const adminRoutes = execRoutes(sandboxes, runner)
  const started = starting.move()
  return {
    routes: [
      mount('/mcp/', traces.plane(mcp)),
      { ...mount('/mcp', sharedMcp), takes: ({ url = '' }) => pathOfTarget(url) === '/mcp' },
      mount('/llm/', traces.plane(model)),
      ...(agents === null ? [] : [agents]),
      features.authenticator.metadata,
      ...adminRoutes,
      ...infraRoutes(infra, runner),
      ...(config.adminListen === '' ? resources.routes : []),
    ],
    adminRoutes: [...adminRoutes, ...resources.routes],
    tunnel: tunnelRoute(sandboxes, runner),
    upgrades: ({ url = '' }) => sandboxes.liveView !== null && isViewPath(url),
    hosts: urls.map((url) => new URL(url).hostname),
    origins: [vault.publicURL?.origin ?? null, console.origin].filter((origin) => origin !== null),
    metrics,
    live,
    unavailable: () => shared.readiness.reasons(),
    leave() {
      resources.leave()
      features.events.close()
      sandboxes.liveView?.leave()
    },
    resources,
    hasConsole: console.hasPages,
    admin: (app) => console.mount(app, administered(shared, { ...features, pins, sinks, mcp, sandboxes })),
    pages: (app) => mountPages(app, features, { ...config.adminAuth, tenancy: shared.tenancy }),
    pins: () => pins.reports(),
    close: () => started.disposeAsync(),
  }
}

function startResources(shared: Shared, { authenticate }: Admin): ResourcesFeature {
  const { config, audit, keep } = shared
  return keep(createResources({ ...shared, authenticate, recordsFirst: recordsFirst(config), ledgers: audit.ledgers }))
}

function mountPages(app: FastifyInstance, features: Features, grants: AdminGrants): void {
  const { vault, transactions, usage, notifications } = features
  vault.pages(app)
  transactions?.pages(app)
  usage?.pages(app)
  notifications.pages(app, deciderOf(features, grants))
}

type AdminGrants = Shared['config']['adminAuth'] & Pick<Shared, 'tenancy'>

/** Decisions by callbacks of people, as `adminAuth` knows them. */
function deciderOf({ approvals }: Pick<Features, 'approvals'>, grants: AdminGrants) {
  const { decisions } = approvals
  return {
    placeOf: (id: string) => decisions.placeOf(id),
    async decide(id: string, ballot: Parameters<typeof decisions.decide>[1]) {
      // A callback does not show how the person logged in.
      if (ballot.verdict === 'approve' && isRequired(grants.stepUp.approve))
        throw new AdminError(
          'forbidden',
          'approvals need a login that a chat cannot show (adminAuth.stepUp): use the console',
        )
      return decisions.decide(id, ballot)
    },
    view: (id: string) => approvals.view(id),
    personOf: (known: KnownPerson) => marksOf(known, grants.people),
    mayApprove: (person: Person, { namespace, tenant }: { readonly namespace: string; readonly tenant: string }) =>
      may(principalOf(person, grants), 'approver', namespace, tenant),
  }
}

/** Routes of the admin API. */
function administered(
  shared: Shared,
  features: Features &
    Parameters<typeof inventoryOf>[1] & { readonly pins: PinsFeature; readonly sandboxes: Sandboxes },
) {
  const { audit, clock, build, state, config, live, tenancy } = shared
  const {
    approvals,
    revocations,
    pins,
    budgets,
    sessions,
    memory,
    vault,
    collector,
    contexts,
    anchors,
    evidence,
    retention,
    bundles,
    license,
    simulation,
  } = features
  const own = [
    approvals,
    revocations,
    pins,
    budgets,
    sessions,
    memory,
    vault,
    audit,
    collector,
    contexts,
    anchors,
    evidence,
    retention,
    bundles,
    license,
    simulation,
    state,
    createOpenApi(build.version),
    inventoryOf(shared, features),
    previewOf({ live, clock, tenancy }, features),
  ]
  return [
    ...own.map(({ routes }) => routes),
    ...(features.sandboxes.liveView === null ? [] : [features.sandboxes.liveView.routes]),
    createPostureRoutes(config),
    createResourceProblems(shared.resourceProblems),
    createProfiling(clock),
  ]
}

async function startAdmin(shared: Shared): Promise<Admin> {
  const { config, env, clock, log, metrics, audit, tenancy } = shared
  const failures = metrics.counter('plat_gateway_admin_auth_failures_total')
  return createAdmin({
    ...{
      env,
      clock,
      log,
      tenancy,
      ledgers: audit.ledgers,
      config: config.adminAuth,
      recordsFirst: recordsFirst(config),
    },
    people: await openAdmins(shared),
    refused: (reason) => failures.inc({ reason }),
    pools: shared.pools,
    browsers: await openBrowsers(shared),
  })
}

/** Whether a change of the admin or the resource API is recorded durably before it is made. */
function recordsFirst({ auditFailurePolicy }: Shared['config']): boolean {
  return auditFailurePolicy === 'closed'
}

/** Whose OIDC tokens the admin API takes; null in mode `token`. */
async function openAdmins({ config, dialer, clock, log, keep }: Shared): Promise<People | null> {
  const { mode, oidc } = config.adminAuth
  if (mode === 'token') return null
  return keep(await openPeople({ leewaySeconds: config.identity.leewaySeconds, ...oidc }, { dialer, clock, log }))
}
