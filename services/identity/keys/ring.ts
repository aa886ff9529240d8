import { existsSync } from 'node:fs'
import type { Clock } from '@plat/core'
import { ephemeralSigner, type KeyStore, type PublicKey, type Signer } from '@plat/keys'
import type { Log } from '@plat/process'
import { CLASSICAL_AND_ML_DSA, KeySet, type KeySource } from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'
import { jwkSet } from './jwks.ts'
import { isKeyFile, keySource } from './key-source.ts'
import { readPreviousKeys } from './previous.ts'
import { RollingKey } from './rolling.ts'
import type { Tenancy } from './tenancy.ts'
import { TenantKeys } from './tenant-keys.ts'

/** Where the chart mounts the signing key. */
const DEFAULT_SIGNING_KEY = '/var/run/plat-identity/key.pem'
/** How often key files are looked at, in milliseconds. */
export const RELOAD_EVERY_MS = 10_000

/** The broker's keys: those that sign, those that are trusted, and the document that says so. */
export interface KeyRing extends Tenancy {
  /** The broker's own key, which signs for every namespace that is in no tenant. */
  signer(): Signer
  readonly trusted: KeySource
  /** The JWK set as JSON. */
  document(): Buffer
  close(): void
}

export interface KeyRingOptions {
  readonly settings: IdentitySettings
  /** Published in the document, and trusted for no session. */
  readonly federation: { keys(): readonly PublicKey[]; onChange(listen: () => void): void } | null
  readonly clock: Clock
  readonly log: Log
  readonly keys: KeyStore
}

/** Opens the keys and follows their files. Rejects when a file that was named cannot be used. */
export async function createKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const ring = new FileKeyRing(options)
  try {
    await ring.start()
  } catch (error) {
    ring.close()
    throw error
  }
  return ring
}

function signingKeyPath(given: string): string | null {
  if (given !== '') return given
  return existsSync(DEFAULT_SIGNING_KEY) ? DEFAULT_SIGNING_KEY : null
}

class FileKeyRing implements KeyRing {
  readonly trusted = new KeySet([], CLASSICAL_AND_ML_DSA)
  readonly #options: KeyRingOptions
  readonly #tenants: TenantKeys
  /** Signs when there is no file; unused otherwise. */
  #own: Signer
  #rolling: RollingKey | null = null
  #previous: readonly PublicKey[] = []
  #stopPrevious: () => void = () => {}
  /** Tenant of each trusted key, by thumbprint; null: the broker's own. A key shared by two tenants has no owner. */
  #owners: ReadonlyMap<string, string | null> = new Map()
  /** Tenants whose key is also used elsewhere. */
  #mismatching: ReadonlySet<string> = new Set()
  #document: Buffer = Buffer.alloc(0)

  constructor(options: KeyRingOptions) {
    this.#options = options
    this.#tenants = new TenantKeys({ ...options, onChange: () => this.#publish() })
    this.#own = ephemeralSigner(options.settings.signAlg)
  }

  async start(): Promise<void> {
    const { settings, federation, clock } = this.#options
    this.#previous = await readPreviousKeys(settings.previousKeys)
    await this.#openOwn()
    await this.#tenants.start()
    if (settings.previousKeys.length > 0) {
      this.#stopPrevious = clock.every(RELOAD_EVERY_MS, () => void this.#reloadPrevious())
    }
    federation?.onChange(() => this.#publish())
    this.#publish()
  }

  signer(): Signer {
    return this.#rolling?.signer() ?? this.#own
  }

  document(): Buffer {
    return this.#document
  }

  close(): void {
    this.#rolling?.close()
    this.#tenants.close()
    this.#stopPrevious()
  }

  tenantOf(namespace: string): string | null {
    return this.#tenants.tenantOf(namespace)
  }

  signerFor(namespace: string): Signer | null {
    const tenant = this.#tenants.tenantOf(namespace)
    if (tenant === null) return this.signer()
    return this.#mismatching.has(tenant) ? null : this.#tenants.signerOf(tenant)
  }

  binding(namespace: string, thumbprint: string): 'bound' | 'foreign' | 'unavailable' {
    if (this.signerFor(namespace) === null) return 'unavailable'
    return this.#owners.get(thumbprint) === this.#tenants.tenantOf(namespace) ? 'bound' : 'foreign'
  }

  async #openOwn(): Promise<void> {
    const { settings, clock, log, keys } = this.#options
    const { signAlg, maxTtlMs: lifetimeMs } = settings
    const given = signingKeyPath(settings.signingKey)
    if (given === null) {
      log.warn(
        { path: DEFAULT_SIGNING_KEY },
        'no signing key: signing with a temporary key, which is lost when this process exits',
      )
      return
    }
    const use = { flag: '-signing-key', algorithms: { names: [signAlg], because: `-sign-alg is ${signAlg}` } }
    const { path, open } = keySource(given, use, keys)
    this.#own = await open()
    this.#rolling = new RollingKey(this.#own, {
      path,
      ...(isKeyFile(given) ? {} : { open }),
      use,
      everyMs: RELOAD_EVERY_MS,
      lifetimeMs,
      whenLost: 'keep',
      clock,
      log,
      onChange: () => this.#publish(),
    })
    await this.#rolling.check()
  }

  async #reloadPrevious(): Promise<void> {
    try {
      this.#previous = await readPreviousKeys(this.#options.settings.previousKeys)
      this.#publish()
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'previous keys could not be reloaded, the old ones stay in use')
    }
  }

  /** Recomputes owners, trusted keys, and the document. */
  #publish(): void {
    const own = [...(this.#rolling?.keys() ?? [this.#own.publicKey]), ...this.#previous]
    const tenants = [...this.#tenants.byTenant()]
    this.#mismatching = this.#findMismatching(own, tenants)
    const owned = [
      ...own.map((key) => ({ owner: null, key })),
      ...tenants.flatMap(([owner, keys]) => (this.#mismatching.has(owner) ? [] : keys.map((key) => ({ owner, key })))),
    ]
    this.#owners = new Map(owned.map(({ owner, key }) => [key.kid, owner]))
    this.trusted.replace(owned.map(({ key }) => [key.kid, key]))
    const namespaces = this.#tenants.namespaces()
    const published = namespaces === null ? null : { owners: this.#owners, namespaces }
    this.#document = jwkSet([...owned.map(({ key }) => key), ...(this.#options.federation?.keys() ?? [])], published)
  }

  /** A tenant's key that the broker or another tenant also has identifies neither: it counts as missing. */
  #findMismatching(
    own: readonly PublicKey[],
    tenants: readonly (readonly [string, readonly PublicKey[]])[],
  ): ReadonlySet<string> {
    const holders = new Map<string, Set<string | null>>(own.map(({ kid }) => [kid, new Set([null])]))
    for (const [tenant, keys] of tenants) {
      for (const { kid } of keys) holders.set(kid, (holders.get(kid) ?? new Set()).add(tenant))
    }
    const mismatching = new Set<string>()
    for (const names of holders.values()) {
      if (names.size > 1) for (const name of names) if (name !== null) mismatching.add(name)
    }
    for (const tenant of mismatching) {
      if (!this.#mismatching.has(tenant)) {
        this.#options.log.error({ tenant }, 'two tenants have the same key: nothing is signed with it')
      }
    }
    return mismatching
  }
}
