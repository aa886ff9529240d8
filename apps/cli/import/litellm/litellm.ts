import { isObject } from '@plat/core'
import { readYaml } from '@plat/kubernetes'
import { CommandError } from '../../shared/output.ts'
import type { ConvertOptions } from '../mcp-servers.ts'
import { type Endpoint, endpointOf, isEntry, type ListedModel, pricesOf, routeName, textOf } from './endpoint.ts'

/** A LiteLLM configuration in the terms of plat. */
export interface LiteLLM {
  /** `models` of gateway.json. */
  readonly routes: Readonly<Record<string, object>>
  /** `models` of prices.json. */
  readonly prices: Readonly<Record<string, object>>
  /** Spec of a BudgetPolicy, without a selector; null: no limit. */
  readonly budget: object | null
}

/** Fallbacks that a route can have. */
const FALLBACKS_MAX = 8

interface Route {
  readonly path: string
  readonly name: string
  readonly endpoints: Endpoint[]
  readonly aliases: Record<string, string>
}

/**
 * Converts a LiteLLM proxy configuration. Models of one name become the endpoints of one route, in their order.
 * @throws CommandError if the text is not YAML or has no models
 */
export function convertLiteLLM(text: string, file: string, options: ConvertOptions): LiteLLM {
  const { value, problems } = readYaml(text)
  const [problem] = problems
  if (problem !== undefined) throw new CommandError(`${file}:${problem.line}: ${problem.message}`)
  const root = isObject(value) ? value : {}
  const listed = modelsIn(root)
  if (listed.length === 0) throw new CommandError(`${file}: no models: "model_list" is missing`)
  const routes = new Map<string, Route>()
  const prices: Record<string, object> = {}
  for (const one of listed) {
    const endpoint = endpointOf(one, options)
    if (endpoint === null) continue
    addEndpoint(routes, one, endpoint)
    const price = pricesOf(one)
    if (price !== null) prices[`${endpoint.provider}/${endpoint.model}`] = price
    noteInfo(one, options)
  }
  const settings = settingsOf(root)
  addAliases(routes, settings.router, options)
  const fallbacks = fallbacksOf(routes, settings, options)
  noteSettings(root, options)
  const balancing = balancingOf(settings.router, options)
  const entries = [...routes.values()].map((route) => [
    routeName(route.name),
    routeOf(route, { routes, fallbacks, balancing, options }),
  ])
  return { routes: Object.fromEntries(entries), prices, budget: budgetOf(settings.litellm, options) }
}

function modelsIn({ model_list: list }: Record<string, unknown>): readonly ListedModel[] {
  return (Array.isArray(list) ? list : []).map((entry: unknown, index) => {
    const { model_name: name, litellm_params: params, model_info: info } = isObject(entry) ? entry : {}
    const own = isEntry(params) ? params : {}
    return {
      path: `model_list[${index}]`,
      name: textOf(name) ?? textOf(own.model) ?? 'model',
      params: own,
      info: isEntry(info) ? info : {},
    }
  })
}

function addEndpoint(routes: Map<string, Route>, { name, path }: ListedModel, endpoint: Endpoint): void {
  const known = routes.get(name)
  if (known !== undefined) return void known.endpoints.push(endpoint)
  const aliases: Record<string, string> = {}
  // A name that a route cannot have still selects its model.
  if (routeName(name) !== name && !name.includes('*')) aliases[name] = endpoint.model
  routes.set(name, { path, name, endpoints: [endpoint], aliases })
}

interface Settings {
  readonly litellm: Readonly<Record<string, unknown>>
  readonly router: Readonly<Record<string, unknown>>
}

function settingsOf({ litellm_settings: litellm, router_settings: router }: Record<string, unknown>): Settings {
  return { litellm: isEntry(litellm) ? litellm : {}, router: isEntry(router) ? router : {} }
}

