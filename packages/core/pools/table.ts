/** The pools that callers share: the one place of their totals and shares. docs/reference/pools.md is written from it. @table */

export type PoolService = 'gateway' | 'broker' | 'attestation' | 'stdio'

export interface PoolShare {
  /** Kind of caller, such as `agent`. */
  readonly of: string
  readonly max: number
}

export interface PoolRow {
  readonly services: readonly PoolService[]
  /** Description of the counted units. */
  readonly counts: string
  /** Default: `things`. */
  readonly unit?: 'bytes'
  /** Total for all callers together. */
  readonly total: number
  /** Total and share in words, when they depend on the process; the numbers are those of a heap limit of 512 MiB. */
  readonly varies?: { readonly total: string; readonly share: string }
  /** Scope of the total; default: the process. */
  readonly each?: string
  /** The wider caller first. */
  readonly shares: readonly [PoolShare, ...PoolShare[]]
  /** How long a unit is held at most. */
  readonly age: string
  /** Response to a refused caller. */
  readonly refused: string
  /** Metric with its usage, if not the series of pools. */
  readonly metric?: string
}

const MIB = 1024 * 1024
const CLOSED = 'the connection is closed at once'
const IDLE = '65 s idle'

export const poolTable = {
  connections: {
    services: ['gateway', 'broker', 'attestation'],
    counts: 'connections of the main listener',
    total: 10_000,
    shares: [{ of: 'peer address', max: 2_500 }],
    age: IDLE,
    refused: CLOSED,
  },
  admin_connections: {
    services: ['gateway'],
    counts: 'connections of `adminListen`',
    total: 10_000,
    shares: [{ of: 'peer address', max: 2_500 }],
    age: IDLE,
    refused: CLOSED,
  },
  bootstrap_connections: {
    services: ['broker'],
    counts: 'connections of the bootstrap listener',
    total: 10_000,
    shares: [{ of: 'peer address', max: 2_500 }],
    age: IDLE,
    refused: CLOSED,
  },
  live_calls: {
    services: ['gateway'],
    counts: 'calls, streams and tunnels under way',
    total: 20_000,
    shares: [{ of: 'agent', max: 5_000 }],
    age: 'the end of the call or of its token',
    refused: '`backlog_full`',
  },
  ending_calls: {
    services: ['gateway'],
    counts: 'requests that end other work: cancellations, ends of sessions',
    total: 2_000,
    shares: [{ of: 'agent', max: 500 }],
    age: 'the end of the request',
    refused: '`backlog_full`',
  },
  call_bytes: {
    services: ['gateway'],
    counts: 'bytes of bodies that calls hold in memory: requests as they are read, and JSON responses',
    unit: 'bytes',
    total: 256 * MIB,
    shares: [{ of: 'agent', max: 64 * MIB }],
    varies: { total: 'half of the heap limit', share: 'a quarter of the total' },
    age: 'until the call is over and its response was sent; a caller that reads nothing of it for 60 s is cut off',
    refused: '`overloaded`',
  },
  upload_bytes: {
    services: ['gateway'],
    counts: 'bytes of files in requests of models, on the disk; each counts at least 256 KiB',
    unit: 'bytes',
    total: 1024 * MIB,
    shares: [
      { of: 'agent', max: 256 * MIB },
      { of: 'session', max: 128 * MIB },
    ],
    varies: { total: '`modelUploads.totalBytes`', share: 'a quarter and an eighth of the total' },
    age: 'until the call is over and its response was sent',
    refused: '`overloaded`',
  },
  upstream_connections: {
    services: ['gateway'],
    counts: 'connections to upstreams in use; nothing is queued',
    total: 4_096,
    each: 'origin',
    shares: [{ of: 'session', max: 1_024 }],
    age: '4 s idle, or a second less than `Keep-Alive: timeout` says, at most 30 s',
    refused: '`rate_limited`',
  },
  key_service_requests: {
    services: ['gateway', 'broker'],
    counts: 'requests that wait for a key service (`kms://`, `azurekv://`, `pkcs11:`); 16 are sent at a time',
    total: 256,
    shares: [{ of: 'agent of a transaction token; namespace of a token of the broker', max: 64 }],
    age: '10 s',
    refused: '`overloaded`; the broker answers 503 `temporarily_unavailable`',
  },
  name_lookups: {
    services: ['gateway'],
    counts: 'names that are being resolved; 8 run at a time, 2 of one caller',
    total: 2_048,
    shares: [{ of: 'session; without one, purpose and domain', max: 128 }],
    age: '5 s',
    refused: '`rate_limited`, after 5 s `upstream_timeout`',
  },
  guard_texts: {
    services: ['gateway'],
    counts: 'texts that a guard reads at a time',
    total: 256,
    each: 'guard',
    shares: [{ of: 'session', max: 64 }],
    age: '`timeoutMs` of the guard',
    refused: '`guard_unavailable`, with `failOpen` too',
  },
  task_bindings: {
    services: ['gateway'],
    counts: 'tasks and contexts of A2A',
    total: 400_000,
    shares: [{ of: 'agent', max: 20_000 }],
    age: '30 days after the last use',
    refused: '`rate_limited`; of a full pool `state_unavailable`',
  },
  mcp_tasks: {
    services: ['gateway'],
    counts: 'tasks of MCP servers',
    total: 200_000,
    shares: [
      { of: 'agent', max: 10_000 },
      { of: 'session', max: 1_000 },
    ],
    age: 'a day after the last use; an hour when the task has ended',
    refused: '`rate_limited`; of a full pool `state_unavailable`; the task is cancelled at its server',
  },
  unknown_ids: {
    services: ['gateway'],
    counts: 'look-ups of tasks that are unknown at a replica and may be new at another one (`stateBackend`)',
    total: 256,
    shares: [
      { of: 'agent', max: 32 },
      { of: 'session', max: 8 },
    ],
    age: 'a second',
    refused: 'nothing; the task is unknown until the next poll (`pollMillis`)',
  },
  stored_responses: {
    services: ['gateway'],
    counts: 'responses, their items and containers that model providers store',
    total: 200_000,
    shares: [{ of: 'agent', max: 10_000 }],
    age: 'a day after the last use',
    refused: 'nothing; the agent loses those that it has not used for longest; of a full pool `state_unavailable`',
  },
  stored_files: {
    services: ['gateway'],
    counts: 'files and batches at model providers',
    total: 100_000,
    shares: [{ of: 'agent', max: 5_000 }],
    age: '30 days after the last use',
    refused: '`rate_limited`; of a full pool `state_unavailable`',
  },
  memory_bytes: {
    services: ['gateway'],
    counts: 'items that agents keep',
    unit: 'bytes',
    total: 64 * MIB,
    shares: [
      { of: 'namespace', max: 16 * MIB },
      { of: 'owner in a store', max: 4 * MIB },
    ],
    age: 'the retention of the store',
    refused: 'an error of the tool',
  },
  pending_approvals: {
    services: ['gateway'],
    counts: 'approvals that are pending',
    total: 10_000,
    shares: [
      { of: 'agent', max: 1_000 },
      { of: 'session', max: 100 },
    ],
    age: 'the timeout of the approval',
    refused: '`backlog_full`',
  },
  approval_arguments: {
    services: ['gateway'],
    counts: 'whole arguments of pending approvals whose preview is truncated',
    unit: 'bytes',
    total: 64 * MIB,
    shares: [
      { of: 'agent', max: 16 * MIB },
      { of: 'session', max: 4 * MIB },
    ],
    age: 'until the approval no longer waits',
    refused: 'nothing; approvers must state the SHA-256 of arguments that they know from elsewhere',
  },
  notifications: {
    services: ['gateway'],
    counts: 'notifications that wait; approvals are delivered first',
    total: 10_000,
    shares: [
      { of: 'kind: approvals, or others', max: 5_000 },
      { of: 'agent, budget or server that it is about', max: 1_250 },
    ],
    age: '24 h',
    refused: 'it is lost, and logged',
  },
  nonces: {
    services: ['broker'],
    counts: 'nonces for proofs that are outstanding',
    total: 100_000,
    shares: [{ of: 'peer address', max: 50_000 }],
    age: '5 min',
    refused: '429 `too many nonces are outstanding`',
  },
  bound_tokens: {
    services: ['broker'],
    counts: 'tokens that were bound to a key',
    total: 100_000,
    shares: [{ of: 'agent', max: 25_000 }],
    age: 'the life of the token',
    refused: '503 `temporarily_unavailable`',
  },
  used_credentials: {
    services: ['broker'],
    counts: 'credentials without a nonce that have proved a session',
    total: 100_000,
    shares: [{ of: 'agent', max: 25_000 }],
    age: 'the life of the credential',
    refused: '503: the proof is not accepted',
  },
  transactions: {
    services: ['broker'],
    counts: 'transaction tokens that were used, with their answers',
    total: 20_000,
    shares: [{ of: 'agent', max: 5_000 }],
    age: '1 min, or the life of the token',
    refused: '503 `temporarily_unavailable`',
  },
  holder_proofs: {
    services: ['broker'],
    counts: 'DPoP proofs that were used',
    total: 200_000,
    shares: [{ of: 'agent', max: 20_000 }],
    age: 'the age of a proof, 65 s',
    refused: '`invalid_dpop_proof`',
  },
  bootstrap_requests: {
    services: ['broker'],
    counts:
      'requests of pods that are being answered or wait; the total is `-bootstrap-max-concurrent`, the share a quarter of it',
    total: 256,
    shares: [{ of: 'peer address', max: 64 }],
    age: '25 s',
    refused: '503 `temporarily_unavailable`',
  },
  dpop_proofs: {
    services: ['gateway'],
    counts: 'DPoP proofs that were used',
    total: 500_000,
    shares: [{ of: 'agent', max: 100_000 }],
    age: '`dpop.maxAgeSeconds` and 5 s',
    refused: '`invalid_dpop_proof`: replays are never let through',
  },
  connected_accounts: {
    services: ['gateway'],
    counts: 'accounts of users at providers, one for each tenant',
    total: 100_000,
    shares: [{ of: 'user', max: 100 }],
    age: 'until it is disconnected or revoked',
    refused: 'a page with an error, status 500',
  },
  connect_flows: {
    services: ['gateway'],
    counts: 'steps of consent flows that were used; a flow before its login leaves nothing behind',
    total: 100_000,
    shares: [{ of: 'user', max: 100 }],
    age: '`tokenVault.flowTTLSeconds`',
    refused: 'a page that says to begin again, status 400',
  },
  resource_watches: {
    services: ['gateway'],
    counts: 'watches of the resource API',
    total: 256,
    shares: [{ of: 'caller of the admin API', max: 64 }],
    age: '`timeoutSeconds` of the watch, at most 1 h; default 30 min',
    refused: '429',
  },
  exchanged_tokens: {
    services: ['gateway'],
    counts: 'exchanged tokens that are kept for a session and an audience',
    total: 10_000,
    shares: [{ of: 'agent', max: 2_500 }],
    age: 'the life of the session token',
    refused: 'nothing; each further call exchanges for itself',
  },
  callback_marks: {
    services: ['gateway'],
    counts: 'callbacks of notifiers that were accepted',
    total: 10_000,
    shares: [{ of: 'notifier', max: 2_500 }],
    age: 'twice the permitted clock skew',
    refused: '`state_unavailable`',
  },
  capture_bytes: {
    services: ['gateway'],
    counts: 'captured arguments that wait to be written; each counts for at least 64 KiB',
    unit: 'bytes',
    total: 64 * MIB,
    shares: [{ of: 'namespace', max: 16 * MIB }],
    age: 'until it is written',
    refused: 'nothing; the capture is dropped and counted',
  },
  abandoned_calls: {
    services: ['gateway'],
    counts: 'calls of MCP before 2026-07-28 that run on at a server after their client has left',
    total: 512,
    shares: [
      { of: 'agent', max: 16 },
      { of: 'session', max: 4 },
    ],
    age: '5 min',
    refused: 'nothing; the oldest one is aborted',
  },
  mcp_sessions: {
    services: ['gateway'],
    counts: 'sessions of clients at `/mcp`, with the sessions at servers that the gateway opened for them',
    total: 10_000,
    shares: [{ of: 'agent', max: 500 }],
    age: '1 h unused',
    refused: 'nothing; the one not used for longest is forgotten, and opened again at its next use',
  },
  counters: {
    services: ['gateway'],
    counts: 'counters of budgets and rates in this process, one for each key and window',
    total: 1_000_000,
    shares: [{ of: 'agent that was counted first', max: 250_000 }],
    age: 'the end of the window; without one, 90 days after the last use',
    refused: '`state_unavailable`: what is not counted is not capped',
  },
  template_counters: {
    services: ['gateway'],
    counts: 'counters of templates of budgets and rates, one for each user, group, agent, session or model and window',
    total: 200_000,
    shares: [
      { of: 'template', max: 100_000 },
      { of: 'agent in a template', max: 25_000 },
    ],
    age: 'the end of the window',
    refused: '`backlog_full`, with the end of the window',
  },
  open_holds: {
    services: ['gateway'],
    counts: 'holds of money, tokens and rates that are not settled',
    total: 100_000,
    shares: [
      { of: 'agent', max: 25_000 },
      { of: 'session', max: 5_000 },
    ],
    age: 'the end of the call; without one, 24 h, and then the whole hold is spent',
    refused: '`backlog_full`',
  },
  queued_counts: {
    services: ['gateway'],
    counts: 'reservations of budgets and rates that wait for Postgres',
    total: 100_000,
    shares: [
      { of: 'agent', max: 25_000 },
      { of: 'session', max: 5_000 },
    ],
    age: '4 s',
    refused: '`backlog_full`',
  },
  journal_appends: {
    services: ['gateway'],
    counts: 'events that wait to be stored: labels of sessions, tasks of agents, items of memory, new approvals',
    total: 60_000,
    shares: [
      { of: 'agent in a journal', max: 750 },
      { of: 'session in a journal', max: 500 },
    ],
    age: 'until it is stored, or was refused',
    refused: '`backlog_full`',
  },
  state_requests: {
    services: ['gateway'],
    counts: 'requests that wait for a connection to the state database',
    total: 4_000,
    shares: [{ of: 'journal; everything else', max: 1_000 }],
    age: '2 s',
    refused: '`state_unavailable`',
  },
  queued_keys: {
    services: ['gateway'],
    counts: 'keys that may be used once (proofs, steps of flows) and wait to be inserted into the state database',
    total: 20_000,
    shares: [{ of: 'agent or user that inserts; without one, kind of key', max: 5_000 }],
    age: '7 s',
    refused: '`state_unavailable`',
  },
  set_requests: {
    services: ['broker'],
    counts: 'requests that wait for a connection to the state database',
    total: 4_000,
    shares: [{ of: 'agent or peer address that inserts; without one, kind of set', max: 1_000 }],
    age: '2 s',
    refused: '503 `temporarily_unavailable`',
  },
  alerted_windows: {
    services: ['gateway'],
    counts: 'windows of budgets of which alerts were sent',
    total: 100_000,
    shares: [{ of: 'agent with session budgets, or budget', max: 25_000 }],
    age: 'the end of the window',
    refused: 'nothing; its oldest window is forgotten, whose alerts may be sent again',
  },
  console_sessions: {
    services: ['gateway'],
    counts: 'logins of the console',
    total: 10_000,
    shares: [{ of: 'person', max: 16 }],
    age: '`console.sessionSeconds`, or `console.idleSeconds` unused',
    refused: "nothing; the person's oldest login ends; of a full pool `backlog_full`",
  },
  unknown_console_sessions: {
    services: ['gateway'],
    counts:
      'look-ups of sessions of the console that are unknown at a replica and may be new at another one (`stateBackend`)',
    total: 256,
    shares: [{ of: 'peer address', max: 32 }],
    age: 'a second',
    refused: '429 `rate_limited`; the session is unknown until the next poll (`pollMillis`)',
  },
  event_streams: {
    services: ['gateway'],
    counts: 'streams of `GET /v1/events`',
    total: 1_000,
    shares: [{ of: 'caller of the admin API', max: 32 }],
    age: 'the login of the console; with a token 15 min; a stream that reads too slowly ends',
    refused: '429 `rate_limited`',
  },
  live_views: {
    services: ['gateway'],
    counts: 'views of the browsers of sandboxes',
    total: 64,
    shares: [
      { of: 'session', max: 16 },
      { of: 'caller of the admin API', max: 4 },
    ],
    age: '`liveView.maxSeconds`, or `liveView.idleSeconds` without anything to relay',
    refused: '429 `rate_limited`',
  },
  ledger_readers: {
    services: ['gateway'],
    counts: 'requests of the admin API that read the ledger or its checkpoints',
    total: 64,
    shares: [{ of: 'caller of the admin API', max: 8 }],
    age: 'the end of the request',
    refused: '429 `rate_limited`',
  },
  tainted_sessions: {
    services: ['gateway'],
    counts: 'sessions whose taint labels are kept',
    total: 200_000,
    shares: [{ of: 'agent', max: 20_000 }],
    age: '`taintRetentionSeconds` after the last call, or the life of the last token',
    refused: '`state_unavailable`: nothing that would bring labels is delivered',
  },
  listed_sessions: {
    services: ['gateway'],
    counts: 'sessions that `/v1/sessions` lists',
    total: 20_000,
    shares: [{ of: 'agent', max: 5_000 }],
    age: 'until the place is used for others',
    refused: 'nothing; of its agent, or of the agents with the most, sessions that were idle for longest are forgotten',
  },
  session_activity: {
    services: ['gateway'],
    counts: 'sessions whose last activity waits to be written',
    total: 20_000,
    shares: [{ of: 'namespace', max: 5_000 }],
    age: '`activity.intervalSeconds`',
    refused: 'nothing; it is written once the session calls again in a later interval',
  },
  reported_sessions: {
    services: ['gateway'],
    counts: 'sessions whose sandbox usage is reported',
    total: 20_000,
    shares: [{ of: 'namespace', max: 5_000 }],
    age: 'until no further report of the same time can come',
    refused: '`backlog_full`',
  },
  spans: {
    services: ['gateway'],
    counts: 'spans that wait to be exported',
    total: 2_048,
    shares: [{ of: 'agent', max: 512 }],
    varies: { total: '`otel.maxQueueSize`', share: 'a quarter of the total' },
    age: 'until they are exported, or were refused five times',
    refused: 'nothing; the span is dropped and counted',
  },
  span_bytes: {
    services: ['gateway'],
    counts: 'characters of spans that wait to be exported',
    unit: 'bytes',
    total: 64 * MIB,
    shares: [{ of: 'agent', max: 16 * MIB }],
    age: 'until they are exported, or were refused five times',
    refused: 'nothing; the span is dropped and counted',
  },
  proofs: {
    services: ['attestation'],
    counts: 'DPoP proofs that were used',
    total: 200_000,
    shares: [{ of: 'release', max: 300 }],
    age: 'the age of a proof, 65 s',
    refused: '429 `busy`',
  },
  challenges: {
    services: ['attestation'],
    counts: 'challenges that are outstanding',
    total: 50_000,
    shares: [{ of: 'release', max: 32 }],
    age: '5 min',
    refused: '429 `too_many_challenges`',
  },
  releases: {
    services: ['attestation'],
    counts: 'releases that are pending or under renewal',
    total: 50_000,
    shares: [{ of: 'namespace', max: 12_500 }],
    age: '`-release-ttl`, then while it is renewed',
    refused: '429 `too_many_releases`',
  },
  pending_revocations: {
    services: ['attestation'],
    counts: 'revocations that wait for the gateway',
    total: 10_000,
    shares: [{ of: 'namespace', max: 2_500 }],
    age: 'the life of the token that is revoked',
    refused: 'it is left out, and logged',
  },
  stdio_processes: {
    services: ['stdio'],
    counts: 'processes of MCP servers that `plat up` runs, or those in one pod; a shared process counts for its server',
    total: 64,
    shares: [
      { of: 'agent', max: 32 },
      { of: 'session', max: 16 },
    ],
    age: '`stdio.idleSeconds` without a call; an unused process of the same caller is stopped earlier if its place is needed',
    refused: '`upstream_error`',
  },
  recorded_refusals: {
    services: ['broker'],
    counts: 'refusals in the ledger, in a minute',
    total: Number.POSITIVE_INFINITY,
    shares: [{ of: 'session; without one, kind of request', max: 60 }],
    age: '1 min',
    refused: 'nothing; the rest is one record: `N refusals not recorded individually`',
  },
} as const satisfies Readonly<Record<string, PoolRow>>

/** Value of the label `pool`. */
export type PoolName = keyof typeof poolTable

export type PoolOf<S extends PoolService> = {
  [N in PoolName]: S extends (typeof poolTable)[N]['services'][number] ? N : never
}[PoolName]
