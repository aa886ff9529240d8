import { isObject } from '@plat/core'

/** Maximum number of tenants in a key document. */
const MAX_TENANTS = 1024

/**
 * Tenant of each key and of each namespace, as stated by the broker's key document (`plat_tenant` of a key, `plat_tenants` of the set). The empty
 * string is the broker itself: keys and namespaces without a tenant.
 */
export class KeyTenants {
  readonly #byKey: ReadonlyMap<string, string>
  readonly #byNamespace: ReadonlyMap<string, string>

  constructor(byKey: ReadonlyMap<string, string>, byNamespace: ReadonlyMap<string, string>) {
    this.#byKey = byKey
    this.#byNamespace = byNamespace
  }

  static merge(all: readonly KeyTenants[]): KeyTenants {
    // Later entries of a `Map` replace earlier ones, so the first document comes last.
    const reversed = all.toReversed()
    return new KeyTenants(
      new Map(reversed.flatMap((one) => [...one.#byKey].filter(([, tenant]) => tenant !== ''))),
      new Map(reversed.flatMap((one) => [...one.#byNamespace])),
    )
  }

  ofKey(thumbprint: string): string {
    return this.#byKey.get(thumbprint) ?? ''
  }

  ofNamespace(namespace: string): string {
    return this.#byNamespace.get(namespace) ?? ''
  }

  equals(other: KeyTenants): boolean {
    return sameEntries(this.#byKey, other.#byKey) && sameEntries(this.#byNamespace, other.#byNamespace)
  }
}

/** Merges the tenants of key sources: the first source that names a tenant wins. */
export function joinTenants(sources: readonly { readonly tenants: TenantLookup }[]): TenantLookup {
  const first = (find: (tenants: TenantLookup) => string) => {
    for (const source of sources) {
      const tenant = find(source.tenants)
      if (tenant !== '') return tenant
    }
    return ''
  }
  return {
    ofKey: (thumbprint) => first((tenants) => tenants.ofKey(thumbprint)),
    ofNamespace: (namespace) => first((tenants) => tenants.ofNamespace(namespace)),
  }
}

export type TenantLookup = Pick<KeyTenants, 'ofKey' | 'ofNamespace'>

export const noKeyTenants = new KeyTenants(new Map(), new Map())

export interface DocumentKey {
  readonly thumbprint: string
  readonly jwk: Readonly<Record<string, unknown>>
}

/** Reads the tenants of a key document. Throws when they contradict each other: a wrong binding is worse than the previous one. */
export function readKeyTenants(
  { plat_tenants: listed }: Readonly<Record<string, unknown>>,
  keys: readonly DocumentKey[],
): KeyTenants {
  const byNamespace = new Map<string, string>()
  const names = readNamespaces(listed, byNamespace)
  const byKey = new Map<string, string>()
  for (const { thumbprint, jwk } of keys) {
    const { plat_tenant: tenant = '' } = jwk
    if (typeof tenant !== 'string' || (tenant !== '' && !names.has(tenant))) {
      throw new Error('"plat_tenant" of a key is not in "plat_tenants"')
    }
    const before = byKey.get(thumbprint)
    if (before !== undefined && before !== tenant) throw new Error('a key belongs to two tenants')
    byKey.set(thumbprint, tenant)
  }
  return new KeyTenants(byKey, byNamespace)
}

function readNamespaces(listed: unknown, byNamespace: Map<string, string>): ReadonlySet<string> {
  if (listed === undefined) return new Set()
  if (!isObject(listed)) throw new Error('"plat_tenants" must be an object')
  const entries = Object.entries(listed)
  if (entries.length > MAX_TENANTS) throw new Error(`"plat_tenants" has more than ${MAX_TENANTS} entries`)
  for (const [tenant, namespaces] of entries) {
    if (tenant === '' || !Array.isArray(namespaces)) throw new Error('"plat_tenants" must map names to lists')
    for (const namespace of namespaces) {
      if (typeof namespace !== 'string') throw new Error('"plat_tenants" must list namespaces')
      if (byNamespace.has(namespace)) throw new Error(`namespace "${namespace}" belongs to two tenants`)
      byNamespace.set(namespace, tenant)
    }
  }
  return new Set(entries.map(([tenant]) => tenant))
}

function sameEntries(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  if (a.size !== b.size) return false
  for (const [key, value] of a) if (b.get(key) !== value) return false
  return true
}