/** How endpoints of one name share its calls. */
function balancingOf(
  { routing_strategy: strategy }: Settings['router'],
  { notes }: ConvertOptions,
): 'weight' | 'latency' {
  if (strategy === 'latency-based-routing') return 'latency'
  if (strategy !== undefined && strategy !== 'simple-shuffle')
    notes.add(
      'router_settings.routing_strategy',
      'endpoints share calls by weight; balancing of a route can be latency',
    )
  return 'weight'
}

/** `model_group_alias`: further names of a model. */
function addAliases(
  routes: Map<string, Route>,
  { model_group_alias: aliases }: Settings['router'],
  options: ConvertOptions,
): void {
  for (const [alias, target] of Object.entries(isObject(aliases) ? aliases : {})) {
    const name = isObject(target) ? target.model : target
    const route = typeof name === 'string' ? routes.get(name) : undefined
    const model = route?.endpoints[0]?.model
    const path = `router_settings.model_group_alias["${alias}"]`
    if (route === undefined || model === undefined) options.notes.add(path, 'it names no model that was converted')
    else route.aliases[alias] = model
  }
}

/** Fallbacks of each model by name, those of all models last. */
function fallbacksOf(
  routes: ReadonlyMap<string, Route>,
  { litellm, router }: Settings,
  { notes }: ConvertOptions,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const [section, settings] of Object.entries({ litellm_settings: litellm, router_settings: router })) {
    const list = Array.isArray(settings.fallbacks) ? settings.fallbacks : []
    for (const [index, entry] of list.entries()) {
      for (const [name, targets] of Object.entries(isObject(entry) ? entry : {})) {
        const path = `${section}.fallbacks[${index}]`
        if (!routes.has(name)) notes.add(path, `${JSON.stringify(name)} is not a model that was converted`)
        const names = texts(targets)
        for (const one of names.filter((target) => !routes.has(target)))
          notes.add(path, `${JSON.stringify(one)} is not a model that was converted`)
        found.set(name, [...(found.get(name) ?? []), ...names])
      }
    }
  }
  const always = [...texts(litellm.default_fallbacks), ...texts(router.default_fallbacks)]
  for (const name of routes.keys()) found.set(name, [...(found.get(name) ?? []), ...always])
  return found
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

/** A route of gateway.json: the first endpoint; behind it the others of its name, and those of its fallbacks. */
function routeOf(
  { name, path, endpoints, aliases }: Route,
  context: {
    readonly routes: ReadonlyMap<string, Route>
    readonly fallbacks: ReadonlyMap<string, readonly string[]>
    readonly balancing: 'weight' | 'latency'
    readonly options: ConvertOptions
  },
): object {
  const { routes, fallbacks, options } = context
  const [first, ...others] = endpoints
  const named = [...new Set(fallbacks.get(name))].filter((target) => target !== name)
  const further = [...others, ...named.flatMap((target) => routes.get(target)?.endpoints ?? [])]
  if (further.length > FALLBACKS_MAX)
    options.notes.add(path, `only ${FALLBACKS_MAX} of its fallbacks: a route has no more`)
  // Endpoints of one name share its calls; those of other names serve what they cannot.
  const list = further
    .slice(0, FALLBACKS_MAX)
    .map(({ endpoint }, at) => (at < others.length || others.length === 0 ? endpoint : { ...endpoint, weight: 0 }))
  return {
    ...first?.endpoint,
    ...(others.length > 0 && { balancing: context.balancing }),
    ...first?.route,
    ...(Object.keys(aliases).length > 0 && { aliases }),
    ...(list.length > 0 && { fallbacks: list }),
  }
}

/** `max_budget` of all callers, if its window is a day or a month. */
function budgetOf(
  { max_budget: cap, budget_duration: duration }: Settings['litellm'],
  { notes }: ConvertOptions,
): object | null {
  if (cap === undefined) return null
  const path = 'litellm_settings.max_budget'
  const window = typeof duration === 'string' ? WINDOWS[duration] : undefined
  if (typeof cap === 'number' && cap >= 0 && window !== undefined) return { [window]: String(cap) }
  notes.add(path, 'plat has budgets per day and per month; write a BudgetPolicy')
  return null
}

