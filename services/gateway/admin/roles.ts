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

/** Groups and `user:<name>` by the role that they have everywhere (document 3, `adminAuth.roles`). */
export type RoleTable = Readonly<Record<string, readonly string[]>>

/** What begins an entry that grants one user. A group whose name begins so grants nothing. */
const USER_PREFIX = 'user:'

/** The roles of a person. */
export function rolesOf(table: RoleTable, { user, groups }: Person): ReadonlySet<Role> {
  const mine = new Set([...groups.filter((group) => !group.startsWith(USER_PREFIX)), `${USER_PREFIX}${user}`])
  return new Set(ALL_ROLES.filter((role) => table[role]?.some((entry) => mine.has(entry)) === true))
}

/** Whom an identity provider names. */
export interface Person {
  readonly user: string
  readonly groups: readonly string[]
}

/** Who somebody is in the ledger and in votes; no name of a person reads like the static token's `token:admin`. */
export function principalOf(person: Person, table: RoleTable): Principal {
  return { by: `${USER_PREFIX}${person.user}`, roles: rolesOf(table, person), byToken: false }
}
