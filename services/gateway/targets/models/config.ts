import { defineBlock, key, memberPath, type Problem, type RuleOf } from '@plat/config'
import { isObject } from '@plat/core'
import Type from 'typebox'
import { Check } from 'typebox/value'
import { endpointFaults } from './providers.ts'

/** Name of a static route, as in `/llm/<route>/v1` and the scope `models:<route>`. */
const ROUTE_NAME = '^(?!plat-)[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'

const names = (description: string) => Type.Array(Type.String({ minLength: 1 }), { default: [], description })

const JURISDICTION = '^(?:[A-Za-z]{2}(?:-[A-Za-z0-9]{1,8})*)?$'

/** Keys of a route and of its fallbacks that describe the endpoint. */
const endpointKeys = () => ({
  provider: Type.Enum(
    ['openai', 'anthropic', 'azure-openai', 'bedrock', 'vertex', 'gemini', 'oci-genai', 'ctxengine'],
    {
      default: 'openai',
      description: 'Wire format of the upstream.',
    },
  ),
  mode: key.text('Variant of the provider; default its first.'),
  upstream: key.url('Base URL including `/v1`; required for openai and azure-openai.'),
  model: Type.String({ default: '', description: 'Forced into each request that names no alias.' }),
  apiKeyFile: Type.String({
    default: '',
    file: 'warning',
    description: 'Key presented as bearer credential, re-read each reload; the session token is always stripped.',
  }),
  jurisdiction: Type.String({
    default: '',
    pattern: JURISDICTION,
    description: 'Jurisdiction of the endpoint: ISO 3166 code.',
  }),
  region: key.text('Provider region.'),
  project: key.text('Cloud project; with oci-genai a compartment or project, default the tenancy.'),
  apiVersion: key.text(
    'Version of the provider API; default `2024-10-21` for azure-openai, `2023-06-01` for anthropic.',
    '',
    '^[A-Za-z0-9._-]{0,40}$',
  ),
  requestsPerMinute: Type.Integer({ default: 0, minimum: 0, description: 'Of all sessions together; 0 unlimited.' }),
  weight: Type.Integer({
    default: 1,
    minimum: 0,
    maximum: 1000,
    description: 'Share of calls relative to other endpoints, with `balancing`; 0: only if no other can serve a call.',
  }),
  auth: key.group(
    {
      type: Type.Enum(['', 'api-key', 'bearer', 'aws-sigv4', 'gcp', 'azure-entra', 'oci', 'none'], {
        default: '',
        description: 'Default `api-key` when `apiKeyFile` is set, else per provider.',
      }),
      tokenFile: key.file('Token of type `bearer`, re-read each reload.'),
      tokenEnv: key.text(
        'Variable with the token of type `bearer` or `gcp`; default `GOOGLE_OAUTH_ACCESS_TOKEN` for gcp.',
      ),
      accessKeyIdFile: key.file('Of type `aws-sigv4`; default the environment.'),
      secretAccessKeyFile: key.file('Of type `aws-sigv4`; default the environment.'),
      sessionTokenFile: key.file('Of type `aws-sigv4`.'),
      signingService: key.text('Of type `aws-sigv4`; default `bedrock`.'),
    },
    'Upstream authentication.',
  ),
})

const endpoint = Type.Object(endpointKeys())

