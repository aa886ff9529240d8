/** The pools that callers share: the one place of their totals and shares. docs/reference/pools.md is written from it. @table */

/** A service that has pools. */
export type PoolService = 'gateway' | 'broker' | 'attestation'

/** What one caller may hold of a pool. */
export interface PoolShare {
  /** What counts as one caller, such as `agent`. */
  readonly of: string
  readonly max: number
}

export interface PoolRow {
  readonly services: readonly PoolService[]
  /** What is counted. */
  readonly counts: string
  /** Default: `things`. */
  readonly unit?: 'bytes'
  /** What all callers together may hold. */
  readonly total: number
  /** What the total is of; default: the process. */
  readonly each?: string
  /** The wider caller first. */
  readonly shares: readonly [PoolShare, ...PoolShare[]]
  /** How long a unit is held at most. */
  readonly age: string
  /** What a caller gets that is refused. */
  readonly refused: string
  /** Where how full it is can be read, if not in the series of pools. */
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
  upstream_connections: {
    services: ['gateway'],
    counts: 'connections to upstreams in use; nothing is queued',
    total: 4_096,
    each: 'origin',
    shares: [{ of: 'session', max: 1_024 }],
    age: '4 s idle, or a second less than `Keep-Alive: timeout` says, at most 30 s',
    refused: '`rate_limited`',
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
  proofs: {
    services: ['attestation'],
    counts: 'DPoP proofs that were used',
    total: 200_000,
    shares: [{ of: 'release', max: 300 }],
    age: 'the age of a proof, 65 s',
    refused: '429 `busy`',
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

/** The pools of one service. */
export type PoolOf<S extends PoolService> = {
  [N in PoolName]: S extends (typeof poolTable)[N]['services'][number] ? N : never
}[PoolName]
