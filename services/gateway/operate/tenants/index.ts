import { dirname, join } from 'node:path'
import { type FileWatch, followFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import { decodeTenants, noTenants, type Tenants } from '@plat/tokens'
import { type Identity, noTenancy, type Tenancy } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'

export interface TenantsOptions {
  readonly config: {
    readonly tenantsFile: string
    readonly tenantLedgerDir: string
    readonly auditPath: string
    readonly policyReloadSeconds: number
  }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** A change of the tenants. */
export interface TenantsChange {
  /** Namespaces that belong to another tenant, or to none, or to one now. */
  readonly moved: ReadonlySet<string>
}

/** The tenants of `tenantsFile`. */
export interface TenantsFeature extends Tenancy {
  names(): readonly string[]
  /** Returns the file of a tenant's ledger. */
  ledgerPath(tenant: string): string
  /** Called with each new tenant before it is in force; the file is refused if it rejects. */
  onAdded(open: (tenant: string) => Promise<void>): void
  /** Called after each change. */
  onChange(notify: (change: TenantsChange) => void): void
  /** Returns why no call of this identity is accepted, or null; counts it. */
  crossing(who: Pick<Identity, 'tenant' | 'namespace' | 'delegators' | 'forkedFrom'>): string | null
  /** Whether a server or an agent of one namespace can be used in another. Those of no tenant can be shared with every tenant. */
  mayShare(namespace: string, other: string): boolean
  /** Whether a caller may call the agents of a namespace; counts those of another tenant. */
  readonly mayCall: (caller: Pick<Identity, 'tenant'>, namespace: string) => boolean
  close(): void
}

const off: TenantsFeature = {
  ...noTenancy,
  names: () => [],
  ledgerPath: () => '',
  onAdded() {},
  onChange() {},
  crossing: () => null,
  mayShare: () => true,
  mayCall: () => true,
  close() {},
}

/** Folder beside the ledger. */
const FOLDER = 'tenants'

/** Reads `tenantsFile` (docs/tenants.md) and follows it. Rejects if it is missing or invalid; later an invalid one leaves the previous one in force. */
export async function openTenants(options: TenantsOptions): Promise<TenantsFeature> {
  if (options.config.tenantsFile === '') return off
  const followed = new FollowedTenants(options)
  await followed.start()
  return followed
}

class FollowedTenants implements TenantsFeature {
  readonly isOn = true
  readonly #options: TenantsOptions
  readonly #watch: FileWatch
  readonly #series: ReturnType<typeof seriesOf>
  readonly #added: ((tenant: string) => Promise<void>)[] = []
  readonly #followers: ((change: TenantsChange) => void)[] = []
  #tenants: Tenants = noTenants
  #isStarted = false
  #problems: readonly string[] = []

  constructor(options: TenantsOptions) {
    const { config, clock, metrics } = options
    this.#options = options
    this.#series = seriesOf(metrics)
    this.#watch = followFile({
      path: config.tenantsFile,
      everySeconds: config.policyReloadSeconds,
      clock,
      decode: (bytes) => (bytes === null ? { problems: ['no such file'] } : decodeTenants(bytes)),
      publish: (tenants) => this.#publish(tenants),
      refuse: (problems) => this.#refuse(problems),
    })
  }

  async start(): Promise<void> {
    await this.#watch.check()
    this.#isStarted = true
    if (this.#problems.length === 0) return
    this.close()
    throw new Error(
      this.#problems.map((problem) => `tenantsFile: ${this.#options.config.tenantsFile}: ${problem}`).join('\n'),
    )
  }

  of(namespace: string): string {
    return this.#tenants.byNamespace.get(namespace) ?? ''
  }

  has(tenant: string): boolean {
    return this.#tenants.names.has(tenant)
  }

  names(): readonly string[] {
    return [...this.#tenants.names]
  }

  ledgerPath(tenant: string): string {
    const { tenantLedgerDir, auditPath } = this.#options.config
    return join(tenantLedgerDir || join(dirname(auditPath), FOLDER), tenant, 'audit.jsonl')
  }

  onAdded(open: (tenant: string) => Promise<void>): void {
    this.#added.push(open)
  }

  onChange(notify: (change: TenantsChange) => void): void {
    this.#followers.push(notify)
  }

  crossing({ tenant, namespace, delegators, forkedFrom }: Parameters<TenantsFeature['crossing']>[0]): string | null {
    if (this.of(namespace) !== tenant) {
      this.#series.crossed('key')
      return FOREIGN_KEY
    }
    const isForeign = (one: { readonly namespace: string }) => this.of(one.namespace) !== tenant
    if (!delegators.some(isForeign) && !forkedFrom.some(isForeign)) return null
    this.#series.crossed('origin')
    return FOREIGN_ORIGIN
  }

  mayShare(namespace: string, other: string): boolean {
    const owner = this.of(namespace)
    return owner === '' || owner === this.of(other)
  }

  readonly mayCall = ({ tenant }: Pick<Identity, 'tenant'>, namespace: string): boolean => {
    if (this.of(namespace) === tenant) return true
    this.#series.crossed('target')
    return false
  }

  close(): void {
    this.#watch.stop()
  }

  /** The ledgers are open before the tenants are in force: until then the old ones count. */
  async #publish(tenants: Tenants): Promise<void> {
    const { log, config } = this.#options
    if (this.#isStarted) {
      const added = [...tenants.names].filter((name) => !this.#tenants.names.has(name))
      for (const name of added) for (const open of this.#added) await open(name)
    }
    const before = this.#tenants
    this.#tenants = tenants
    this.#problems = []
    this.#series.count(tenants.names.size)
    this.#series.isOk(true)
    const moved = movedBetween(before, tenants)
    log.info({ path: config.tenantsFile, tenants: tenants.names.size, moved: moved.size }, 'tenants read')
    if (this.#isStarted) for (const notify of this.#followers) notify({ moved })
  }

  #refuse(problems: readonly string[]): void {
    const { log, config } = this.#options
    this.#problems = problems
    this.#series.isOk(false)
    if (this.#isStarted)
      log.error({ path: config.tenantsFile, problems }, 'tenantsFile is refused: the tenants read before stay in force')
  }
}

const FOREIGN_KEY = 'the key of the token is not of the tenant of its namespace'
const FOREIGN_ORIGIN = 'the token comes from a session of another tenant'

function seriesOf(metrics: GatewayMetrics) {
  const count = metrics.gauge('plat_gateway_tenants').labels({})
  const ok = metrics.gauge('plat_gateway_tenants_file_ok').labels({})
  const crossings = metrics.counter('plat_gateway_tenant_crossings_total')
  return {
    count: (tenants: number) => count.set(tenants),
    isOk: (isOk: boolean) => ok.set(Number(isOk)),
    crossed: (by: 'key' | 'origin' | 'target') => crossings.inc({ by }),
  }
}

function movedBetween(before: Tenants, after: Tenants): ReadonlySet<string> {
  const all = new Set([...before.byNamespace.keys(), ...after.byNamespace.keys()])
  return new Set([...all].filter((one) => before.byNamespace.get(one) !== after.byNamespace.get(one)))
}
