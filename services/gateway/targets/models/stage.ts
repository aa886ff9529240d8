import {
  ALL_ROUTES,
  type Call,
  classOfSession,
  type Denial,
  deny,
  type Identity,
  isBesideModels,
  isDenial,
  labelsByTrust,
  modelScopeOf,
  type Outcome,
  type Slot,
  type Snapshots,
  type StoredContent,
  searchesByItself,
  type Target,
  unresolved,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { Choice } from './choice.ts'
import { bringsForeignContent, hostedTool } from './hosted-tools.ts'
import { buildRoutes, type Route, type Routes } from './registry.ts'
import { batchTarget } from './stored/batch-target.ts'
import { type FileOwners, fileTarget } from './stored/file-target.ts'
import { type Named, namedIn } from './stored/named.ts'

export type { FileOwners }

/** Snapshot slot of the routes. */
export const routesSlot: Slot<Routes> = { name: 'models', initial: buildRoutes(null, {}) }

/** Resolves the named route to a model. Checks the scope first, so that names cannot be probed. */
export function createModelResolve({
  snapshots,
  isReady,
  settled,
  choice,
  labelsOf,
  owners,
}: {
  readonly snapshots: Snapshots
  /** Returns whether the credential of an endpoint is available. */
  readonly isReady: (endpoint: Route['endpoints'][number]) => boolean
  readonly settled: (route: string, outcome: Outcome) => void
  readonly choice: Pick<Choice, 'allows'>
  /** Returns the taint labels of a caller, which include the classes of data that its session received. */
  readonly labelsOf: (identity: Identity) => readonly string[]
  readonly owners: FileOwners
}): Stage<'resolve', 'identity', 'target'> {
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      if (call.server === ALL_ROUTES) return { target: everyRoute }
      const routes = call.snapshot.get(routesSlot)
      const scope = scopeOf(routes, call)
      if (!call.facts.identity.scopes.has(scope)) {
        return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
      }
      const route = routes.resolve(call.facts.identity, call.server)
      if (isDenial(route)) return route
      // Checked before any hold or request: an impossible call costs nothing.
      if (!route.endpoints.some(isReady))
        return deny('upstream_credential', `the model route ${call.server} has no readable API key`)
      const labels = labelsOf(call.facts.identity)
      if (isBesideModels(call.operation)) {
        const resolve = call.operation === 'model.file' ? fileTarget : batchTarget
        const target = resolve(call, { route, owners, labels })
        return isDenial(target) ? target : { target }
      }
      const named = namedIn(call, route, owners)
      if (isDenial(named)) return named
      const dataClass = classOfSession(route.dataClass, 'labels' in named ? [...labels, ...named.labels] : labels)
      const target = targetOf(call, { route, dataClass, named }, choice)
      return isDenial(target) ? target : { target }
    },
    settle: (call: Call<'identity' | 'target'>, outcome) => settled(call.facts.target.key, outcome),
    still: (call) => stillThere(call, snapshots),
  })
}

/** The scope that a call requires; that of chats is composed once per route. */
function scopeOf(routes: Routes, { operation, server }: Pick<Call, 'operation' | 'server'>): string {
  const scope = routes.route(server)?.scope
  const prefix = modelScopeOf(operation)
  return scope?.startsWith(prefix) ? scope : prefix + server
}

/** Target of requests for the models of all routes, which the gateway answers itself. */
const everyRoute: Target = {
  ...unresolved,
  kind: 'model',
  key: ALL_ROUTES,
  server: 'llm',
  trust: 'trusted',
  dataClass: 'internal',
  builtin: true,
}

/** A waiting or streaming call ends when its route is removed or changed. */
function stillThere(call: Call<'identity' | 'target'>, snapshots: Snapshots): Denial | null {
  const routes = snapshots.current.get(routesSlot)
  const began = call.snapshot.get(routesSlot)
  if (routes === began || call.server === ALL_ROUTES) return null
  const route = routes.resolve(call.facts.identity, call.server)
  if (isDenial(route)) return route
  return leadsTo(route) !== leadsTo(began.route(call.server))
    ? deny('unknown_route', `the model route ${call.server} has moved`)
    : null
}

function leadsTo(route: Route | null): string {
  return route?.endpoints.map(({ key }) => key).join() ?? ''
}

/** The route of a call. */
interface Resolved {
  readonly route: Route
  readonly dataClass: Target['dataClass']
  /** Stored content that the call names, or a name that its caller does not own. */
  readonly named: Named | StoredContent
}

function targetOf(
  call: Call<'identity'>,
  { route, dataClass, named }: Resolved,
  choice: Pick<Choice, 'allows'>,
): Target | Denial {
  // Any request with a body names a model: generations, embeddings and token counts.
  const generates = call.body !== null
  if (!route.endpoints.some((endpoint) => endpoint.wire.methods.has(call.method))) {
    const { provider } = route.endpoints[0]
    return deny('not_built', `${call.method} is not built yet in this version for the provider ${provider}`)
  }
  const model = generates ? route.endpoints[0].modelFor(call.name) : null
  if (generates && model === null) return deny('invalid_request', 'model is required', { data: { param: 'model' } })
  if (model !== null && !route.endpoints.some((one) => choice.allows(dataClass, one.modelFor(call.name) ?? '')))
    return deny('model_not_allowed', `the model ${model.slice(0, 128)} is not allowed for ${dataClass} data`)
  const hosted = generates
    ? (hostedTool(call.body?.value, route.providerTools, call.method) ?? hostedSearch(call.name, route))
    : null
  if (hosted !== null)
    return deny(
      'provider_hosted_tool',
      `${hosted} would run at the provider, and providerTools of the route does not list it`,
    )
  if ('id' in named) return notOwned(named)
  return {
    ...unresolved,
    kind: 'model',
    key: route.name,
    server: route.server,
    tool: model,
    trust: 'trusted',
    labels: withLabels(
      labelsByTrust[generates && isForeign(call, route, named) ? 'untrusted' : 'trusted'],
      named.labels,
    ),
    dataClass,
    jurisdiction: route.endpoints[0].jurisdictionFor(call.name),
    ...(named.accounts !== null && { accounts: named.accounts }),
  }
}

function withLabels(labels: Target['labels'], more: readonly string[]): Target['labels'] {
  return more.length === 0 ? labels : { ...labels, taints: [...new Set([...labels.taints, ...more])] }
}

/** The same for an ID that does not exist, so that IDs of others cannot be found out. */
function notOwned({ param }: StoredContent): Denial {
  const reason = `${param} names content at the provider that this caller did not store there through this route: send the content itself`
  return deny('policy_denied', reason, { data: { param } })
}

/** A model that searches by itself counts as the tool `web_search`, unless the route sets it instead of the caller. */
function hostedSearch(requested: string | null, { endpoints, providerTools }: Route): string | null {
  if (!searchesByItself(requested) || providerTools.has('web_search')) return null
  const isCallers = endpoints.some(({ modelFor }) => modelFor(requested) === requested && modelFor(null) !== requested)
  return isCallers ? 'web_search' : null
}

/** Returns whether the response of any endpoint may hold foreign content. */
function isForeign({ name, body, method }: Call, { endpoints }: Route, { accounts }: Named): boolean {
  if (accounts !== null) return true
  return bringsForeignContent(body?.value, method) || endpoints.some((one) => searchesByItself(one.modelFor(name)))
}
