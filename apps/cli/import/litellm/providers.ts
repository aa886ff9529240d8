/** A provider of LiteLLM in the terms of plat. */
export interface Provider {
  readonly provider: string
  readonly mode?: string
  /** Base URL, where the configuration names none; absent: it must, or the provider has one. */
  readonly upstream?: string
  /** Whether `api_base` is required. */
  readonly needsBase?: boolean
  /** The end of an `api_base`, with what plat adds by itself, and what replaces it. */
  readonly end?: readonly [RegExp, string]
}

const openai = (upstream: string): Provider => ({ provider: 'openai', upstream })
/** LiteLLM uses Ollama's own API; plat the OpenAI-compatible one. */
const ollama: Provider = {
  ...openai('http://127.0.0.1:11434/v1'),
  end: [/(?:\/v1|\/api(?:\/chat|\/generate)?)?$/, '/v1'],
}
const ownServer: Provider = { provider: 'openai', needsBase: true }

/** Providers of LiteLLM by the prefix of their models. */
const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: openai('https://api.openai.com/v1'),
  anthropic: {
    provider: 'anthropic',
    upstream: 'https://api.anthropic.com/v1',
    end: [/(?:\/v1(?:\/messages)?)?$/, '/v1'],
  },
  azure: { provider: 'azure-openai', mode: 'deployments', needsBase: true },
  bedrock: { provider: 'bedrock' },
  bedrock_converse: { provider: 'bedrock' },
  gemini: { provider: 'gemini' },
  vertex_ai: { provider: 'vertex' },
  groq: openai('https://api.groq.com/openai/v1'),
  mistral: openai('https://api.mistral.ai/v1'),
  deepseek: openai('https://api.deepseek.com/v1'),
  xai: openai('https://api.x.ai/v1'),
  together_ai: openai('https://api.together.xyz/v1'),
  fireworks_ai: openai('https://api.fireworks.ai/inference/v1'),
  openrouter: openai('https://openrouter.ai/api/v1'),
  cerebras: openai('https://api.cerebras.ai/v1'),
  nvidia_nim: openai('https://integrate.api.nvidia.com/v1'),
  ollama,
  ollama_chat: ollama,
  hosted_vllm: ownServer,
  vllm: ownServer,
  lm_studio: ownServer,
  litellm_proxy: ownServer,
}

/** Models that LiteLLM recognises without a prefix. */
const BY_NAME: readonly (readonly [RegExp, string])[] = [
  [/^(?:gpt-|o[1-9]|chatgpt-|text-embedding-|ft:)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'vertex_ai'],
]

/** Finds provider and model of `<provider>/<model>`. Returns the unknown prefix otherwise. */
export function providerOf(
  model: string,
  { custom, hasBase }: { readonly custom: string | null; readonly hasBase: boolean },
): { readonly provider: Provider; readonly model: string } | { readonly unknown: string } {
  const slash = model.indexOf('/')
  const prefix = custom ?? (slash === -1 ? '' : model.slice(0, slash))
  const known = Object.hasOwn(PROVIDERS, prefix) ? PROVIDERS[prefix] : undefined
  const rest = slash !== -1 && model.slice(0, slash) === prefix ? model.slice(slash + 1) : model
  if (known !== undefined) return { provider: inCloud(known, rest), model: rest.replace(/^(?:converse|invoke)\//, '') }
  const named = BY_NAME.find(([pattern]) => pattern.test(model))?.[1]
  const usual = named === undefined ? undefined : PROVIDERS[named]
  if (usual !== undefined && custom === null) return { provider: usual, model }
  // LiteLLM treats an unknown server with a base URL as one with OpenAI's API.
  return hasBase && prefix === '' ? { provider: ownServer, model } : { unknown: prefix === '' ? model : prefix }
}

/** Google Cloud serves each maker's models by another API. */
function inCloud(provider: Provider, model: string): Provider {
  if (provider.provider !== 'vertex') return provider
  if (model.startsWith('claude')) return { provider: 'anthropic', mode: 'vertex' }
  return model.includes('/') ? { provider: 'vertex', mode: 'openai' } : provider
}

/** Why a member of `litellm_params` is not converted. Members without a row are unknown. @table */
export const NOT_CONVERTED: Readonly<Record<string, string>> = {
  ...row('plat forwards what the caller sends; set it in the request', [
    ...['temperature', 'top_p', 'top_k', 'seed', 'stop', 'n', 'presence_penalty', 'frequency_penalty', 'user'],
    ...['response_format', 'tools', 'tool_choice', 'logit_bias', 'extra_body', 'thinking', 'reasoning_effort'],
  ]),
  ...row('plat adds no headers to requests of a model', ['extra_headers', 'headers', 'organization']),
  ...row('endpoints of one name share the calls by weight', ['order', 'region_name']),
  ...row('set upstreamTimeoutSeconds or modelRouting.attemptTimeoutSeconds in gateway.json', [
    'timeout',
    'stream_timeout',
    'request_timeout',
  ]),
  ...row('set retries of the route in gateway.json', ['max_retries', 'num_retries']),
  ...row('a BudgetPolicy has a cap per agent, user or group, not per model', ['max_budget', 'budget_duration']),
  ...row('use cloudCredentials of gateway.json or the environment', [
    ...['aws_role_name', 'aws_session_name', 'aws_profile_name', 'aws_web_identity_token', 'aws_sts_endpoint'],
    ...['vertex_credentials', 'tenant_id', 'client_id', 'client_secret', 'azure_ad_token', 'azure_username'],
  ]),
}

function row(why: string, members: readonly string[]): Record<string, string> {
  return Object.fromEntries(members.map((member) => [member, why]))
}
