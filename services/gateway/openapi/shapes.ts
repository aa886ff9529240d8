/** Requests and responses of each route of the admin API. @table */
import { LICENSE_STATES } from '@plat/license'
import { type TSchema, Type } from 'typebox'
import type { AdminRoute } from '../admin/index.ts'
import { approveSchema, decisionSchema } from '../decide/approvals/routes.ts'
import { viewSchema as approval, argumentsSchema, grantSchema } from '../decide/approvals/view.ts'
import { acceptSchema } from '../decide/pins/routes.ts'
import { definitionsSchema, detailSchema, serverSchema } from '../decide/pins/view.ts'
import { simulateBody } from '../decide/policy/simulate/routes.ts'
import { triedSchema, tryBody } from '../decide/policy/simulate/try-call.ts'
import { previewSchema, revocationRequestSchema } from '../decide/revocations/format.ts'
import { previewViewSchema, viewSchema as revocation } from '../decide/revocations/view.ts'
import { replicaSchema } from '../evidence/audit/copy/replica-view.ts'
import { segmentSchema } from '../evidence/audit/segment-views.ts'
import { SEGMENT_TYPE } from '../evidence/audit-collector/routes.ts'
import { requestSchema } from '../evidence/objects/routes.ts'
import { holdSchema } from '../evidence/retention/routes.ts'
import { BUNDLE_TYPE } from '../operate/config-bundle/routes.ts'
import {
  agentSchema,
  serverSchema as mcpServerSchema,
  modelSchema,
  nowSchema,
  policySchema,
} from '../operate/inventory/view.ts'
import { problemsSchema } from '../operate/resource-problems/routes.ts'
import { checkpointSchema } from '../targets/ctxengine/routes.ts'

export interface Shape {
  /** Parameters of the query, by name. */
  readonly query?: Readonly<Record<string, TSchema>>
  /** A text: the media type of bytes. */
  readonly body?: TSchema | string
  /** The body may be left out. */
  readonly bodyOptional?: true
  /** Null: 204, without a body. */
  readonly answer: TSchema | null
  /** The answer is a stream of server-sent events. */
  readonly stream?: true
  /** Of the answer; 200 where it is left out. */
  readonly status?: 201
}

const text = () => Type.String()
const whole = () => Type.Integer({ minimum: 0 })
const time = () => Type.String({ format: 'date-time' })
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()])

const LIMIT = Type.Integer({ minimum: 1, description: 'How many items one answer holds at most.' })
const CURSOR = Type.String({ description: '`nextCursor` of the page before.' })

/** A list of the admin API: page by page. */
/** Whose ledger. */
const OF_TENANT = {
  tenant: Type.String({
    description:
      'Tenant of `tenantsFile` whose ledger is meant; default: the only one of the caller, or that of the fleet.',
  }),
}

/** Whose ledger of several replicas. */
const OF_REPLICA = {
  replica: Type.String({
    description:
      'Name or `ledgerId` of the replica whose ledger is meant (`GET /v1/audit/replicas`), or `*` for all, merged by time.',
  }),
}

function list(item: TSchema, query: Shape['query'] = {}): Shape {
  return {
    query: { ...query, limit: LIMIT, cursor: CURSOR },
    answer: Type.Object({ items: Type.Array(item), nextCursor: orNull(text()) }),
  }
}

const money = Type.Object({ micros: whole(), currency: text() })
const amount = Type.Union([money, Type.Object({ tokens: whole() })])

const session = Type.Object({
  id: Type.String({ description: '`<namespace>/<agent>/<session>`' }),
  namespace: text(),
  agent: text(),
  session: text(),
  user: orNull(text()),
  tier: text(),
  startedAt: time(),
  lastActivity: time(),
  calls: whole(),
  denied: whole(),
  pendingApprovals: whole(),
  taints: Type.Array(text()),
  views: Type.Array(Type.Enum(['watch', 'control'], { type: 'string' }), {
    description: 'How the caller may view its browser.',
  }),
  spent: money,
})

const view = Type.Object({
  mode: Type.Enum(['watch', 'control'], { type: 'string' }),
  protocol: Type.Enum(['rfb'], { type: 'string', description: 'Of the WebSocket at the same path (RFC 6143).' }),
})

const budget = Type.Object({
  id: text(),
  budget: text(),
  source: orNull(text()),
  scope: text(),
  window: Type.Enum(['session', 'day', 'month'], { type: 'string' }),
  period: text(),
  subject: orNull(text()),
  usedAt: orNull(time()),
  cap: amount,
  spent: amount,
  held: amount,
  left: amount,
  resetsAt: orNull(time()),
  alerts: Type.Array(whole()),
})

const record = Type.Object(
  {
    seq: whole(),
    hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    prev: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    rec: Type.Object({ kind: text(), at: time() }, { additionalProperties: true }),
    v: Type.Literal(1),
  },
  { description: 'One record of the ledger, as its line says it.' },
)

/** The record of a checkpoint as stored beside the ledger. */
const checkpoint = Type.Object({}, { additionalProperties: true })

