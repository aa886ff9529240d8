import type { ModelRouteEntry, ModelsFile } from '@plat/resources/rendered'
import { type Denial, deny, type Identity } from '../../call/index.ts'

/** One model route as the gateway serves it. */
export interface Route {
  readonly name: string
  /** Without it nobody may call the route: `models:<name>`. */
  readonly scope: string
  /** The route as policies match it and records name it: `llm/<name>`. */
  readonly server: string
  readonly provider: 'openai'
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /** Forced into each request that names no alias; null: the caller chooses. */
  readonly model: string | null
  readonly aliases: ReadonlyMap<string, string>
  /** Empty: any. */
  readonly namespaces: ReadonlySet<string>
  /** `<ns>/<agent>` or `<agent>`; empty: any. */
  readonly agents: ReadonlySet<string>
  /** Null: the upstream takes no key. */
  readonly apiKeyFile: string | null
  /** Null: unlimited. */
  readonly maxTokensPerRequest: number | null
  /** Whether output is limited by `max_completion_tokens`: as the route says, else by the model's name. */
  takesCompletionTokens(model: string): boolean
}

/** A static route of gateway.json, its defaults filled in. */
export interface StaticRoute {
  readonly upstream: string
  readonly model: string
  readonly aliases: Readonly<Record<string, string>>
  readonly namespaces: readonly string[]
  readonly agents: readonly string[]
  readonly apiKeyFile: string
  readonly reasoning?: boolean
  readonly maxTokensPerRequest: number
}

/** Model routes by name. */
export class Routes {
  readonly #routes: ReadonlyMap<string, Route>

  constructor(routes: ReadonlyMap<string, Route>) {
    this.#routes = routes
  }

  /** Feeds `plat_gateway_model_routes`. */
  get size(): number {
    return this.#routes.size
  }

  /** Files with keys, each once. */
  get keyFiles(): ReadonlySet<string> {
    const files = [...this.#routes.values()].flatMap(({ apiKeyFile }) => (apiKeyFile === null ? [] : [apiKeyFile]))
    return new Set(files)
  }

  route(name: string): Route | null {
    return this.#routes.get(name) ?? null
  }

  /** The route for a caller that has its scope. */
  resolve({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>, name: string): Route | Denial {
    const route = this.route(name)
    if (route === null) return deny('unknown_route', `no model route named ${name.slice(0, 128)}`)
    const { namespaces, agents } = route
    const isOpen = agents.size === 0 || agents.has(`${namespace}/${agent}`) || agents.has(agent)
    if (isOpen && (namespaces.size === 0 || namespaces.has(namespace))) return route
    return deny('forbidden', `the model route ${name} is not for this agent`)
  }
}

/** OpenAI's families that take `max_completion_tokens`, with or without a vendor's prefix. */
const REASONING = /^(?:[^/]+\/)*(?:o[1-9]|gpt-[5-9])/

/** The routes of one modelsFile (null: none) over the static ones of gateway.json. */
export function buildRoutes(file: ModelsFile | null, statics: Readonly<Record<string, StaticRoute>>): Routes {
  const fixed = Object.entries(statics).map(([name, route]): [string, Route] => [name, staticRoute(name, route)])
  const rendered = Object.entries(file?.models ?? {}).map(([name, entry]): [string, Route] => [
    name,
    routeOf(name, entry),
  ])
  return new Routes(new Map([...fixed, ...rendered]))
}

function staticRoute(name: string, route: StaticRoute): Route {
  return routeOf(name, {
    upstream: route.upstream,
    model: route.model,
    aliases: { ...route.aliases },
    namespaces: [...route.namespaces],
    agents: [...route.agents],
    apiKeyFile: route.apiKeyFile,
    maxTokensPerRequest: route.maxTokensPerRequest,
    ...(route.reasoning !== undefined && { reasoning: route.reasoning }),
  })
}

function routeOf(name: string, entry: ModelRouteEntry): Route {
  const owner = entry.agent === undefined ? [] : [entry.agent]
  return {
    name,
    // Put together once, and in one piece: each call looks them up and writes them down.
    scope: ['models', name].join(':'),
    server: ['llm', name].join('/'),
    provider: 'openai',
    upstream: entry.upstream.replace(/\/+$/, ''),
    model: entry.model || null,
    aliases: new Map(Object.entries(entry.aliases ?? {})),
    namespaces: new Set(entry.namespaces),
    agents: new Set([...owner, ...(entry.agents ?? [])]),
    apiKeyFile: entry.apiKeyFile || null,
    maxTokensPerRequest: entry.maxTokensPerRequest || null,
    takesCompletionTokens: (model) => entry.reasoning ?? REASONING.test(model),
  }
}

/** The model that the provider is asked for: a translated name, else the route's own, else as asked; null: nobody names one. */
export function modelOf(route: Route, asked: string | null): string | null {
  return (asked === null ? undefined : route.aliases.get(asked)) ?? route.model ?? asked
}
