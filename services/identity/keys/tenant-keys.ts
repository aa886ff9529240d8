import path from 'node:path'
import { type FileWatch, watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { PublicKey, Signer } from '@plat/keys'
import type { Log } from '@plat/process'
import { decodeTenants, noTenants, type Tenants } from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'
import { RollingKey } from './rolling.ts'

export interface TenantKeysOptions {
  readonly settings: IdentitySettings
  readonly clock: Clock
  readonly log: Log
  /** Tenants or their keys are others now. */
  readonly onChange: () => void
}

/** The tenants of `-tenants-file`, and the key of each: `<-tenant-keys-dir>/<name>.pem`. */
export class TenantKeys {
  readonly #options: TenantKeysOptions
  readonly #keys = new Map<string, RollingKey>()
  #tenants: Tenants = noTenants
  #watch: FileWatch | null = null

  constructor(options: TenantKeysOptions) {
    this.#options = options
  }

  /** Reads the file and follows it. Rejects when it is wrong; a tenant without its key is not a reason to. */
  async start(): Promise<void> {
    const { settings, clock, log } = this.#options
    const { tenantsFile, tenantReloadMs: everyMs } = settings
    if (tenantsFile === '') return
    let failure: unknown = null
    this.#watch = watchFile({
      path: tenantsFile,
      everyMs,
      clock,
      onBytes: async (bytes) => {
        if (bytes === null) throw new Error(`-tenants-file: ${tenantsFile} is missing`)
        await this.#take(readTenants(bytes, tenantsFile))
      },
      onError: (error) => {
        failure = error
        log.warn({ error: String(error) }, 'tenants could not be reloaded, the old ones stay in use')
      },
    })
    await this.#watch.check()
    if (failure !== null) throw failure
  }

  close(): void {
    this.#watch?.stop()
    for (const key of this.#keys.values()) key.close()
  }

  tenantOf(namespace: string): string | null {
    return this.#tenants.byNamespace.get(namespace) ?? null
  }

  /** Namespaces by tenant, those of tenants without a key included; null without tenants. */
  namespaces(): Readonly<Record<string, readonly string[]>> | null {
    const { names, byNamespace } = this.#tenants
    if (names.size === 0) return null
    const byTenant = new Map<string, string[]>([...names].map((name) => [name, []]))
    for (const [namespace, tenant] of byNamespace) byTenant.get(tenant)?.push(namespace)
    return Object.fromEntries(byTenant)
  }

  signerOf(tenant: string): Signer | null {
    return this.#keys.get(tenant)?.signer() ?? null
  }

  *byTenant(): Generator<readonly [tenant: string, keys: readonly PublicKey[]]> {
    for (const [tenant, key] of this.#keys) yield [tenant, key.keys()]
  }

  /** The keys are there before the tenants are: until then the old tenants count, never no tenant. */
  async #take(tenants: Tenants): Promise<void> {
    const gone = [...this.#keys.keys()].filter((name) => !tenants.names.has(name))
    const added = [...tenants.names].filter((name) => !this.#keys.has(name))
    await Promise.all(added.map((name) => this.#follow(name)))
    for (const name of gone) {
      this.#keys.get(name)?.close()
      this.#keys.delete(name)
    }
    this.#tenants = tenants
    this.#options.log.info({ tenants: tenants.names.size }, 'tenants read')
    this.#options.onChange()
  }

  async #follow(name: string): Promise<void> {
    const { settings, clock, log, onChange } = this.#options
    const { tenantKeysDir, tenantReloadMs, maxTtlMs, signAlg } = settings
    const key = new RollingKey(null, {
      path: path.join(tenantKeysDir, `${name}.pem`),
      use: { flag: '-tenant-keys-dir', algorithms: { names: [signAlg], because: `-sign-alg is ${signAlg}` } },
      everyMs: tenantReloadMs,
      lifetimeMs: maxTtlMs,
      whenLost: 'stop',
      clock,
      log: log.child({ tenant: name }),
      onChange,
    })
    this.#keys.set(name, key)
    await key.check()
  }
}

/** Throws every problem, one a line. */
function readTenants(bytes: Uint8Array, path: string): Tenants {
  const decoded = decodeTenants(bytes)
  if (!('problems' in decoded)) return decoded
  throw new Error(decoded.problems.map((problem) => `-tenants-file: ${path}: ${problem}`).join('\n'))
}
