/** Every route of the admin API and who may call it. No other can be mounted. @table */
import type { Role } from './roles.ts'
import type { StepUpAction } from './step-up.ts'

export interface RouteRow {
  /** The required role; `person`: any valid token; `none`: no token required. */
  readonly needs: Role | 'person' | 'none'
  /**
   * `namespace`: a role in one namespace lets its holder in, who then sees and changes what is of that namespace alone.
   * `tenant`: a role in a whole tenant lets its holder in, who then sees and changes what is of that tenant alone.
   * `cluster`: the role is needed everywhere.
   */
  readonly within: 'namespace' | 'tenant' | 'cluster'
  /** One sentence. */
  readonly does: string
  /** The feature records what comes of it; absent: the frame records every request that is not read. */
  readonly ownRecord?: true
  /** It changes nothing, though it is not a GET: no record is left. */
  readonly reads?: true
  /** Requires a login as `adminAuth.stepUp` says. */
  readonly stepUp?: StepUpAction
  /** It reads the ledger or its checkpoints, which callers share. */
  readonly readsLedger?: true
}

export const adminRoutes = {
  'GET /openapi.json': { needs: 'none', within: 'cluster', does: 'This API as an OpenAPI 3.1 document.' },
  'GET /v1/auth/config': { needs: 'none', within: 'cluster', does: 'Where a console logs people in.' },
  'GET /v1/whoami': { needs: 'person', within: 'cluster', does: 'Who the caller is, and the roles of it.' },
  'POST /v1/console/links': {
    needs: 'admin',
    within: 'cluster',
    does: 'Mints a link that logs a browser in once, with the static token only.',
  },
  'GET /v1/events': {
    needs: 'viewer',
    within: 'namespace',
    does: 'Events as they happen, as server-sent events: approvals, sessions, refusals, revocations, budgets, pins, health.',
  },
  'GET /v1/approvals': { needs: 'viewer', within: 'namespace', does: 'Approvals, the newest first.' },
  'GET /v1/approvals/:id': { needs: 'viewer', within: 'namespace', does: 'One approval.' },
  'GET /v1/approvals/:id/arguments': {
    needs: 'approver',
    within: 'namespace',
    does: 'The whole arguments of a pending approval whose preview is truncated.',
  },
  'POST /v1/approvals/:id/approve': {
    needs: 'approver',
    within: 'namespace',
    does: 'Lets a call pass, once, or with `scope` for the rest of its session.',
    stepUp: 'approve',
  },
  'POST /v1/approvals/:id/deny': { needs: 'approver', within: 'namespace', does: 'Refuses a call.' },
  'GET /v1/session-approvals': {
    needs: 'viewer',
    within: 'namespace',
    does: 'Approvals for the rest of a session that are in force, the newest first.',
  },
  'DELETE /v1/session-approvals/:id': {
    needs: 'approver',
    within: 'namespace',
    does: 'Lifts one: later calls of the session need an approval again.',
  },
  'GET /v1/revocations': { needs: 'viewer', within: 'namespace', does: 'Revocations in force.' },
  'POST /v1/revocations': {
    needs: 'killswitch',
    within: 'namespace',
    does: 'Revokes. In one namespace: a session, an agent or the namespace; in one tenant: the tenant as well.',
    stepUp: 'revoke',
  },
  'POST /v1/revocations/preview': {
    needs: 'killswitch',
    within: 'namespace',
    does: 'Returns what a revocation would end on this gateway, before it is made.',
    reads: true,
  },
  'DELETE /v1/revocations/:id': {
    needs: 'killswitch',
    within: 'namespace',
    does: 'Lifts a revocation.',
    stepUp: 'revoke',
  },
  'GET /v1/pins': { needs: 'viewer', within: 'namespace', does: 'Servers, and how their tools stand to their pins.' },
  'GET /v1/pins/:namespace/:name': { needs: 'viewer', within: 'namespace', does: 'One server with its tools.' },
  'GET /v1/pins/:namespace/:name/definition': {
    needs: 'viewer',
    within: 'namespace',
    does: 'The words of a tool, offered and pinned.',
  },
  'POST /v1/pins/:namespace/:name/accept': {
    needs: 'admin',
    within: 'namespace',
    does: 'Pins the definition that is offered.',
    stepUp: 'accept',
  },
  'POST /v1/pins/:namespace/:name/reject': {
    needs: 'admin',
    within: 'namespace',
    does: 'Refuses the definition that is offered, in every mode, until it is accepted.',
    stepUp: 'accept',
  },
  'GET /v1/sessions': {
    needs: 'viewer',
    within: 'namespace',
    does: 'Sessions that have called, by name, user, label, time, refusals, spending, or words.',
  },
  'GET /v1/sessions/:id/timeline': {
    readsLedger: true,
    needs: 'auditor',
    within: 'namespace',
    does: 'What one session did: its records.',
  },
  'GET /v1/sessions/:id/view/watch': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Shows the browser of a session as a WebSocket of RFB, read-only; without an upgrade, whether it may be shown.',
    stepUp: 'view',
  },
  'GET /v1/sessions/:id/view/control': {
    needs: 'admin',
    within: 'namespace',
    does: 'The same with keys, pointer and pasted text of the viewer.',
    stepUp: 'control',
  },
  'GET /v1/sessions/:id/view/page/*': {
    needs: 'auditor',
    within: 'namespace',
    does: 'A file that the sandbox of a session serves beside its view.',
    stepUp: 'view',
  },
  'GET /v1/budgets': { needs: 'viewer', within: 'namespace', does: 'What is spent and left of every budget.' },
  'GET /v1/memory': { needs: 'viewer', within: 'namespace', does: 'Who remembers how much; not what.' },
  'DELETE /v1/memory/users/:user': {
    needs: 'admin',
    within: 'namespace',
    does: 'Forgets what is remembered of a user and what was written for one. In one namespace: with `namespace`.',
    ownRecord: true,
  },
  'GET /v1/now': {
    needs: 'viewer',
    within: 'namespace',
    does: 'Calls in progress on this gateway, and what makes it unready.',
  },
  'GET /v1/policies': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Policies in force as written, with how many calls each rule has decided on this gateway.',
  },
  'GET /v1/servers': { needs: 'viewer', within: 'namespace', does: 'MCP servers in force, with who may use them.' },
  'GET /v1/models': {
    needs: 'viewer',
    within: 'namespace',
    does: 'Model routes in force, with circuits and latencies of their endpoints on this gateway.',
  },
  'GET /v1/agents': {
    needs: 'viewer',
    within: 'namespace',
    does: 'Agents with a policy, a model route to themselves, or a card, as this gateway knows them.',
  },
  'POST /v1/policies/simulate': {
    readsLedger: true,
    needs: 'auditor',
    within: 'namespace',
    does: 'Judges recorded calls by policies that are not in force.',
    reads: true,
  },
  'POST /v1/policies/try': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Judges a tool call that is not made, by the policies in force or by others.',
    reads: true,
  },
  'GET /v1/problems': {
    needs: 'viewer',
    within: 'cluster',
    does: 'Problems of resources with file and line, where this process reads them from files.',
  },
  'POST /v1/admin/config:bundle': {
    needs: 'admin',
    within: 'cluster',
    does: 'Puts a signed configuration bundle into force.',
  },
  'POST /v1/admin/state:adopt': {
    needs: 'admin',
    within: 'cluster',
    does: 'Goes on with a state database that went back in time, as it is.',
  },
  'GET /v1/posture': { needs: 'viewer', within: 'cluster', does: 'Risks of the configuration that is in force.' },
  'GET /v1/license': { needs: 'viewer', within: 'cluster', does: 'The state and content of the license.' },
  'GET /v1/accounts': { needs: 'viewer', within: 'tenant', does: 'Connected accounts of users.' },
  'DELETE /v1/accounts/:id': { needs: 'killswitch', within: 'tenant', does: 'Takes a connected account away.' },
  'GET /v1/audit/head': { needs: 'auditor', within: 'namespace', does: 'The last record and the last checkpoint.' },
  'GET /v1/audit/replicas': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Ledgers of all replicas, with their last records, and how far they are copied to the state database.',
  },
  'GET /v1/audit/records': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Records of the ledger, by time, member or text.',
    readsLedger: true,
  },
  'GET /v1/audit/proof/:seq': {
    readsLedger: true,
    needs: 'auditor',
    within: 'namespace',
    does: 'A record with the proof of its inclusion in the ledger.',
  },
  'GET /v1/audit/checkpoints': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Signed checkpoints, the newest first.',
    readsLedger: true,
  },
  'GET /v1/audit/segments': {
    needs: 'auditor',
    within: 'namespace',
    does: 'Sealed segments of the ledger, the newest first, and whether they verified since this gateway started.',
    readsLedger: true,
  },
  'GET /v1/audit/jwks': { needs: 'none', within: 'cluster', does: 'The public keys of checkpoints.' },
  'POST /v1/audit/anchors': {
    needs: 'auditor',
    within: 'tenant',
    does: 'Puts a checkpoint over all records into the transparency log.',
    ownRecord: true,
  },
  'GET /v1/audit/holds': { needs: 'auditor', within: 'tenant', does: 'Legal holds, the newest first.' },
  'POST /v1/audit/holds': {
    needs: 'auditor',
    within: 'tenant',
    does: 'Makes a legal hold: segments of the ledger with records of a session, an agent or a range stay.',
    ownRecord: true,
  },
  'DELETE /v1/audit/holds/:id': { needs: 'admin', within: 'tenant', does: 'Releases a legal hold.', ownRecord: true },
  'POST /v1/audit/segments': {
    needs: 'audit-forwarder',
    within: 'cluster',
    does: "Takes a segment of an edge's ledger, and answers how far it is stored.",
    ownRecord: true,
  },
  'POST /v1/contexts/:id/checkpoint': {
    needs: 'admin',
    within: 'namespace',
    does: 'Has the context engine save the context of a session in `ctxengine.checkpointDir`.',
    ownRecord: true,
  },
  'POST /v1/contexts/:id/restore': {
    needs: 'admin',
    within: 'namespace',
    does: 'Has the context engine load the context of a session from a checkpoint.',
    ownRecord: true,
  },
  'GET /v1/evidence': { needs: 'auditor', within: 'namespace', does: 'Evidence objects, the newest first.' },
  'POST /v1/evidence': {
    readsLedger: true,
    needs: 'auditor',
    within: 'namespace',
    does: 'Seals records with what proves them into one evidence object. In one namespace: with `namespace`.',
    ownRecord: true,
  },
  'GET /v1/evidence/:id': { needs: 'auditor', within: 'namespace', does: 'What one evidence object is about.' },
  'GET /v1/evidence/:id/object': { needs: 'auditor', within: 'namespace', does: 'The object itself.' },
  'GET /debug/profile': { needs: 'admin', within: 'cluster', does: 'A CPU profile.' },
  'GET /debug/heap': { needs: 'admin', within: 'cluster', does: 'A profile of allocations.' },
} as const satisfies Record<string, RouteRow>

/** A row of the table: method and path. */
export type AdminRoute = keyof typeof adminRoutes
