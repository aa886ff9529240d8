import { type Clock, type Ids, type PoolObservers, reasonOf, watchedPool } from '@plat/core'
import type { Log } from '@plat/process'
import {
  fileJournals,
  type Journals,
  type Leadership,
  type Leases,
  memoryLeases,
  memoryOnceSets,
  type OnceSets,
  openPostgresState,
  type PostgresState,
  readDsn,
  soleLeadership,
} from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { StateBackendConfig } from './config.ts'
import { createStateRoutes } from './routes.ts'

export type { StateBackendConfig } from './config.ts'

export interface StateBackendOptions {
  readonly config: { readonly auditPath: string; readonly stateBackend: StateBackendConfig }
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'queued_counts' | 'queued_keys' | 'state_requests'>
}

/** Storage of state, shared by replicas or local to one. */
export interface StateBackend {
  readonly journals: Journals
  readonly leadership: Leadership
  /** Keys that may be used once, over all replicas that share state. */
  readonly once: OnceSets
  readonly leases: Leases
  /** Null if this replica counts alone. `rates`: windows of rates and minutes are shared too. */
  readonly shared: { readonly rates: boolean; readonly limits: PostgresState['limits'] } | null
  /** A secret created once for all replicas, or null if each has its own. */
  readonly secret: PostgresState['secret'] | null
  /** Second storage of the ledger head, or null if it is only beside the ledger. */
  readonly ledgerHeads: PostgresState['ledgerHeads'] | null
  /** Copies of the ledgers of all replicas, or null if there are none. */
  readonly ledgerCopies: PostgresState['ledgerCopies'] | null
  /** Why most calls are denied, or null. */
  problem(): string | null
  readonly routes: AdminRoutes
  close(): Promise<void>
}

/** Opens `stateBackend` (docs/spec/gateway.md). Rejects with one line that names `stateBackend.dsnFile` and never quotes it. */
export async function openStateBackend(options: StateBackendOptions): Promise<StateBackend> {
  const { config, clock, metrics } = options
  const { type } = config.stateBackend
  metrics.gauge('plat_gateway_state_backend_info').set({ type }, 1)
  if (type === 'postgres') return openShared(options)
  const leadership = soleLeadership(leaderGauge(metrics))
  return {
    journals: fileJournals(clock),
    leadership,
    once: memoryOnceSets(clock),
    leases: memoryLeases(clock),
    shared: null,
    secret: null,
    ledgerHeads: null,
    ledgerCopies: null,
    problem: () => null,
    routes: createStateRoutes(async () => false),
    close: () => leadership.close(),
  }
}

async function openShared({ config, clock, ids, log, metrics, pools }: StateBackendOptions): Promise<StateBackend> {
  const { dsnFile, schema, maxConns, pollMillis, leader, counters } = config.stateBackend
  const leads = leaderGauge(metrics)
  const lost = (isLost: boolean) => metrics.gauge('plat_gateway_state_lost').set({}, Number(isLost))
  lost(false)
  try {
    const state = await openPostgresState({
      dsn: await readDsn(dsnFile),
      schema,
      maxConnections: maxConns,
      seenPath: `${config.auditPath}.state.json`,
      pollMs: pollMillis,
      retryMs: leader.retryMillis,
      clock,
      ids,
      queued: watchedPool({ name: 'queued_counts', observer: pools?.of('queued_counts') }),
      queuedKeys: watchedPool({ name: 'queued_keys', observer: pools?.of('queued_keys') }),
      requests: watchedPool({ name: 'state_requests', observer: pools?.of('state_requests') }),
      warn: (message) => log.warn({}, message),
      onLead(job, now) {
        if (now) log.info({ job }, 'this replica leads')
        leads(job, now)
      },
      onLost(why) {
        lost(why !== null)
        if (why === null) log.warn({}, 'the state database was adopted as it is: everything is read anew')
        else
          log.error({ reason: why }, 'the state database lost something: every call is denied; see "plat state adopt"')
      },
    })
    return {
      ...state,
      shared: { rates: counters !== 'local', limits: state.limits },
      routes: createStateRoutes(() => state.adopt()),
    }
  } catch (error) {
    throw new Error(`stateBackend.dsnFile ${dsnFile}: ${reasonOf(error)}`)
  }
}

function leaderGauge(metrics: GatewayMetrics): (job: string, leads: boolean) => void {
  const leader = metrics.gauge('plat_gateway_leader')
  return (job, leads) => leader.set({ job }, Number(leads))
}
