/**
 * Files rendered by the operator and read by the gateway (policyFile, upstreamsFile): one schema gives the writer's type and the reader's decoder.
 * Readers refuse unknown fields.
 */
import { type Static, Type } from 'typebox'
import { API_TOOLS_MAX, apiToolSchema } from './api-tools.ts'
import { mapOf } from './check.ts'
import { memoryFields } from './kinds/memorystore.ts'

export { API_TOOLS_MAX, type ApiParameter, type ApiTool } from './api-tools.ts'
export { mapOf }

const closed = { additionalProperties: false } as const
const taintLabels = () => Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 16 })
const dataClass = () => Type.Enum(['public', 'internal', 'confidential', 'restricted'], { type: 'string' })
const names = () => Type.Array(Type.String({ minLength: 1, maxLength: 512 }), { maxItems: 256 })

/** Conditions of a rule: absent matches anything; OR with globs inside a key, AND between keys. */
const matchSchema = Type.Object(
  {
    servers: Type.Optional(names()),
    tools: Type.Optional(names()),
    skills: Type.Optional(names()),
    methods: Type.Optional(names()),
    agents: Type.Optional(names()),
    tiers: Type.Optional(names()),
    groups: Type.Optional(names()),
    users: Type.Optional(names()),
    dataClasses: Type.Optional(names()),
    taints: Type.Optional(names()),
    sinks: Type.Optional(names()),
  },
  closed,
)

/** Required approvers; absent members require no more than the gateway does. */
const quorumSchema = Type.Object(
  {
    minApprovers: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
    approverGroups: Type.Optional(names()),
    userConfirmation: Type.Optional(Type.Enum(['ciba'], { type: 'string' })),
  },
  closed,
)

const ruleSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128 }),
    action: Type.Enum(['allow', 'deny', 'require_approval'], { type: 'string' }),
    match: Type.Optional(matchSchema),
    when: Type.Optional(Type.String({ maxLength: 4096 })),
    reason: Type.Optional(Type.String({ maxLength: 1024 })),
    quorum: Type.Optional(quorumSchema),
    rateLimit: Type.Optional(
      Type.Object(
        {
          count: Type.Integer({ minimum: 1 }),
          seconds: Type.Integer({ minimum: 1 }),
          per: Type.Enum(['session', 'agent', 'user', 'group', 'model', 'namespace'], { type: 'string' }),
          except: Type.Optional(
            Type.Array(Type.Object({ names: names(), count: Type.Integer({ minimum: 1 }) }, closed), { maxItems: 64 }),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
)

const policySchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 512 }),
    namespace: Type.String({ minLength: 1, maxLength: 63 }),
    agents: Type.Array(Type.String({ minLength: 1, maxLength: 253 })),
    mode: Type.Enum(['enforce', 'dryRun'], { type: 'string' }),
    defaultAction: Type.Enum(['deny'], { type: 'string' }),
    cedar: Type.String(),
    rules: Type.Array(ruleSchema),
  },
  closed,
)

/** Format `policyFile`. `generation` feeds `plat_gateway_policy_revision`, `revision` names what decided in the ledger. */
export const policyFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    generation: Type.Integer({ minimum: 0 }),
    revision: Type.String({ minLength: 1, maxLength: 128 }),
    policies: Type.Array(policySchema),
  },
  closed,
)

/** Digests by tool name: any digest of a tool matches (MCPServer and ToolPolicy may name different ones). */
const pinsSchema = Type.Object(
  {
    mode: Type.Enum(['learn', 'enforce'], { type: 'string' }),
    onChange: Type.Enum(['hide', 'approve', 'alert'], { type: 'string' }),
    allowUnpinned: Type.Boolean(),
    pins: mapOf(Type.Array(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }), { minItems: 1 })),
  },
  closed,
)

/** Readers check which members a type requires. Secrets are given by file name only. */
const authSchema = Type.Object(
  {
    type: Type.Enum(['none', 'bearerSecret', 'headerSecret', 'oauthClientCredentials', 'tokenExchange', 'mtls'], {
      type: 'string',
    }),
    credentialKey: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][-._A-Za-z0-9]{0,316}$' })),
    headerName: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' })),
    oauth: Type.Optional(
      Type.Object(
        {
          tokenURL: Type.String({ pattern: '^https?://[^/@\\s]+' }),
          audience: Type.Optional(Type.String()),
          resource: Type.Optional(Type.String()),
          scopes: Type.Optional(Type.Array(Type.String())),
        },
        closed,
      ),
    ),
    tokenExchange: Type.Optional(Type.Object({ audience: Type.String({ minLength: 1 }) }, closed)),
    perUser: Type.Optional(Type.Boolean()),
    provider: Type.Optional(Type.String()),
  },
  closed,
)

/** Taint labels of a tool; the key is its name or a glob. */
const toolLabelsSchema = Type.Object(
  {
    taints: Type.Optional(taintLabels()),
    clearTaints: Type.Optional(taintLabels()),
    sinks: Type.Optional(taintLabels()),
  },
  closed,
)

