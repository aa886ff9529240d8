/** What a caller of the admin API may do (document 3, "Authentication"). */
export type Role = 'viewer' | 'approver' | 'auditor' | 'admin' | 'killswitch' | 'audit-forwarder'

/** Every role: what the static token has. */
export const ALL_ROLES: readonly Role[] = ['viewer', 'approver', 'auditor', 'admin', 'killswitch', 'audit-forwarder']

/** Who calls the admin API. */
export interface Principal {
  /** The name in the ledger and in votes: `token:admin`. */
  readonly by: string
  readonly roles: ReadonlySet<Role>
  /** Came with the static token: there is no person behind it that a record could name. */
  readonly byToken: boolean
}

/**
 * May the caller do what `role` stands for? `admin` may do all of it. Who decides or revokes must see what there is, so
 * `approver` and `killswitch` read what `viewer` reads; audit records stay with `auditor`.
 */
export function may({ roles }: Principal, role: Role): boolean {
  if (roles.has('admin') || roles.has(role)) return true
  return role === 'viewer' && (roles.has('approver') || roles.has('killswitch'))
}
