import {
  type Call,
  classOfSession,
  type Denial,
  deny,
  type Identity,
  isDenial,
  labelsByTrust,
  type Outcome,
  type Slot,
  type Snapshots,
  searchesByItself,
  type Target,
  unresolved,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { Choice } from './choice.ts'
import { bringsForeignContent, hostedTool } from './hosted-tools.ts'
import { buildRoutes, type Route, type Routes } from './registry.ts'

/** Where the routes stand in the snapshot. */
export const routesSlot: Slot<Routes> = { name: 'models', initial: buildRoutes(null, {}) }

/** From the route that the caller named to the model that is asked. The scope comes first, so that names cannot be found out by trying. */
export function createModelResolve({
  snapshots,
  isReady,
  settled,
  choice,
  labelsOf,
}: {
  readonly snapshots: Snapshots
  /** Whether what an endpoint wants to be shown is there. */
  readonly isReady: (endpoint: Route['endpoints'][number]) => boolean
  readonly settled: (route: string, outcome: Outcome) => void
  readonly choice: Pick<Choice, 'allows'>
  /** Returns the taint labels of a caller: they name the classes of the data that its session received. */
  readonly labelsOf: (identity: Identity) => readonly string[]
}): Stage<'resolve', 'identity', 'target'> {
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      const routes = call.snapshot.get(routesSlot)
      const scope = routes.route(call.server)?.scope ?? `models:${call.server}`
      if (!call.facts.identity.scopes.has(scope)) {
        return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
      }
      const route = routes.resolve(call.facts.identity, call.server)
      if (isDenial(route)) return route
      // Asked before anything is held or sent: a call that cannot be made costs nothing.
      if (!route.endpoints.some(isReady))
        return deny('upstream_credential', `the model route ${call.server} has no readable API key`)
      const dataClass = classOfSession(route.dataClass, labelsOf(call.facts.identity))
      const target = targetOf(call, { route, dataClass }, choice)
      return isDenial(target) ? target : { target }
    },
    settle: (call: Call<'identity' | 'target'>, outcome) => settled(call.facts.target.key, outcome),
    still: (call) => stillThere(call, snapshots),
  })
}

/** A call that waits or streams ends when its route has gone or leads elsewhere. */
function stillThere(call: Call<'identity' | 'target'>, snapshots: Snapshots): Denial | null {
  const routes = snapshots.current.get(routesSlot)
  const began = call.snapshot.get(routesSlot)
  if (routes === began) return null
  const route = routes.resolve(call.facts.identity, call.server)
  if (isDenial(route)) return route
  return leadsTo(route) !== leadsTo(began.route(call.server))
    ? deny('unknown_route', `the model route ${call.server} has moved`)
    : null
}

function leadsTo(route: Route | null): string {
  return route?.endpoints.map(({ key }) => key).join() ?? ''
}

function targetOf(
  call: Call<'identity'>,
  { route, dataClass }: { readonly route: Route; readonly dataClass: Target['dataClass'] },
  choice: Pick<Choice, 'allows'>,
): Target | Denial {
  // Whatever has a body names a model: what is generated, embedded or counted.
  const generates = call.body !== null
  if (!route.endpoints.some((endpoint) => endpoint.wire.methods.has(call.method))) {
    const { provider } = route.endpoints[0]
    return deny('not_built', `${call.method} is not built yet in this version for the provider ${provider}`)
  }
  const model = generates ? route.endpoints[0].modelFor(call.name) : null
  if (generates && model === null) return deny('invalid_request', 'model is required', { data: { param: 'model' } })
  if (model !== null && !route.endpoints.some((one) => choice.allows(dataClass, one.modelFor(call.name) ?? '')))
    return deny('model_not_allowed', `the model ${model.slice(0, 128)} may not be given ${dataClass} data`)
  const hosted = generates
    ? (hostedTool(call.body?.value, route.providerTools, call.method) ?? hostedSearch(call.name, route))
    : null
  if (hosted !== null)
    return deny(
      'provider_hosted_tool',
      `${hosted} would run at the provider, and providerTools of the route does not list it`,
    )
  return {
    ...unresolved,
    kind: 'model',
    key: route.name,
    server: route.server,
    tool: model,
    trust: 'trusted',
    labels: labelsByTrust[generates && isForeign(call, route) ? 'untrusted' : 'trusted'],
    dataClass,
    jurisdiction: route.endpoints[0].jurisdictionFor(call.name),
  }
}

/** A model that searches by itself is the tool `web_search`, unless the route names it and not the caller. */
function hostedSearch(asked: string | null, { endpoints, providerTools }: Route): string | null {
  if (!searchesByItself(asked) || providerTools.has('web_search')) return null
  const isCallers = endpoints.some(({ modelFor }) => modelFor(asked) === asked && modelFor(null) !== asked)
  return isCallers ? 'web_search' : null
}

/** Whether content from outside may be in the answer of any endpoint. */
function isForeign({ name, body, method }: Call, { endpoints }: Route): boolean {
  return bringsForeignContent(body?.value, method) || endpoints.some((one) => searchesByItself(one.modelFor(name)))
}