const serverSchema = Type.Object(
  {
    url: Type.String({ pattern: '^https?://[^/@\\s]+' }),
    /**
     * A stdio server behind plat's bridge. `true`: `plat up` runs it, and it is reached over a socket, never by the host of `url`, which does not exist.
     * `service`: a Deployment runs it, and `url` is its Service.
     */
    stdio: Type.Optional(Type.Union([Type.Literal(true), Type.Literal('service')])),
    /** Present if `url` is the base of an HTTP API, which the gateway offers as an MCP server. */
    api: Type.Optional(Type.Object({ tools: Type.Array(apiToolSchema, { maxItems: API_TOOLS_MAX }) }, closed)),
    namespaces: Type.Array(Type.String({ minLength: 1, maxLength: 63 })),
    implicit: Type.Boolean(),
    trust: Type.Enum(['trusted', 'untrusted'], { type: 'string' }),
    dataClass: dataClass(),
    jurisdiction: Type.Optional(Type.String()),
    protocolVersions: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 32 }))),
    timeoutSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 })),
    caPEM: Type.Optional(Type.String()),
    auth: authSchema,
    dlpProfile: Type.Optional(Type.String()),
    pins: Type.Optional(pinsSchema),
    toolLabels: Type.Optional(mapOf(toolLabelsSchema)),
  },
  closed,
)

/** Format `upstreamsFile`. Keys of `servers` are `<ns>/<name>`, of `bindings` `<ns>/<agent>/<server>`. */
export const upstreamsFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    servers: mapOf(serverSchema),
    bindings: mapOf(Type.String()),
    agentWeb: mapOf(
      Type.Object(
        {
          allowedDomains: Type.Optional(Type.Array(Type.String())),
          deniedDomains: Type.Optional(Type.Array(Type.String())),
          browser: Type.Optional(Type.Object({ allowedDomains: Type.Array(Type.String()) }, closed)),
        },
        closed,
      ),
    ),
    /** By `<ns>/<agent>`; absent members have the gateway's defaults. Absent when no agent has any. */
    agentClients: Type.Optional(
      mapOf(
        Type.Object(
          {
            refusals: Type.Optional(Type.Enum(['result', 'error'], { type: 'string' })),
            answerAfterSeconds: Type.Optional(Type.Integer({ minimum: 0 })),
          },
          closed,
        ),
      ),
    ),
  },
  closed,
)

/** Members shared by a route and its fallbacks. */
const endpointFields = () => ({
  provider: Type.Optional(Type.String()),
  mode: Type.Optional(Type.String()),
  upstream: Type.String({ pattern: '^https?://[^/@\\s]+' }),
  model: Type.Optional(Type.String({ maxLength: 256 })),
  apiKeyFile: Type.Optional(Type.String()),
  jurisdiction: Type.Optional(Type.String()),
  region: Type.Optional(Type.String()),
  project: Type.Optional(Type.String()),
  apiVersion: Type.Optional(Type.String()),
  requestsPerMinute: Type.Optional(Type.Integer({ minimum: 0 })),
  weight: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  auth: Type.Optional(
    Type.Object(
      {
        type: Type.Optional(Type.String()),
        tokenFile: Type.Optional(Type.String()),
        tokenEnv: Type.Optional(Type.String()),
        accessKeyIdFile: Type.Optional(Type.String()),
        secretAccessKeyFile: Type.Optional(Type.String()),
        sessionTokenFile: Type.Optional(Type.String()),
        signingService: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
})

const endpointSchema = Type.Object(endpointFields(), closed)

const routeSchema = Type.Object(
  {
    ...endpointFields(),
    aliases: Type.Optional(mapOf(Type.String({ minLength: 1, maxLength: 256 }))),
    namespaces: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 63 }))),
    agents: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 317 }))),
    reasoning: Type.Optional(Type.Boolean()),
    dlpProfile: Type.Optional(Type.String()),
    preferJurisdiction: Type.Optional(Type.String()),
    dataClass: Type.Optional(dataClass()),
    providerTools: Type.Optional(Type.Array(Type.String(), { maxItems: 16 })),
    fallbacks: Type.Optional(Type.Array(endpointSchema, { maxItems: 8 })),
    contextTokens: Type.Optional(Type.Integer({ minimum: 0 })),
    maxTokensPerRequest: Type.Optional(Type.Integer({ minimum: 0 })),
    tokensPerMinute: Type.Optional(Type.Integer({ minimum: 0 })),
    balancing: Type.Optional(Type.Enum(['order', 'weight', 'latency'], { type: 'string' })),
    retries: Type.Optional(
      Type.Object(
        {
          attempts: Type.Optional(Type.Integer({ minimum: 0, maximum: 3 })),
          budgetPercent: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
          maxWaitSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 60 })),
        },
        closed,
      ),
    ),
    cache: Type.Optional(
      Type.Object(
        {
          ttlSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
          scope: Type.Optional(Type.Enum(['session', 'user', 'agent', 'route'], { type: 'string' })),
        },
        closed,
      ),
    ),
    agent: Type.Optional(Type.String({ pattern: '^[^/]+/[^/]+$' })),
  },
  closed,
)

