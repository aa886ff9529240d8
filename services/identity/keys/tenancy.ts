import type { Signer } from '@plat/keys'

/** Which tenant a namespace belongs to, and which keys sign for it (docs/spec/broker-api.md, flag `-tenants-file`). */
export interface Tenancy {
  /** Name of the tenant; null for a namespace that is in none. */
  tenantOf(namespace: string): string | null
  /** The key that signs for the namespace; null while its tenant's key is missing or mismatching, never another key. */
  signerFor(namespace: string): Signer | null
  /** Returns whether the key with this thumbprint may sign for the namespace. `unavailable`: the tenant's own key is missing or mismatching. */
  binding(namespace: string, thumbprint: string): 'bound' | 'foreign' | 'unavailable'
}
