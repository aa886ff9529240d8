import { closest } from '@plat/core'
import { type Denial, deny, type Identity, MODEL_SCOPES } from '../../call/index.ts'
import type { Route, Routes } from './registry.ts'

/** A model by the name that a caller uses at the address of all routes. */
export interface NamedModel {
  readonly id: string
  /** Name of the route that serves it. */
  readonly route: string
  /** The model to request of the route; null: the route's own. */
  readonly model: string | null
  readonly provider: string
}

/** Suggestions in a refusal. */
const MAX_SUGGESTIONS = 5
/** Longer names are shortened in a refusal. */
const NAME_MAX_CHARS = 128

/** Models that one caller may use, by name. Routes that it may not use do not exist here. */
export class ModelDirectory {
  readonly #routes: readonly Route[]
  /** Routes whose callers choose the model. */
  readonly #open: readonly Route[]
  /** Names, those that take precedence first: routes, aliases, models with their provider, models. */
  readonly #levels: readonly ReadonlyMap<string, readonly NamedModel[]>[]

  constructor(routes: readonly Route[]) {
    this.#routes = routes
    this.#open = routes.filter((route) => ownModel(route) === null)
    this.#levels = [
      byName(routes, ofRoute),
      byName(routes, ofAliases),
      byName(routes, ofProvider),
      byName(routes, ofModel),
    ]
  }

  /** The routes whose models only their provider knows. */
  get open(): readonly string[] {
    return this.#open.map(({ name }) => name)
  }

  has(route: string): boolean {
    return this.#routes.some(({ name }) => name === route)
  }

  /** Models that are known without a request to a provider, by names that `find` accepts. */
  list(): readonly NamedModel[] {
    const listed = new Map<string, NamedModel>()
    for (const level of this.#levels.slice(0, -1)) {
      for (const found of level.values()) {
        for (const one of found) {
          const id = found.length === 1 ? one.id : `${one.route}/${one.id}`
          if (!listed.has(id)) listed.set(id, { ...one, id })
        }
      }
    }
    return [...listed.values()]
  }

  /** Returns the name by which a model of an open route is found. */
  nameOf(route: string, model: string): string {
    const found = this.#found(model)
    return found.length === 1 && found[0]?.route === route && found[0].model === model ? model : `${route}/${model}`
  }

  /** Returns the model of this name; null: the caller named none. A denial if it names none or several, with suggestions. */
  find(name: string | null): NamedModel | Denial {
    if (name === null) return this.#only()
    const found = this.#found(name)
    const [first] = found
    if (first !== undefined && found.every(({ route }) => route === first.route)) return first
    const text = name.slice(0, NAME_MAX_CHARS)
    if (first === undefined) return this.#unknown(text)
    const ids = found.slice(0, MAX_SUGGESTIONS).map(({ route }) => `${route}/${text}`)
    return unknown(`several model routes have ${text}: use ${ids.join(' or ')}`)
  }

  #only(): NamedModel | Denial {
    const [route] = this.#routes
    if (route !== undefined && this.#routes.length === 1) return { ...named(route, route.name), model: null }
    return deny('invalid_request', 'model is required: it chooses the model route', { data: { param: 'model' } })
  }

  #found(name: string): readonly NamedModel[] {
    for (const level of this.#levels) {
      const found = level.get(name)
      if (found !== undefined) return found
    }
    const slash = name.indexOf('/')
    const [prefix, rest] = slash === -1 ? ['', ''] : [name.slice(0, slash), name.slice(slash + 1)]
    const ofRoute = rest === '' ? undefined : this.#routes.find((route) => route.name === prefix)
    if (ofRoute !== undefined) return inRoute(ofRoute, rest)
    const ofProvider = rest === '' ? [] : this.#open.filter((route) => providerOf(route) === prefix)
    if (ofProvider.length > 0) return ofProvider.map((route) => ({ ...named(route, name), model: rest }))
    return this.#open.map((route) => ({ ...named(route, name), model: name }))
  }

  #unknown(name: string): Denial {
    const ids = this.list().map(({ id }) => id)
    if (ids.length === 0) return unknown(`this token may use no model route that has ${name}`)
    const meant = closest(name, ids)
    const hint = meant === null ? `there is ${ids.slice(0, MAX_SUGGESTIONS).join(', ')}` : `did you mean ${meant}?`
    return unknown(`no model route that this token may use has ${name}; ${hint}`)
  }
}

function unknown(reason: string): Denial {
  return deny('unknown_route', reason, { data: { param: 'model' } })
}

/** Directories of callers, each built once for the routes in force. */
export class ModelDirectories {
  readonly #known = new WeakMap<Identity, { readonly routes: Routes; readonly byScope: Map<string, ModelDirectory> }>()

  /** `scope` is the prefix of the scopes that count; null: all. */
  of(routes: Routes, identity: Identity, scope: string | null): ModelDirectory {
    let known = this.#known.get(identity)
    if (known?.routes !== routes) {
      known = { routes, byScope: new Map() }
      this.#known.set(identity, known)
    }
    const prefixes = scope === null ? MODEL_SCOPES : [scope]
    return known.byScope.getOrInsertComputed(scope ?? '', () => new ModelDirectory(usable(routes, identity, prefixes)))
  }
}

/** Routes whose scope a caller has and that are open to its agent. The cost depends on the caller's scopes, not on the number of routes. */
function usable(routes: Routes, identity: Identity, prefixes: readonly string[]): readonly Route[] {
  const found = new Set<Route>()
  for (const scope of identity.scopes) {
    const prefix = prefixes.find((one) => scope.startsWith(one))
    const route = prefix === undefined ? null : routes.resolve(identity, scope.slice(prefix.length))
    if (route !== null && 'endpoints' in route) found.add(route)
  }
  return [...found]
}

type Names = (route: Route) => readonly NamedModel[]

function byName(routes: readonly Route[], names: Names): ReadonlyMap<string, readonly NamedModel[]> {
  const found = new Map<string, NamedModel[]>()
  for (const one of routes.flatMap(names)) found.getOrInsertComputed(one.id, () => []).push(one)
  return found
}

const ofRoute: Names = (route) => (ownModel(route) === null ? [] : [{ ...named(route, route.name), model: null }])

const ofAliases: Names = (route) => route.aliases.map((alias) => ({ ...named(route, alias), model: alias }))

const ofProvider: Names = (route) => {
  const own = ownModel(route)
  return own === null ? [] : [{ ...named(route, `${providerOf(route)}/${own}`), model: null }]
}

const ofModel: Names = (route) => {
  const own = ownModel(route)
  return own === null ? [] : [{ ...named(route, own), model: null }]
}

/** A model of a route that the caller names: one of its aliases, its own, or any where the caller chooses. */
function inRoute(route: Route, model: string): readonly NamedModel[] {
  const own = ownModel(route)
  const one = named(route, `${route.name}/${model}`)
  if (own === null || route.aliases.includes(model)) return [{ ...one, model }]
  return model === own || model === `${one.provider}/${own}` ? [{ ...one, model: null }] : []
}

function named(route: Route, id: string): Omit<NamedModel, 'model'> {
  return { id, route: route.name, provider: providerOf(route) }
}

/** The model that a route uses where the caller names none; null: the caller chooses. */
function ownModel({ endpoints: [first] }: Route): string | null {
  return first.modelFor(null)
}

function providerOf({ endpoints: [first] }: Route): string {
  return first.provider
}