const account = Type.Object({
  id: text(),
  user: text(),
  realm: text(),
  provider: text(),
  scopes: Type.Array(text()),
  expiresAt: orNull(time()),
  connectedAt: time(),
})

const remembered = Type.Object({
  id: text(),
  namespace: text(),
  store: text(),
  scope: Type.Enum(['agent', 'session', 'user'], { type: 'string' }),
  who: text(),
  items: whole(),
  bytes: whole(),
})

const hold = Type.Object({ id: text(), at: time(), by: text(), reason: text(), target: text() })

const savedContext = Type.Object({ name: text(), bytes: whole(), sha256: text() })

const evidence = Type.Object({
  id: text(),
  at: time(),
  by: text(),
  about: Type.Record(text(), text()),
  from: whole(),
  to: whole(),
  records: whole(),
  anchored: Type.Boolean(),
})

const actions = () => Type.Enum(['allow', 'deny', 'require_approval'], { type: 'string' })
const verdict = { action: actions(), policy: orNull(text()), rule: orNull(text()) }

const simulated = Type.Object({
  seq: whole(),
  at: time(),
  call: text(),
  namespace: text(),
  agent: text(),
  session: text(),
  op: text(),
  server: text(),
  tool: orNull(text()),
  verdict: Type.Enum(['same', 'changed', 'needs_arguments'], { type: 'string' }),
  was: Type.Object(verdict),
  would: orNull(Type.Object({ ...verdict, reason: text() })),
  possible: Type.Array(actions()),
  captured: Type.Boolean(),
})

const profile = { query: { seconds: Type.Integer({ minimum: 1 }) }, answer: Type.Object({}) } satisfies Shape

/** An approval after a vote, with the number of missing votes. */
const decided = Type.Object({ ...approval.properties, missing: whole() })

/** Members of a session's name. */
const names = { namespace: text(), agent: text(), session: text() }

