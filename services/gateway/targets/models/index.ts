import { type CloudConfig, regional } from '@plat/cloud'
import { followFile } from '@plat/config'
import type { Clock, Ids } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { ModelRouteEntry, ModelsFile } from '@plat/resources/rendered'
import type { Call, Identity, Snapshot, Snapshots, Target } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { Balancer } from './balance.ts'
import { Choice, type ChoiceOptions } from './choice.ts'
import { Circuits } from './circuits.ts'
import { EndpointCredentials } from './credentials/credentials.ts'
import { decodeModels } from './decode.ts'
import { ModelDirectories, type ModelDirectory } from './directory.ts'
import type { RouteEndpoint } from './endpoint.ts'
import { createModelMetrics, type ModelMetrics } from './metrics.ts'
import { startProbes } from './probes.ts'
import { buildRoutes, type Route, type Routes } from './registry.ts'
import { createModelResolve, type FileOwners, routesSlot } from './stage.ts'

export { BatchBook, type BatchCharging } from './batches/book.ts'
export type { BatchUsed, StoredBatch } from './batches/events.ts'
export { uploadShares } from './config.ts'
export type { RouteEndpoint } from './endpoint.ts'
export type { Route } from './registry.ts'
export { StoredContents } from './stored/contents.ts'

