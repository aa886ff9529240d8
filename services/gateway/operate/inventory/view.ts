/** Policies, servers, model routes and agents in the admin API. @table */
import { type Static, Type } from 'typebox'

const text = () => Type.String()
const texts = () => Type.Array(Type.String())
const whole = () => Type.Integer({ minimum: 0 })
const orNull = <T extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(of: T) =>
  Type.Union([of, Type.Null()])
const open = () => Type.Object({}, { additionalProperties: true })

const ruleSchema = Type.Object({
  name: text(),
  action: Type.Enum(['allow', 'deny', 'require_approval'], { type: 'string' }),
  match: Type.Optional(Type.Record(text(), texts())),
  when: Type.Optional(text()),
  reason: Type.Optional(text()),
  quorum: Type.Optional(open()),
  rateLimit: Type.Optional(open()),
  hits: Type.Integer({ minimum: 0, description: 'Calls that it decided on this gateway.' }),
  since: Type.String({
    description: 'Counted from then on: the start of the gateway, or when the rule came into force.',
  }),
})

/** A ToolPolicy as written. */
export const policySchema = Type.Object({
  id: text(),
  namespace: text(),
  agents: texts(),
  mode: Type.Enum(['enforce', 'dryRun'], { type: 'string' }),
  defaultAction: text(),
  cedar: orNull(text()),
  cedarFault: Type.Union([text(), Type.Null()], {
    description: 'Why the Cedar text denies everything; null: it does not.',
  }),
  rules: Type.Array(ruleSchema),
  defaultHits: Type.Integer({ minimum: 0, description: 'Calls that no rule matched.' }),
  revision: text(),
})

export const serverSchema = Type.Object({
  id: text(),
  kind: Type.Enum(['server', 'implicit', 'static', 'builtin'], { type: 'string' }),
  namespace: orNull(text()),
  sharedWith: texts(),
  url: Type.Union([text(), Type.Null()], { description: 'Origin and path; null: a built-in server.' }),
  stdio: Type.Boolean(),
  trust: text(),
  dataClass: text(),
  jurisdiction: orNull(text()),
  protocolVersions: Type.Union([texts(), Type.Null()]),
  auth: text(),
  timeoutSeconds: orNull(whole()),
  dlpProfile: orNull(text()),
  pins: Type.Union([text(), Type.Null()], { description: '`learn` or `enforce`; null: off.' }),
  unreachable: Type.Union([text(), Type.Null()], {
    description: 'Why the last request to it could not be sent; null: it could, or this gateway has made none.',
  }),
})

const endpointSchema = Type.Object({
  provider: text(),
  origin: text(),
  model: orNull(text()),
  isFallback: Type.Boolean(),
  jurisdiction: orNull(text()),
  region: orNull(text()),
  weight: Type.Number(),
  requestsPerMinute: orNull(whole()),
  isReady: Type.Boolean({ description: 'Its credential was read.' }),
  circuit: Type.Enum(['closed', 'open', 'trial'], { type: 'string', description: '`trial`: the next call decides.' }),
  failures: Type.Integer({ minimum: 0, description: 'Consecutive failures.' }),
  retryInMs: orNull(whole()),
  latencies: Type.Array(Type.Object({ kind: text(), averageMs: whole(), pending: whole(), agoMs: whole() }), {
    description: 'Of routes that balance by latency, as this gateway measured them.',
  }),
})

export const modelSchema = Type.Object({
  id: text(),
  namespaces: texts(),
  agents: texts(),
  aliases: texts(),
  balancing: text(),
  dataClass: text(),
  preferJurisdiction: orNull(text()),
  dlpProfile: orNull(text()),
  providerTools: texts(),
  contextTokens: orNull(whole()),
  maxTokensPerRequest: orNull(whole()),
  tokensPerMinute: orNull(whole()),
  endpoints: Type.Array(endpointSchema),
})

export const agentSchema = Type.Object({
  id: text(),
  namespace: text(),
  agent: text(),
  policies: texts(),
  models: Type.Array(Type.String(), {
    description: 'Model routes that only named agents may use, this one among them.',
  }),
  exposed: Type.Union([
    Type.Object({
      endpoint: text(),
      protocolVersion: text(),
      version: text(),
      description: text(),
      trust: text(),
      streaming: Type.Boolean(),
      jurisdiction: orNull(text()),
      skills: texts(),
    }),
    Type.Null(),
  ]),
})

const healthSchema = Type.Object({
  ledger: Type.Boolean({ description: 'It can be written.' }),
  state: Type.Union([text(), Type.Null()], { description: 'Why the state database cannot be used; null: it can.' }),
  sinks: Type.Array(
    Type.Object({
      name: text(),
      lag: Type.Integer({ minimum: 0, description: 'Records that wait for delivery.' }),
      isFailing: Type.Boolean({ description: 'The last delivery failed; it is repeated.' }),
    }),
  ),
})

export const nowSchema = Type.Object({
  calls: Type.Object({ total: whole(), long: whole() }, { description: 'Calls in progress; `long`: open streams.' }),
  sessions: Type.Integer({ minimum: 0, description: 'Sessions of these calls.' }),
  agents: Type.Array(Type.Object({ id: text(), calls: whole() }), { description: 'Those with the most calls.' }),
  problems: Type.Union([texts(), Type.Null()], {
    description: 'What makes `/readyz` fail; null: needs the role in all namespaces.',
  }),
  health: Type.Union([healthSchema, Type.Null()], { description: 'Null: needs the role in all namespaces.' }),
  unreachable: Type.Array(Type.Object({ id: text(), reason: text() }), {
    description: 'MCP servers to which the last request could not be sent.',
  }),
})

export type NowView = Static<typeof nowSchema>
export type PolicyView = Static<typeof policySchema>
export type ServerView = Static<typeof serverSchema>
export type ModelView = Static<typeof modelSchema>
export type AgentView = Static<typeof agentSchema>