/** By route: a route without a shape does not compile. */
export const shapes: Readonly<Record<AdminRoute, Shape>> = {
  'GET /openapi.json': { answer: Type.Object({ openapi: text() }) },
  'GET /v1/auth/config': {
    answer: Type.Object({
      mode: Type.Enum(['token', 'oidc', 'both'], { type: 'string' }),
      issuer: Type.Optional(text()),
      audience: Type.Optional(text()),
      clientID: Type.Optional(text()),
      scopes: Type.Optional(Type.Array(text())),
      resource: Type.Optional(text()),
    }),
  },
  'GET /v1/whoami': {
    answer: Type.Object({
      by: text(),
      roles: Type.Array(text()),
      namespaceRoles: Type.Record(text(), Type.Array(text())),
      tenantRoles: Type.Record(text(), Type.Array(text())),
    }),
  },
  'POST /v1/console/links': {
    answer: Type.Object({ code: text(), path: text(), expiresAt: time() }),
    status: 201,
  },
  'GET /v1/events': { answer: Type.String(), stream: true },
  'GET /v1/approvals': list(approval, { state: text(), ...names }),
  'GET /v1/approvals/:id': { answer: approval },
  'GET /v1/approvals/:id/arguments': { answer: argumentsSchema },
  'POST /v1/approvals/:id/approve': { body: approveSchema, bodyOptional: true, answer: decided },
  'POST /v1/approvals/:id/deny': { body: decisionSchema, bodyOptional: true, answer: decided },
  'GET /v1/session-approvals': list(grantSchema, names),
  'DELETE /v1/session-approvals/:id': { answer: null },
  'GET /v1/revocations': list(revocation),
  'POST /v1/revocations': { body: revocationRequestSchema, answer: revocation, status: 201 },
  'POST /v1/revocations/preview': { body: previewSchema, answer: previewViewSchema },
  'DELETE /v1/revocations/:id': { answer: null },
  'GET /v1/pins': list(serverSchema),
  'GET /v1/pins/:namespace/:name': { answer: detailSchema },
  'GET /v1/pins/:namespace/:name/definition': { query: { tool: text() }, answer: definitionsSchema },
  'POST /v1/admin/state:adopt': { answer: null },
  'POST /v1/pins/:namespace/:name/accept': { body: acceptSchema, answer: detailSchema },
  'POST /v1/pins/:namespace/:name/reject': { body: acceptSchema, answer: detailSchema },
  'GET /v1/sessions': list(session, {
    ...{ ...names, user: text(), label: text(), from: time(), to: time() },
    ...{ denied: Type.Boolean(), spent: Type.Boolean(), pending: Type.Boolean(), labelled: Type.Boolean() },
    q: Type.String({ maxLength: 256, description: 'Words that occur in the names, the user, the tier or a label.' }),
    order: Type.Enum(['id', 'activity'], { type: 'string', description: '`activity`: the latest call first.' }),
  }),
  'GET /v1/sessions/:id/timeline': list(record, OF_TENANT),
  'GET /v1/sessions/:id/view/watch': { answer: view },
  'GET /v1/sessions/:id/view/control': { answer: view },
  'GET /v1/sessions/:id/view/page/*': { answer: Type.Object({}) },
  'GET /v1/budgets': list(budget),
  'GET /v1/memory': list(remembered),
  'DELETE /v1/memory/users/:user': {
    query: { namespace: text(), issuer: text() },
    answer: Type.Object({
      user: text(),
      issuer: Type.Optional(text()),
      namespace: Type.Optional(text()),
      items: whole(),
    }),
  },
  'GET /v1/now': { answer: nowSchema },
  'GET /v1/policies': list(policySchema),
  'GET /v1/servers': list(mcpServerSchema),
  'GET /v1/models': list(modelSchema),
  'GET /v1/agents': list(agentSchema),
  'POST /v1/policies/simulate': {
    query: OF_TENANT,
    body: simulateBody,
    answer: Type.Object({
      counts: Type.Object({ same: whole(), changed: whole(), needs_arguments: whole(), skipped: whole() }),
      items: Type.Array(simulated),
      through: orNull(Type.Object({ seq: whole(), at: time() })),
      left: Type.Array(Type.Object({ first: whole(), last: whole() })),
      nextCursor: orNull(text()),
    }),
  },
  'POST /v1/policies/try': { body: tryBody, answer: triedSchema },
  'GET /v1/problems': { answer: problemsSchema },
  'POST /v1/admin/config:bundle': {
    body: BUNDLE_TYPE,
    answer: Type.Object({ issuer: text(), revision: Type.Integer(), applied: Type.Boolean() }),
  },
  'GET /v1/posture': {
    answer: Type.Object({
      items: Type.Array(Type.Object({ id: text(), risk: text(), fix: text() })),
      idleAccepts: Type.Array(text()),
      nextCursor: Type.Null(),
    }),
  },
  'GET /v1/license': {
    answer: Type.Object({
      edition: text(),
      state: Type.Enum([...LICENSE_STATES], { type: 'string' }),
      reason: Type.Optional(text()),
      id: Type.Optional(text()),
      holder: Type.Optional(text()),
      from: Type.Optional(time()),
      until: Type.Optional(time()),
      graceDays: Type.Optional(whole()),
      daysLeft: Type.Optional(Type.Integer()),
      nodes: Type.Union([whole(), Type.Literal('unlimited')]),
    }),
  },
  'GET /v1/accounts': list(account, { user: text(), provider: text() }),
  'DELETE /v1/accounts/:id': { answer: null },
  'GET /v1/audit/head': {
    query: OF_TENANT,
    answer: Type.Object({
      seq: whole(),
      hash: text(),
      checkpoint: orNull(checkpoint),
      damagedSegments: Type.Array(Type.Object({ first: whole(), last: whole(), problem: text() })),
    }),
  },
  'GET /v1/audit/replicas': list(replicaSchema, OF_TENANT),
  'GET /v1/audit/records': list(record, {
    ...{ ...OF_TENANT, ...OF_REPLICA },
    ...{ from: text(), to: text(), order: Type.Enum(['oldest', 'newest'], { type: 'string' }), ...names },
    ...{ user: text(), server: text(), tool: text(), call: text(), kind: text() },
    ...{ denied: Type.Boolean(), calls: Type.Boolean(), text: Type.String({ minLength: 1, maxLength: 256 }) },
  }),
  'GET /v1/audit/proof/:seq': {
    query: { ...OF_TENANT, ...OF_REPLICA },
    answer: Type.Object({ seq: whole(), line: text(), checkpoint, inclusion: Type.Array(text()) }),
  },
  'GET /v1/audit/checkpoints': list(Type.Object({ seq: whole(), rec: checkpoint }), OF_TENANT),
  'GET /v1/audit/segments': list(segmentSchema, OF_TENANT),
  'GET /v1/audit/jwks': { answer: Type.Object({ keys: Type.Array(Type.Object({ kty: text() })) }) },
  'POST /v1/audit/anchors': {
    query: OF_TENANT,
    answer: Type.Object({ seq: whole(), checkpoint: whole(), upTo: whole(), index: whole() }),
  },
  'POST /v1/audit/segments': {
    body: SEGMENT_TYPE,
    answer: Type.Object({ edge: text(), upTo: Type.Integer(), receipt: text() }),
  },
  'GET /v1/audit/holds': list(hold, OF_TENANT),
  'POST /v1/audit/holds': { query: OF_TENANT, body: holdSchema, answer: hold, status: 201 },
  'DELETE /v1/audit/holds/:id': { query: OF_TENANT, answer: null },
  'POST /v1/contexts/:id/checkpoint': { body: checkpointSchema, answer: savedContext },
  'POST /v1/contexts/:id/restore': { body: checkpointSchema, answer: savedContext },
  'GET /v1/evidence': list(evidence, OF_TENANT),
  'POST /v1/evidence': {
    query: OF_TENANT,
    body: requestSchema,
    bodyOptional: true,
    answer: Type.Object({ ...evidence.properties, sha256: text(), bytes: whole() }),
    status: 201,
  },
  'GET /v1/evidence/:id': { query: OF_TENANT, answer: evidence },
  'GET /v1/evidence/:id/object': { query: OF_TENANT, answer: Type.Object({}) },
  'GET /debug/profile': profile,
  'GET /debug/heap': profile,
}
