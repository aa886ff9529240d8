import type { AlgorithmName, PublicKey } from '@plat/keys'
import { CLASSICAL } from './algorithms.ts'
import { joinTenants, type KeyTenants, noKeyTenants, type TenantLookup } from './tenants/key-tenants.ts'

/** Source of the trusted keys of a verifier. */
export interface KeySource {
  /** Increases with every change of the keys: tokens verified with old ones are verified again. */
  readonly revision: number
  /** Number of trusted keys. */
  readonly size: number
  /** Tenant of each key. When no source names tenants, every key signs for every namespace. */
  readonly tenants: TenantLookup
  /** Returns the key with this `kid`; for null the only key (docs/spec/broker-api.md, "Session token"), and null when there are several. */
  find(kid: string | null): PublicKey | null
  /** Fetches the keys because one is unknown; null when there is no origin, or it is too early. Never rejects. */
  refresh(): Promise<void> | null
  /** Loads the keys for the first time. */
  start(): Promise<void>
  close(): void
}

/** Keys in memory, by `kid`. Keys of other algorithms than those of session tokens are ignored. */
export class KeySet implements KeySource {
  #keys: ReadonlyMap<string, PublicKey> = new Map()
  /** The key when there is exactly one. */
  #only: PublicKey | null = null
  #tenants = noKeyTenants
  #revision = 0
  readonly #algorithms: ReadonlySet<AlgorithmName>

  constructor(keys: readonly PublicKey[] = [], algorithms = CLASSICAL) {
    this.#algorithms = algorithms
    this.replace(keys.map((key) => [key.kid, key]))
  }

  get revision(): number {
    return this.#revision
  }

  get size(): number {
    return this.#keys.size
  }

  get tenants(): KeyTenants {
    return this.#tenants
  }

  find(kid: string | null): PublicKey | null {
    if (kid !== null) return this.#keys.get(kid) ?? null
    return this.#only
  }

  refresh(): Promise<void> | null {
    return null
  }

  async start(): Promise<void> {}

  close(): void {}

  /** Replaces all keys and their tenants. Of two with one `kid` the first is kept. Returns whether anything changed. */
  replace(entries: readonly (readonly [kid: string, key: PublicKey])[], tenants = noKeyTenants): boolean {
    const next = new Map<string, PublicKey>()
    for (const [kid, key] of entries) {
      if (this.#algorithms.has(key.algorithm.name) && !next.has(kid)) next.set(kid, key)
    }
    if (sameKeys(next, this.#keys) && tenants.equals(this.#tenants)) return false
    this.#keys = next
    const [first = null, ...others] = next.values()
    this.#only = others.length === 0 ? first : null
    this.#tenants = tenants
    this.#revision++
    return true
  }
}

function sameKeys(a: ReadonlyMap<string, PublicKey>, b: ReadonlyMap<string, PublicKey>): boolean {
  if (a.size !== b.size) return false
  for (const [kid, key] of a) if (b.get(kid)?.kid !== key.kid) return false
  return true
}

/** Keys that never change. */
export function staticSource(keys: readonly PublicKey[], algorithms = CLASSICAL): KeySource {
  return new KeySet(keys, algorithms)
}

/** Combines several sources; a `kid` is searched in their order. */
export function joinSources(sources: readonly KeySource[]): KeySource {
  const size = () => sources.reduce((total, source) => total + source.size, 0)
  return {
    tenants: joinTenants(sources),
    // Called for each token.
    get revision() {
      let sum = 0
      for (const source of sources) sum += source.revision
      return sum
    },
    get size() {
      return size()
    },
    find(kid) {
      if (kid === null && size() !== 1) return null
      for (const source of sources) {
        const key = source.find(kid)
        if (key !== null) return key
      }
      return null
    },
    refresh() {
      const requested = sources.map((source) => source.refresh()).filter((one) => one !== null)
      return requested.length === 0 ? null : Promise.all(requested).then(() => {})
    },
    start: async () => void (await Promise.all(sources.map((source) => source.start()))),
    close() {
      for (const source of sources) source.close()
    },
  }
}