export interface ModelsOptions {
  readonly config: {
    /** Empty for static routes only. */
    readonly modelsFile: string
    readonly models: Readonly<Record<string, ModelRouteEntry>>
    readonly policyReloadSeconds: number
    readonly cloudCredentials: CloudConfig
    /** Upstream and key of routes of provider `ctxengine` that name none. */
    readonly ctxengine?: { readonly upstream: string; readonly apiKeyFile: string }
    readonly modelRouting: Readonly<Record<'failureThreshold' | 'cooldownSeconds' | 'probeIntervalSeconds', number>> &
      ChoiceOptions
  }
  /** Source of credentials and of the AWS region. */
  readonly env: NodeJS.ProcessEnv
  /** Excludes forbidden destinations from probes, and sorts endpoints by jurisdiction. */
  readonly residency?: {
    fault(snapshot: Snapshot, place: Pick<Target, 'jurisdiction' | 'dataClass'>): string | null
    tierJurisdiction(snapshot: Snapshot, tier: string): string | null
  }
  /** Returns the current taint labels of a caller. */
  readonly labelsOf: (identity: Identity) => readonly string[]
  /** Owners of what providers store. */
  readonly owners: FileOwners
  /** For probes and requests for credentials. */
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** A call for which the endpoints of a route are ordered. */
export interface OrderedCall {
  /** Tier of the session. */
  readonly tier: string
  /** Kind of call, by which latencies are compared. */
  readonly kind: string
  /** Returns true if the endpoint can serve the call now. */
  isUsable(endpoint: RouteEndpoint): boolean
}

export interface Models {
  readonly stage: Stage<'resolve', 'identity', 'target'>
  /** Returns the route of a target in this snapshot, or null if it was removed. */
  route(snapshot: Snapshot, key: string): Route | null
  /** Routes in force. */
  listed(): readonly Route[]
  /** Returns the models that a caller may use, by name: with scopes of this prefix, or with any (null). */
  directory(snapshot: Snapshot, identity: Identity, scope: string | null): ModelDirectory
  /** Possible destinations of a call: all endpoints of its route; for other targets their own. */
  places(
    call: Pick<Call, 'name'>,
    snapshot: Snapshot,
    target: Target,
  ): readonly Pick<Target, 'jurisdiction' | 'dataClass'>[]
  readonly credentials: EndpointCredentials
  /** Returns whether data of this class may go to a model. */
  allows(dataClass: Target['dataClass'], model: string): boolean
  /** Returns the endpoints of a route in the order in which to try them for a call. */
  inOrder(snapshot: Snapshot, route: Route, call: OrderedCall): readonly RouteEndpoint[]
  /** Distributes the calls of routes. */
  readonly balancer: Balancer
  /** Circuit breakers of endpoints. */
  readonly circuits: Circuits
  /** Reads the file and the keys; first called before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/**
 * Model routes of `modelsFile` and `models` (docs/spec/gateway.md, "Model routes"), reloaded every `policyReloadSeconds` together with
 * their API keys. An invalid file leaves the previous one in force.
 */
export function createModels(options: ModelsOptions): Models {
  const { config, snapshots, clock } = options
  const metrics = createModelMetrics(options.metrics)
  const path = config.modelsFile
  const everyMs = config.policyReloadSeconds * 1000
  const cloud = regional(config.cloudCredentials, options.env)
  const credentials = new EndpointCredentials({ ...options, config: cloud })
  const clouds = {
    awsRegion: cloud.aws.region,
    awsSuffix: cloud.aws.partitionDNSSuffix,
    ...(config.ctxengine && { engine: config.ctxengine }),
  }
  const isReady = (endpoint: RouteEndpoint) => credentials.isReady(endpoint)
  const choice = new Choice(config.modelRouting)
  const circuits = circuitsOf(options, metrics)
  const balancer = new Balancer(options)
  const directories = new ModelDirectories()
  const publish = async (routes: Routes) => {
    // Credentials first: a route is served only once its credentials were read.
    await credentials.follow(routes.endpoints)
    snapshots.publish(routesSlot, routes)
    const keys = new Set(routes.endpoints.map(({ key }) => key))
    for (const known of [circuits, balancer]) known.keep(keys)
    metrics.routes(routes.size)
  }
  const watch = path === '' ? null : followRoutes(options, (file) => publish(buildRoutes(file, config.models, clouds)))
  const stopProbing = startProbing(options, { credentials, circuits })
  const stopReading = clock.every(everyMs, () => void credentials.refresh())
  snapshots.publish(routesSlot, buildRoutes(null, config.models, clouds))
  metrics.routes(snapshots.current.get(routesSlot).size)
  return {
    stage: createModelResolve({ snapshots, isReady, settled: metrics.settled, choice, ...ownersOf(options) }),
    route: (snapshot, key) => snapshot.get(routesSlot).route(key),
    listed: () => snapshots.current.get(routesSlot).listed,
    directory: (snapshot, identity, scope) => directories.of(snapshot.get(routesSlot), identity, scope),
    places: placesOf,
    credentials,
    allows: (dataClass, model) => choice.allows(dataClass, model),
    inOrder: (snapshot, route, call) =>
      groupsOf(options, { choice, snapshot, route, call }).flatMap((group) => balanced(balancer, route, group, call)),
    balancer,
    circuits,
    async check() {
      await credentials.follow(snapshots.current.get(routesSlot).endpoints)
      await watch?.check()
    },
    close() {
      stopReading()
      stopProbing()
      watch?.stop()
      credentials.close()
    },
  }
}

function ownersOf({ labelsOf, owners }: ModelsOptions) {
  return { labelsOf, owners }
}

/** Follows `modelsFile`. */
function followRoutes(
  { config: { modelsFile: path, policyReloadSeconds }, snapshots, clock, log }: ModelsOptions,
  publish: (file: ModelsFile | null) => Promise<void>,
) {
  return followFile({
    path,
    everySeconds: policyReloadSeconds,
    clock,
    decode: (bytes) => (bytes === null ? { file: null } : decodeModels(bytes)),
    async publish({ file }: { readonly file: ModelsFile | null }) {
      await publish(file)
      log.info({ path, routes: snapshots.current.get(routesSlot).size }, 'model routes loaded')
    },
    refuse: (problems) => log.error({ path, problems }, 'modelsFile is refused: the routes loaded before stay in use'),
  })
}

function startProbing(options: ModelsOptions, parts: { credentials: EndpointCredentials; circuits: Circuits }) {
  const endpoints = () => reachable(options.snapshots.current, options)
  const everyMs = options.config.modelRouting.probeIntervalSeconds * 1000
  return startProbes({ ...options, ...parts, endpoints, everyMs })
}

function circuitsOf({ config, clock }: ModelsOptions, metrics: ModelMetrics): Circuits {
  const { failureThreshold, cooldownSeconds } = config.modelRouting
  return new Circuits({
    clock,
    failureThreshold,
    cooldownMs: cooldownSeconds * 1000,
    open: (count) => metrics.circuitsOpen(count),
    failed: (route, endpoint) => metrics.endpointFailed(route, endpoint),
  })
}

function placesOf(
  { name }: Pick<Call, 'name'>,
  snapshot: Snapshot,
  target: Target,
): readonly Pick<Target, 'jurisdiction' | 'dataClass'>[] {
  const route = target.kind === 'model' ? snapshot.get(routesSlot).route(target.key) : null
  if (route === null) return [target]
  return route.endpoints.map((one) => ({ jurisdiction: one.jurisdictionFor(name), dataClass: target.dataClass }))
}

/** Endpoints that data of calls may be sent to. */
function reachable(snapshot: Snapshot, { residency }: ModelsOptions): readonly RouteEndpoint[] {
  const { endpoints } = snapshot.get(routesSlot)
  if (residency === undefined) return endpoints
  return endpoints.filter(
    ({ jurisdiction }) => residency.fault(snapshot, { jurisdiction, dataClass: 'internal' }) === null,
  )
}

/** Endpoints of a route in groups, those of the preferred jurisdiction first. */
function groupsOf(
  { residency }: ModelsOptions,
  parts: { choice: Choice; snapshot: Snapshot; route: Route; call: OrderedCall },
): readonly (readonly RouteEndpoint[])[] {
  const { choice, snapshot, route, call } = parts
  return choice.groups(route, call.tier, residency?.tierJurisdiction(snapshot, call.tier) ?? null)
}

/** Balances the endpoints that can serve a call; the others follow, so that it is counted why they are skipped. */
function balanced(
  balancer: Balancer,
  { balancing }: Route,
  group: readonly RouteEndpoint[],
  { kind, isUsable }: OrderedCall,
): readonly RouteEndpoint[] {
  if (balancing === 'order') return group
  const usable = group.filter(isUsable)
  return [...balancer.order(usable, balancing, kind), ...group.filter((one) => !usable.includes(one))]
}
