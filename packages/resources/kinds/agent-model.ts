import { Type } from 'typebox'
import { mapOf } from '../check.ts'
import { closed, count, dlpProfile, flag, jurisdiction, longCount, oneOf, secretKeyRef, text } from './common.ts'

const { Optional } = Type

const endpoint = (description: string, options: object = {}) =>
  text(description, { pattern: '^https?://[^/?#@]+', ...options })

/** Wire formats of model providers. */
export const MODEL_ADAPTERS = [
  'openai',
  'azure-openai',
  'bedrock',
  'vertex',
  'gemini',
  'anthropic',
  'oci-genai',
] as const

/** Members shared by an endpoint and its fallbacks. */
const endpointFields = () => ({
  name: Optional(text('Model name.', { maxLength: 256 })),
  adapter: Optional(oneOf(MODEL_ADAPTERS, 'Wire format and upstream authentication; default `openai`.')),
  adapterMode: Optional(
    oneOf(
      ['v1', 'deployments', 'converse', 'openai', 'native', 'direct', 'vertex', 'bedrock'],
      'Per adapter; default the first that it has.',
    ),
  ),
  apiVersion: Optional(
    text('Azure api-version or anthropic-version.', { maxLength: 40, pattern: '^[A-Za-z0-9._-]{1,40}$' }),
  ),
  apiKeySecretRef: Optional(secretKeyRef('Key that the gateway presents; never reaches the sandbox.')),
  jurisdiction: Optional(jurisdiction()),
  region: Optional(text('Provider region.', { maxLength: 41, pattern: '^[a-z][a-z0-9-]{1,40}$' })),
  project: Optional(text('Cloud project.', { maxLength: 63, pattern: '^[a-z0-9][a-z0-9-]{2,62}$' })),
  requestsPerMinute: Optional(count('Cap on HTTP requests to the endpoint; 0: unlimited.')),
  weight: Optional(
    count('Share of calls relative to other endpoints, with `balancing`; default 1; 0: if no other can serve a call.', {
      maximum: 1000,
    }),
  ),
})

const fallbackSchema = Type.Object(
  { endpoint: endpoint('OpenAI-compatible base URL.', { minLength: 1 }), ...endpointFields() },
  closed,
)

const retriesSchema = Type.Object(
  {
    attempts: count('Further attempts where all endpoints failed, at those that did not process the request.', {
      maximum: 3,
    }),
    budgetPercent: Optional(
      count('Share of the calls of the last 10 seconds that may be retried; default 20.', { minimum: 1, maximum: 100 }),
    ),
    maxWaitSeconds: Optional(
      count('Longest wait before a retry, which includes `Retry-After` of the provider; default 10.', {
        minimum: 1,
        maximum: 60,
      }),
    ),
  },
  { ...closed, description: 'Retries of calls that no endpoint processed.' },
)

const cacheSchema = Type.Object(
  {
    ttlSeconds: count('Time that a response is stored for identical requests; 0: no response is stored.', {
      maximum: 86_400,
    }),
    scope: Optional(
      oneOf(['session', 'user', 'agent'], 'Callers that share responses; default `user`; `agent`: all its users.'),
    ),
  },
  { ...closed, description: 'Response cache.' },
)

/** `Agent.spec.model` (docs/spec/crds.md). */
export const modelSchema = Type.Object(
  {
    provider: Optional(text('For people; `ctxengine` binds each session to its own context.', { maxLength: 128 })),
    endpoint: Optional(endpoint('OpenAI-compatible base URL.')),
    ...endpointFields(),
    aliases: Optional(
      mapOf(text('Provider model ID.', { maxLength: 256 }), {
        maxProperties: 256,
        description: 'Model names that the agent may send, and the provider’s name of each.',
      }),
    ),
    dlpProfile: Optional(dlpProfile()),
    contextTokens: Optional(
      longCount(
        'Largest context window of its models, held under a budget for images, documents and stored responses; 0: refused.',
      ),
    ),
    maxTokensPerRequest: Optional(longCount('Clamp for `max_tokens`; 0: unlimited.')),
    tokensPerMinute: Optional(longCount('Tokens per session per minute; 0: unlimited.')),
    reasoning: Optional(flag('Takes `max_completion_tokens`; default detected from the model ID.')),
    providerTools: Optional(
      Type.Array(text('Provider-hosted tool.', { maxLength: 128 }), { maxItems: 16, description: 'Allow-list.' }),
    ),
    balancing: Optional(
      oneOf(
        ['order', 'weight', 'latency'],
        'Which endpoint is tried first: the first (default), by `weight`, or by latency and `weight`.',
      ),
    ),
    retries: Optional(retriesSchema),
    cache: Optional(cacheSchema),
    fallbacks: Optional(Type.Array(fallbackSchema, { maxItems: 8, description: 'Tried in order.' })),
  },
  {
    ...closed,
    description: 'The model that the agent uses through the gateway.',
    'x-kubernetes-validations': [
      {
        rule: "!has(self.provider) || self.provider != 'ctxengine' || !has(self.adapter) || self.adapter == 'openai'",
        message: 'provider ctxengine is OpenAI-compatible: adapter must be unset or openai',
      },
    ],
  },
)
