import { withoutTrailing } from '@plat/core'
import type { Manifest } from '@plat/resources'
import type { ModelEndpointEntry, ModelRouteEntry, ModelsFile } from '@plat/resources/rendered'
import { agentProblems } from '../validate/agent.ts'
import { type Declared, keyOf, sorted } from './declared.ts'
import { allowedTools, tiersByName } from './limits/provider-tools.ts'

/** A key that an Agent names for its model. */
export interface ModelKey {
  readonly namespace: string
  readonly agent: string
  /** Where it is named: `model`, or `fallback-<n>` from 0. */
  readonly place: string
  readonly secret: { readonly name: string; readonly key: string }
}

/** The path at which the gateway finds a key. */
export type KeyFileOf = (key: ModelKey) => string

/**
 * `Agent.spec.model` as the gateway's modelsFile: a private route `<namespace>.<agent>` per agent. The key of a Secret is a path,
 * never its content. Problems of an Agent are reported when its policy is rendered.
 */
export function renderModels(declared: Declared, keyFileOf: KeyFileOf): { file: ModelsFile } {
  const models: Record<string, ModelRouteEntry> = {}
  const tiers = tiersByName(declared.tiers)
  for (const agent of sorted(declared.agents)) {
    const model = routedModel(agent, declared)
    const { namespace, name } = agent.metadata
    if (model !== null)
      models[`${namespace}.${name}`] = routeOf(agent, { ...model, ...allowedTools(agent, tiers) }, keyFileOf)
  }
  return { file: { version: 1, models } }
}

/** The keys of the models that have a route. */
export function modelKeys(declared: Pick<Declared, 'agents' | 'currency' | 'home'>): readonly ModelKey[] {
  return sorted(declared.agents).flatMap((agent) => {
    const model = routedModel(agent, declared)
    if (model === null) return []
    const named = [model, ...(model.fallbacks ?? [])]
    return named.flatMap((endpoint, at) => keyOfEndpoint(agent, at === 0 ? 'model' : fallbackPlace(at - 1), endpoint))
  })
}

function routedModel(
  agent: Manifest<'Agent'>,
  declared: Pick<Declared, 'currency' | 'home'>,
): (Model & { endpoint: string }) | null {
  const { model } = agent.spec
  if (model?.endpoint === undefined || agentProblems(agent, declared).length > 0) return null
  return { ...model, endpoint: model.endpoint }
}

function fallbackPlace(index: number): string {
  return `fallback-${index}`
}

function keyOfEndpoint(
  { metadata }: Manifest<'Agent'>,
  place: string,
  { apiKeySecretRef: secret }: Endpoint,
): ModelKey[] {
  return secret === undefined ? [] : [{ namespace: metadata.namespace, agent: metadata.name, place, secret }]
}

type Model = NonNullable<Manifest<'Agent'>['spec']['model']>

function routeOf(agent: Manifest<'Agent'>, model: Model & { endpoint: string }, keyFileOf: KeyFileOf): ModelRouteEntry {
  const { aliases, fallbacks = [] } = model
  const entry = (place: string, endpoint: Endpoint) => {
    const [key] = keyOfEndpoint(agent, place, endpoint)
    return endpointOf(endpoint, key === undefined ? null : keyFileOf(key))
  }
  return {
    ...entry('model', model),
    ...(model.provider === 'ctxengine' && { provider: 'ctxengine' }),
    ...(aliases !== undefined && { aliases }),
    ...(model.providerTools !== undefined && { providerTools: model.providerTools }),
    ...(model.reasoning !== undefined && { reasoning: model.reasoning }),
    ...(model.dlpProfile !== undefined && { dlpProfile: model.dlpProfile }),
    ...(model.balancing !== undefined && { balancing: model.balancing }),
    ...(model.retries !== undefined && { retries: model.retries }),
    ...(model.cache !== undefined && { cache: model.cache }),
    ...(model.contextTokens !== undefined && { contextTokens: model.contextTokens }),
    ...(model.maxTokensPerRequest !== undefined && { maxTokensPerRequest: model.maxTokensPerRequest }),
    ...(model.tokensPerMinute !== undefined && { tokensPerMinute: model.tokensPerMinute }),
    ...(fallbacks.length > 0 && {
      fallbacks: fallbacks.map((fallback, index) =>
        entry(fallbackPlace(index), { ...fallback, ...nameOf(fallback.name ?? model.name) }),
      ),
    }),
    agent: keyOf(agent),
  }
}

/** Endpoint members of the model and each of its fallbacks. */
type Endpoint = NonNullable<Model['fallbacks']>[number]

/** A fallback has the name of the model where it says none, and nothing else of it: least of all its key. */
function nameOf(name: string | undefined): Pick<Endpoint, 'name'> {
  return name === undefined ? {} : { name }
}

function endpointOf(model: Endpoint, apiKeyFile: string | null): ModelEndpointEntry {
  const { adapter, adapterMode, apiVersion, region, project, endpoint, name, jurisdiction } = model
  const { requestsPerMinute, weight } = model
  return {
    ...(adapter !== undefined && { provider: adapter }),
    ...(adapterMode !== undefined && { mode: adapterMode }),
    ...(apiVersion !== undefined && { apiVersion }),
    ...(region !== undefined && { region }),
    ...(project !== undefined && { project }),
    upstream: baseURL(endpoint),
    ...(name !== undefined && { model: name }),
    ...(apiKeyFile !== null && { apiKeyFile }),
    ...(jurisdiction !== undefined && { jurisdiction }),
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(weight !== undefined && { weight }),
  }
}

/** docs/spec/crds.md, `model.endpoint`: a bare host gets `/v1`, a trailing `/chat/completions` goes. */
function baseURL(endpoint: string): string {
  const url = new URL(endpoint)
  const path = withoutTrailing(url.pathname, '/').replace(/\/chat\/completions$/, '')
  return url.origin + (path === '' ? '/v1' : path)
}
