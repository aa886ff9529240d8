import { mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { getHeapStatistics } from 'node:v8'
import {
  type BuildInfo,
  type Clock,
  type Ids,
  type PoolObservers,
  type PoolOf,
  type SharedPool,
  watchedPool,
} from '@plat/core'
import { createDialer, type Dialer } from '@plat/http'
import { createKeyServices, type KeyServices } from '@plat/key-services'
import type { KeyStore } from '@plat/keys'
import { type Log, Overload, type OverloadState } from '@plat/process'
import { type Limits, withShares } from '@plat/state'
import { LookUps } from '../call/bindings/look-ups.ts'
import { Snapshots } from '../call/index.ts'
import type { GatewayConfig } from '../config.ts'
import { type OpeningLimits, openLimits } from '../decide/budgets/index.ts'
import { createResidency, type ResidencyFeature } from '../decide/residency/index.ts'
import { type Audit, createAudit } from '../evidence/audit/index.ts'
import { createGatewayMetrics, createPoolMetrics, type GatewayMetrics, keyServiceMeter } from '../metrics.ts'
import { openBundleFolder } from '../operate/config-bundle/index.ts'
import { openConfigSync } from '../operate/config-sync/index.ts'
import type { LoadAssets } from '../operate/console/index.ts'
import type { HeldResources } from '../operate/resource-api/index.ts'
import type { ResourceProblems } from '../operate/resource-problems/routes.ts'
import { openStateBackend, type StateBackend } from '../operate/state-backend/index.ts'
import { openTenants, type TenantsFeature } from '../operate/tenants/index.ts'
import { createLiveCalls, type LiveCalls } from '../pipeline/index.ts'
import { createSealer, loadSealKeys, type Sealer, type StdioReady } from '../planes/mcp/index.ts'
import { Readiness } from './readiness.ts'

export interface GatewayOptions {
  /** As `loadGatewayConfig` gives it. */
  readonly config: GatewayConfig
  /** Where secrets come from (docs/spec/gateway.md, "Secrets that never go in the file"). */
  readonly env: NodeJS.ProcessEnv
  readonly build: BuildInfo
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Reads and verifies the whole ledger before serving, and rebuilds from it what is saved. */
  readonly verifyLedger?: boolean
  /** The store of `resourceAPI.dir`, where this process has one already. */
  readonly resources?: HeldResources
  /**
   * Socket of the stdio bridge that runs servers for this gateway. Only the process that starts both can name it, never a file. Absent: servers that
   * need it are unknown.
   */
  readonly stdioSocket?: string
  /** See `StdioReady`. Absent: the bridge listens. */
  readonly stdioReady?: StdioReady
  /** Problems of the resources, where this process reads them from files. */
  readonly resourceProblems?: () => Promise<ResourceProblems>
  /** Files of the console; absent: there are no pages. */
  readonly consoleAssets?: LoadAssets
  /** Absent: one that reads the load of this process. */
  readonly overload?: OverloadState
}

/** Parts that every feature may receive. */
export interface Shared
  extends GatewayOptions,
    OpeningLimits,
    Pick<StateBackend, 'journals' | 'leadership' | 'once' | 'leases'> {
  readonly metrics: GatewayMetrics
  readonly pools: PoolObservers<PoolOf<'gateway'>>
  /** Its part of the admin API. */
  readonly state: Pick<StateBackend, 'routes' | 'problem'>
  /** As `clock`, but `now` is the clock that decides windows of budgets and rates, in all gateways the same. */
  readonly windowClock: Clock
  readonly snapshots: Snapshots
  /** The fleet's ledger, and those of tenants. */
  readonly audit: Audit
  readonly tenancy: TenantsFeature
  readonly dialer: Dialer
  /** Keys in files and in key services. */
  readonly keys: KeyStore
  readonly residency: ResidencyFeature
  /** Looks up ids that another replica may have stored a moment ago. */
  readonly lookUps: LookUps
  /** Null while `configBundle` is off. */
  readonly bundleFolder: Awaited<ReturnType<typeof openBundleFolder>>
  readonly live: LiveCalls
  readonly overload: OverloadState
  /** Bytes of bodies that calls hold. */
  readonly bytes: SharedPool
  readonly readiness: Readiness
  readonly sealer: Sealer
  /** `upstreamCAFile`, its PEM; null when empty. */
  readonly extraCA: string | null
  /** Closes the part when the gateway stops, after everything that was started later. */
  keep<T extends { close(): unknown }>(part: T): T
}

/** Opens what every feature may be given. `started` closes it all, the last first. */
export async function openShared(options: GatewayOptions, started: AsyncDisposableStack): Promise<Shared> {
  const { config, env, clock, ids, log } = options
  const keep: Shared['keep'] = (part) => started.adopt(part, async () => void (await part.close()))
  const metrics = createGatewayMetrics(options.build, config)
  const snapshots = new Snapshots()
  const pools = createPoolMetrics(metrics)
  const meters = { meter: pools.of('upstream_connections'), lookupMeter: pools.of('name_lookups') }
  const dialer = keep(createDialer({ clock, log, ...meters }))
  // Files of the bundle in force are written before any feature reads them.
  const bundleFolder = await openBundleFolder(options)
  const sync = await openConfigSync({ ...options, dialer, metrics })
  if (sync !== null) keep(sync)
  const residency = keep(createResidency({ config, snapshots, clock, log, metrics }))
  await residency.check()
  const state = keep(await openStateBackend({ ...options, metrics, pools }))
  const { leadership, once, leases, shared, secret } = state
  const appends = watchedPool({ name: 'journal_appends', observer: pools.of('journal_appends') })
  const lookUpPool = watchedPool({ name: 'unknown_ids', observer: pools.of('unknown_ids') })
  const readiness = new Readiness()
  readiness.add('state database', () => state.problem() === null)
  const opening = await openLimits({ config, shared, clock, log, pools, rebuild: options.verifyLedger === true })
  const keys = keep(openKeys(options, { dialer, metrics, pools }))
  const tenancy = keep(await openTenants({ ...options, metrics }))
  const { ledgerHeads: headStore, ledgerCopies: copies } = state
  const copyStore = copies === null || headStore === null ? null : { copies, heads: headStore }
  const audit = keep(await openLedgers({ ...options, metrics, keys, headStore, copyStore, tenancy, opening }))
  if (config.auditFailurePolicy === 'closed') readiness.add('audit ledger', () => audit.ledgers.of('').health === 'ok')
  return {
    ...options,
    ...opening,
    journals: readiness.watched(withShares(state.journals, appends)),
    lookUps: new LookUps({ catchUp: state.journals.catchUp, pool: lookUpPool, clock, log }),
    readiness,
    leadership,
    once,
    leases,
    state,
    windowClock: windowClockOf(clock, opening.counters.limits),
    keep,
    metrics,
    pools,
    snapshots,
    residency,
    bundleFolder,
    audit,
    tenancy,
    keys,
    dialer: residency.dialer(dialer),
    live: keep(createLiveCalls(clock, pools)),
    overload: openOverload(options, metrics, keep),
    bytes: callBytes(pools),
    sealer: createSealer(
      await loadSealKeys({ env, stateDir: path.dirname(config.auditPath), secret, ids }),
      clock,
      ids,
    ),
    extraCA: config.upstreamCAFile === '' ? null : await readFile(config.upstreamCAFile, 'utf8'),
  }
}

/** Opens the fleet's ledger and those of tenants, whose spending is counted from them. */
async function openLedgers(
  options: Omit<Parameters<typeof createAudit>[0], 'since' | 'onRecord'> & {
    readonly tenancy: TenantsFeature
    readonly opening: OpeningLimits
  },
): Promise<Audit> {
  const { tenancy, opening } = options
  const { spending } = opening
  const audit = await createAudit({ ...options, since: spending.since, onRecord: spending.see })
  const open = async (tenant: string) => {
    if (audit.of(tenant) !== null) return
    const file = tenancy.ledgerPath(tenant)
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await audit.open({ tenant, path: file, since: spending.sinceOf(tenant), onRecord: spending.seeOf(tenant) })
  }
  try {
    for (const tenant of tenancy.names()) await open(tenant)
  } catch (error) {
    await audit.close()
    throw error
  }
  tenancy.onAdded(async (tenant) => {
    await open(tenant)
    // Calls that a tenant of this name left open before.
    spending.finish()
  })
  return audit
}

/** Keys in files and in key services, with the credentials of `cloudCredentials`. */
function openKeys(
  options: GatewayOptions,
  { dialer, metrics, pools }: Pick<Shared, 'dialer' | 'metrics' | 'pools'>,
): KeyServices {
  return createKeyServices({
    ...{ ...options, dialer, cloudCredentials: options.config.cloudCredentials },
    onCall: keyServiceMeter(metrics),
    observer: pools.of('key_service_requests'),
  })
}

/** Total: half of the heap limit. Share of an agent: a quarter of the total. */
function callBytes(pools: PoolObservers<'call_bytes'>): SharedPool {
  const total = Math.floor(getHeapStatistics().heap_size_limit / 2)
  return watchedPool({ name: 'call_bytes', total, shares: [Math.floor(total / 4)], observer: pools.of('call_bytes') })
}

function openOverload(
  { clock, log, overload = new Overload({ clock, log }) }: GatewayOptions,
  metrics: GatewayMetrics,
  keep: Shared['keep'],
): OverloadState {
  keep(overload)
  metrics.gauge('plat_gateway_overloaded').from(() => Number(overload.active))
  return overload
}

function windowClockOf(clock: Clock, limits: Pick<Limits, 'now'>): Clock {
  return {
    now: () => limits.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, job) => clock.after(ms, job),
    every: (ms, job) => clock.every(ms, job),
  }
}