const route = Type.Object({
  ...endpointKeys(),
  aliases: Type.Record(Type.String(), Type.String({ minLength: 1 }), {
    default: {},
    description: 'Model names that agents send, mapped to those of the provider.',
  }),
  namespaces: names('Namespaces that may use the route; default any.'),
  agents: names('Agents that may use the route, as `<ns>/<agent>` or `<agent>`; default any.'),
  reasoning: Type.Optional(Type.Boolean({ description: 'Takes `max_completion_tokens`; default detected.' })),
  maxTokensPerRequest: Type.Integer({ default: 0, minimum: 0, description: 'Clamp for `max_tokens`; 0 unlimited.' }),
  contextTokens: Type.Integer({
    default: 0,
    minimum: 0,
    description:
      'Largest context window of its models, held under a budget for images, documents and stored responses; 0: as the prices state it.',
  }),
  tokensPerMinute: Type.Integer({ default: 0, minimum: 0, description: 'Per session; 0 unlimited.' }),
  dlpProfile: Type.String({
    default: '',
    description: 'Profile of `dlpProfiles`; before `dlp.models`; `none` disables.',
  }),
  preferJurisdiction: Type.String({
    default: '',
    pattern: JURISDICTION,
    description: 'Endpoints there are tried first; default by `modelRouting.tierJurisdictions`.',
  }),
  balancing: Type.Enum(['order', 'weight', 'latency'], {
    default: 'order',
    description: 'Which endpoint is tried first: the first of the route, by `weight`, or by latency and `weight`.',
  }),
  retries: key.group(
    {
      attempts: Type.Integer({
        default: 0,
        minimum: 0,
        maximum: 3,
        description: 'Further attempts where all endpoints failed, at those that did not process the request.',
      }),
      budgetPercent: Type.Integer({
        default: 20,
        minimum: 1,
        maximum: 100,
        description: 'Share of the calls of the last 10 seconds that may be retried; three always may.',
      }),
      maxWaitSeconds: Type.Integer({
        default: 10,
        minimum: 1,
        maximum: 60,
        description: 'Longest wait before a retry, which includes `Retry-After` of the provider.',
      }),
    },
    'Retries.',
  ),
  cache: key.group(
    {
      ttlSeconds: Type.Integer({
        default: 0,
        minimum: 0,
        maximum: 86_400,
        description: 'Time that a response is stored for identical requests; 0: no response is stored.',
      }),
      scope: Type.Enum(['session', 'user', 'agent', 'route'], {
        default: 'user',
        description:
          'Callers that share responses: `user` is one user of one agent; `agent` and `route` include several users.',
      }),
    },
    'Response cache.',
  ),
  dataClass: Type.Enum(['public', 'internal', 'confidential', 'restricted'], {
    default: 'internal',
    description: 'Class of data from sessions that received no data of a higher class.',
  }),
  providerTools: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    maxItems: 16,
    description: 'Provider-hosted tools that requests may use, by name or by version; default none.',
  }),
  fallbacks: Type.Array(endpoint, {
    default: [],
    maxItems: 8,
    description: 'Tried in order when an endpoint fails; a fallback inherits nothing.',
  }),
})

const schema = Type.Object({
  modelsFile: Type.String({
    default: '',
    file: 'warning',
    description: '`{models: {route: …}}`; a missing file means no file routes; overrides `models`.',
  }),
  models: Type.Record(Type.String({ pattern: ROUTE_NAME }), route, { default: {}, description: 'Static routes.' }),
})

/** Rules for endpoints beyond the schema: allowed keys of each provider, and support by this version. */
const endpointsAreBuilt: RuleOf<typeof schema> = (file) => {
  const { models = {} } = file
  const engine: unknown = Reflect.get(file, 'ctxengine')
  const hasEngine = isObject(engine) && typeof engine.upstream === 'string' && engine.upstream !== ''
  const problemsOf = (path: string, entry: unknown) => [
    ...problemsIn(path, entry),
    ...engineProblems(path, entry, hasEngine),
  ]
  return Object.entries(models).flatMap(([name, one]) => {
    const path = memberPath('models', name)
    const fallbacks = one?.fallbacks ?? []
    return [
      ...problemsOf(path, one),
      ...fallbacks.flatMap((fallback, index) => problemsOf(`${path}.fallbacks[${index}]`, fallback)),
    ]
  })
}

/** Problems of an endpoint of the provider `ctxengine`. */
function engineProblems(path: string, entry: unknown, hasEngine: boolean): Problem[] {
  if (!isObject(entry) || entry.provider !== 'ctxengine' || hasEngine || (entry.upstream ?? '') !== '') return []
  return [{ path: `${path}.upstream`, message: 'is required without ctxengine.upstream', severity: 'error' }]
}

function problemsIn(path: string, entry: unknown): Problem[] {
  if (!Check(endpoint, entry)) return []
  return endpointFaults(entry).map(([name, message]) => ({ path: `${path}.${name}`, message, severity: 'error' }))
}