const WINDOWS: Readonly<Record<string, 'perDay' | 'perMonth'>> = {
  ...{ '1d': 'perDay', '24h': 'perDay', daily: 'perDay' },
  ...{ '30d': 'perMonth', '31d': 'perMonth', '1mo': 'perMonth', monthly: 'perMonth' },
}

/** Members of `model_info` without a meaning in plat. */
function noteInfo({ path, info }: ListedModel, { notes }: ConvertOptions): void {
  for (const member of Object.keys(info)) {
    if (/cost|^id$|^mode$|^base_model$|^max_(?:input_|output_)?tokens$|^supports_|^litellm_provider$/.test(member))
      continue
    notes.add(`${path}.model_info.${member}`, 'plat has nothing like it')
  }
}

/** Sections and settings with what does the same in plat, or why nothing does. @table */
const SETTINGS: Readonly<Record<string, Readonly<Record<string, string | null>>>> = {
  litellm_settings: {
    ...{ fallbacks: null, default_fallbacks: null, max_budget: null, budget_duration: null },
    ...{
      num_retries: 'set retries of the route in gateway.json',
      drop_params: 'members that a provider does not support are refused by name',
    },
    ...{ request_timeout: 'set upstreamTimeoutSeconds in gateway.json', set_verbose: 'logs are in .plat/logs' },
    ...{
      callbacks: 'set auditSinks or otel in gateway.json',
      success_callback: 'set auditSinks or otel in gateway.json',
      failure_callback: 'set auditSinks or otel in gateway.json',
    },
    context_window_fallbacks: 'plat uses fallbacks when an endpoint fails, whatever the reason',
    content_policy_fallbacks: 'plat uses fallbacks when an endpoint fails, whatever the reason',
    cache: 'set cache of the route in gateway.json',
    cache_params: 'set cache of the route in gateway.json',
    default_internal_user_params: 'write a BudgetPolicy',
    max_internal_user_budget: 'write a BudgetPolicy',
  },
  router_settings: {
    ...{ fallbacks: null, default_fallbacks: null, model_group_alias: null },
    routing_strategy: null,
    num_retries: 'set retries of the route in gateway.json',
    allowed_fails: 'set modelRouting.failureThreshold in gateway.json',
    cooldown_time: 'set modelRouting.cooldownSeconds in gateway.json',
    timeout: 'set upstreamTimeoutSeconds in gateway.json',
  },
  general_settings: {
    master_key: 'callers use the token of a session: plat run, or plat token mint',
    database_url: 'plat needs no database; users and keys of LiteLLM are not moved',
    alerting: 'set notifications in gateway.json',
  },
}

function noteSettings(root: Readonly<Record<string, unknown>>, { notes }: ConvertOptions): void {
  for (const [section, value] of Object.entries(root)) {
    if (section === 'model_list') continue
    const known = SETTINGS[section]
    if (known === undefined) notes.add(section, SECTIONS[section] ?? 'plat has nothing like it')
    else for (const member of Object.keys(isObject(value) ? value : {})) noteSetting(section, member, { known, notes })
  }
}

function noteSetting(
  section: string,
  member: string,
  {
    known,
    notes,
  }: { readonly known: Readonly<Record<string, string | null>>; readonly notes: ConvertOptions['notes'] },
): void {
  const why = Object.hasOwn(known, member) ? known[member] : 'plat has nothing like it'
  if (typeof why === 'string') notes.add(`${section}.${member}`, why)
}

const SECTIONS: Readonly<Record<string, string>> = {
  environment_variables: 'set these variables where plat runs',
  guardrails: 'set dlp and guards in gateway.json',
  mcp_servers: 'write an MCPServer for each',
  include: 'import each file',
}
