import { join } from 'node:path'
import type { Manifest } from '@plat/resources'
import type { ModelEndpointEntry, ModelRouteEntry, ModelsFile } from '@plat/resources/rendered'
import { type Declared, keyOf, sorted } from './declared.ts'
import { agentFaults } from './unbuilt.ts'

/**
 * `Agent.spec.model` as the gateway's modelsFile: one route `<namespace>.<agent>` for the agent alone. The key of a Secret is a path
 * below `secretsDir`, never its content. What is refused of an Agent is told where its policy is rendered.
 */
export function renderModels(declared: Declared, secretsDir: string): { file: ModelsFile } {
  const models: Record<string, ModelRouteEntry> = {}
  for (const agent of sorted(declared.agents)) {
    const { model } = agent.spec
    if (model?.endpoint === undefined || agentFaults(agent, declared.currency).length > 0) continue
    const { namespace, name } = agent.metadata
    models[`${namespace}.${name}`] = routeOf(agent, { ...model, endpoint: model.endpoint }, join(secretsDir, namespace))
  }
  return { file: { version: 1, models } }
}

type Model = NonNullable<Manifest<'Agent'>['spec']['model']>

function routeOf(agent: Manifest<'Agent'>, model: Model & { endpoint: string }, secretsDir: string): ModelRouteEntry {
  const { aliases, fallbacks = [] } = model
  return {
    ...endpointOf(model, secretsDir),
    ...(aliases !== undefined && { aliases }),
    ...(model.providerTools !== undefined && { providerTools: model.providerTools }),
    ...(model.reasoning !== undefined && { reasoning: model.reasoning }),
    ...(model.dlpProfile !== undefined && { dlpProfile: model.dlpProfile }),
    ...(model.maxTokensPerRequest !== undefined && { maxTokensPerRequest: model.maxTokensPerRequest }),
    ...(model.tokensPerMinute !== undefined && { tokensPerMinute: model.tokensPerMinute }),
    ...(fallbacks.length > 0 && {
      fallbacks: fallbacks.map((fallback) =>
        endpointOf({ ...fallback, ...nameOf(fallback.name ?? model.name) }, secretsDir),
      ),
    }),
    agent: keyOf(agent),
  }
}

/** What the model and each of its fallbacks say of an endpoint. */
type Endpoint = NonNullable<Model['fallbacks']>[number]

/** A fallback has the name of the model where it says none, and nothing else of it: least of all its key. */
function nameOf(name: string | undefined): Pick<Endpoint, 'name'> {
  return name === undefined ? {} : { name }
}

function endpointOf(model: Endpoint, secretsDir: string): ModelEndpointEntry {
  const {
    adapter,
    adapterMode,
    apiVersion,
    region,
    project,
    endpoint,
    name,
    apiKeySecretRef: secret,
    jurisdiction,
    requestsPerMinute,
  } = model
  return {
    ...(adapter !== undefined && { provider: adapter }),
    ...(adapterMode !== undefined && { mode: adapterMode }),
    ...(apiVersion !== undefined && { apiVersion }),
    ...(region !== undefined && { region }),
    ...(project !== undefined && { project }),
    upstream: baseURL(endpoint),
    ...(name !== undefined && { model: name }),
    ...(secret !== undefined && { apiKeyFile: join(secretsDir, secret.name, secret.key) }),
    ...(jurisdiction !== undefined && { jurisdiction }),
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
  }
}

/** Document 2, `model.endpoint`: a bare host gets `/v1`, a trailing `/chat/completions` goes. */
function baseURL(endpoint: string): string {
  const url = new URL(endpoint)
  const path = url.pathname.replace(/\/+$/, '').replace(/\/chat\/completions$/, '')
  return url.origin + (path === '' ? '/v1' : path)
}
