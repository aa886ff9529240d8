import type { LocalSigner } from '@plat/keys'

/** Which tenant a namespace belongs to, and which key signs for it (document 1, flag `-tenants-file`). */
export interface Tenancy {
  /** Name of the tenant; null for a namespace that is in none. */
  tenantOf(namespace: string): string | null
  /** The key that signs for the namespace; null while its tenant's key is missing or mismatching, never another key. */
  signerFor(namespace: string): LocalSigner | null
}

/** Without tenants the broker's own key signs for everybody. */
export function singleTenancy(signer: () => LocalSigner): Tenancy {
  return { tenantOf: () => null, signerFor: () => signer() }
}