/** Format `modelsFile`. Keys of `models` are `<ns>.<agent>`, split at the first dot; `agent` is the one that may use the route. */
export const modelsFileSchema = Type.Object({ version: Type.Literal(1), models: mapOf(routeSchema) }, closed)

const skillSchema = Type.Object(
  {
    id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' }),
    name: Type.String({ minLength: 1 }),
    description: Type.Optional(Type.String({ maxLength: 8192 })),
    examples: Type.Optional(Type.Array(Type.String())),
    tags: Type.Optional(Type.Array(Type.String())),
  },
  closed,
)

const exposedSchema = Type.Object(
  {
    endpoint: Type.String({ pattern: '^https?://[^/@\\s]+' }),
    description: Type.Optional(Type.String({ maxLength: 8192 })),
    allowedCallers: Type.Array(Type.String({ minLength: 1, maxLength: 317 })),
    skills: Type.Array(skillSchema),
    streaming: Type.Boolean(),
    protocolVersion: Type.Optional(Type.Enum(['1.0', '0.3'], { type: 'string' })),
    timeoutSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600 })),
    trust: Type.Enum(['trusted', 'untrusted'], { type: 'string' }),
    version: Type.String({ minLength: 1, maxLength: 64 }),
    jurisdiction: Type.Optional(Type.String()),
  },
  closed,
)

/**
 * Format `a2a.routesFile`. Keys of `agents` are `<ns>/<agent>`. Without `allowedCallers`: agents of the same namespace; without `skills`: none is
 * advertised and any may be requested.
 */
export const agentsFileSchema = Type.Object({ version: Type.Literal(1), agents: mapOf(exposedSchema) }, closed)

const budgetSchema = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 256 }),
    source: Type.String({ pattern: '^(BudgetPolicy|Agent)/[^/]+/[^/]+$', maxLength: 256 }),
    match: Type.Object(
      {
        namespaces: Type.Optional(names()),
        agents: Type.Optional(names()),
        users: Type.Optional(names()),
        groups: Type.Optional(names()),
      },
      closed,
    ),
    window: Type.Enum(['session', 'day', 'month'], { type: 'string' }),
    capMicros: Type.Optional(Type.Integer({ minimum: 0 })),
    tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Each of them has the cap; absent: the selected callers share it. */
    per: Type.Optional(Type.Enum(['user', 'group', 'agent', 'session', 'model'], { type: 'string' })),
    /** Only these have it; absent: all. */
    names: Type.Optional(names()),
    /** Other amounts, in the unit of the cap: the first entry that names one applies. */
    except: Type.Optional(
      Type.Array(Type.Object({ names: names(), amount: Type.Integer({ minimum: 0 }) }, closed), { maxItems: 64 }),
    ),
    alerts: Type.Array(Type.Integer({ minimum: 1, maximum: 100 }), { maxItems: 16 }),
  },
  closed,
)

/** Most budgets of one file. */
export const BUDGETS_MAX = 20_000

/**
 * Format `budgetsFile`. Each entry caps money (`capMicros`, in millionths of `currency`) or tokens. An id begins with its source and is unique; an
 * absent key of `match` matches all calls.
 */
export const budgetsFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    currency: Type.String({ pattern: '^[A-Z]{3}$' }),
    budgets: Type.Array(budgetSchema, { maxItems: BUDGETS_MAX }),
  },
  closed,
)

/** Stores of all namespaces. */
export const STORES_MAX = 10_000

/** Format `memoryFile`: MemoryStores by `<namespace>/<name>`. */
export const memoryFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    stores: mapOf(Type.Object(memoryFields(), closed), { maxProperties: STORES_MAX }),
  },
  closed,
)

export type PolicyFile = Static<typeof policyFileSchema>
export type PolicyEntry = PolicyFile['policies'][number]
export type RuleEntry = PolicyEntry['rules'][number]
export type RuleMatch = Static<typeof matchSchema>
export type UpstreamsFile = Static<typeof upstreamsFileSchema>
export type PinsEntry = Static<typeof pinsSchema>
export type ServerEntry = UpstreamsFile['servers'][string]
export type AuthEntry = ServerEntry['auth']
export type ModelsFile = Static<typeof modelsFileSchema>
export type AgentsFile = Static<typeof agentsFileSchema>
export type AgentEntry = AgentsFile['agents'][string]
export type MemoryFile = Static<typeof memoryFileSchema>
export type BudgetsFile = Static<typeof budgetsFileSchema>
export type BudgetEntry = BudgetsFile['budgets'][number]
export type ModelRouteEntry = ModelsFile['models'][string]
export type ModelEndpointEntry = Static<typeof endpointSchema>

/** Variables of a rule's `when`. */
export const WHEN_VARIABLES = [
  'args',
  'inputResponses',
  'meta',
  'identity',
  'target',
  'taints',
  'method',
  'now',
] as const

export { type Decoded, decodeRendered } from './decode.ts'
export { isWrittenHeader } from './headers.ts'
export { MEMORY_DEFAULTS } from './kinds/memorystore.ts'
export { lentTokenFault } from './lent-tokens.ts'