/** Model routes (docs/spec/gateway.md). */
export const modelsBlock = defineBlock({
  path: '',
  feature: 'models',
  schema,
  rules: [endpointsAreBuilt],
})

/** `modelRouting` (docs/spec/gateway.md): failover between endpoints. */
export const modelRoutingBlock = defineBlock({
  path: 'modelRouting',
  feature: 'models',
  schema: Type.Object({
    failureThreshold: key.whole('Consecutive failures that open a circuit.', 3, 1),
    cooldownSeconds: key.seconds('Time that a circuit stays open.', 30),
    attemptTimeoutSeconds: key.seconds('Time for one attempt; default `upstreamTimeoutSeconds`.', 0, 0),
    cacheMaxBytes: Type.Integer({
      default: 33_554_432,
      minimum: 1_048_576,
      maximum: 1_073_741_824,
      description: 'Total of all stored responses of routes with `cache`.',
    }),
    probeIntervalSeconds: key.seconds('Active GET of `<base>/models`; 0 passive.', 0, 0),
    tierJurisdictions: Type.Record(Type.String(), Type.String({ pattern: JURISDICTION }), {
      default: {},
      description: 'Tier to the jurisdiction whose endpoints are tried first; default by its TrustTier.',
    }),
    dataClassModels: Type.Record(
      Type.String({ pattern: '^(?:public|internal|confidential|restricted)$' }),
      Type.Array(Type.String({ minLength: 1 })),
      {
        default: {},
        description: 'Data class to model globs; a class without an entry inherits the next lower class.',
      },
    ),
  }),
})

/** Bytes of uploads on the disk that an agent, and a session, may hold: a quarter and an eighth of all. */
export function uploadShares(totalBytes: number): readonly [agent: number, session: number] {
  return [Math.floor(totalBytes / 4), Math.floor(totalBytes / 8)]
}

/** `modelUploads` (docs/spec/gateway.md): files in requests of models. */
export const modelUploadsBlock = defineBlock({
  path: 'modelUploads',
  feature: 'models',
  schema: Type.Object({
    maxBytes: Type.Integer({
      default: 33_554_432,
      minimum: 1_048_576,
      description: 'Largest request with files, in bytes; at most an eighth of `totalBytes`.',
    }),
    totalBytes: Type.Integer({
      default: 1_073_741_824,
      minimum: 8_388_608,
      maximum: 1_099_511_627_776,
      description:
        'Total of all such requests on the disk while they last; an agent has a quarter, a session an eighth.',
    }),
    dir: key.text('Folder for them; default that of temporary files.'),
  }),
  rules: [
    ({ maxBytes = 33_554_432, totalBytes = 1_073_741_824 }) =>
      maxBytes <= uploadShares(totalBytes)[1]
        ? []
        : [{ path: 'modelUploads.maxBytes', message: 'must be at most an eighth of totalBytes', severity: 'error' }],
  ],
})

/** `cloudCredentials` (docs/spec/gateway.md): sources of cloud credentials; the environment when empty. */
export const cloudCredentialsBlock = defineBlock({
  path: 'cloudCredentials',
  feature: 'models',
  schema: Type.Object({
    aws: key.group(
      {
        region: key.text('Default `$AWS_REGION`, then `$AWS_DEFAULT_REGION`.'),
        imds: Type.Boolean({ default: false, description: 'Use the metadata service of the machine (IMDSv2).' }),
        partitionDNSSuffix: key.text('Domain of an unknown partition; default by region.'),
        stsEndpoint: key.url('Instead of the regional one.'),
      },
      'AWS.',
    ),
    azure: key.group(
      {
        managedIdentity: Type.Boolean({ default: false, description: 'The identity of the machine or app.' }),
        identityBinding: Type.Boolean({
          default: false,
          description: 'Identity bindings of AKS: the federated token goes to `$AZURE_KUBERNETES_TOKEN_PROXY`.',
        }),
      },
      'Azure.',
    ),
    gcp: key.group(
      {
        metadataHost: key.text('Default `$GCE_METADATA_HOST`, else `169.254.169.254`.'),
      },
      'Google Cloud.',
    ),
  }),
})
