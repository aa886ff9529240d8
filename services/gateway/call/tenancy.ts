/** Which tenant a namespace belongs to (docs/tenants.md). */
export interface Tenancy {
  /** Whether there is a `tenantsFile`. Without one the broker's keys may name tenants, which then share everything but their callers' names. */
  readonly isOn: boolean
  /** Returns the name of the tenant; empty for a namespace of none. */
  of(namespace: string): string
  /** Returns whether this is the name of a tenant. The empty name is not. */
  has(tenant: string): boolean
}

/** A gateway without `tenantsFile`. */
export const noTenancy: Tenancy = { isOn: false, of: () => '', has: () => false }
