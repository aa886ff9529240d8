import { type KnownPerson, marksOf, type PeopleTable, type PersonMarks } from './people.ts'

/** What a caller of the admin API may do (docs/spec/gateway.md, "Authentication"). */
export type Role = 'viewer' | 'approver' | 'auditor' | 'admin' | 'killswitch' | 'audit-forwarder'

/** Every role: what the static token has. */
export const ALL_ROLES: readonly Role[] = ['viewer', 'approver', 'auditor', 'admin', 'killswitch', 'audit-forwarder']

type Roles = ReadonlySet<Role>

/** Who calls the admin API. */
export interface Principal {
  /** The name in the ledger and in votes: `token:admin`. */
  readonly by: string
  /** What identifies the person, whatever way in is used. */
  readonly person: PersonMarks
  /** Groups that the identity provider names; the static token has none. */
  readonly groups: readonly string[]
  /** Roles that hold everywhere. */
  readonly roles: Roles
  /** Roles that hold in one namespace, by its name. */
  readonly namespaceRoles: ReadonlyMap<string, Roles>
  /** Came with the static token: there is no person behind it that a record could name. */
  readonly byToken: boolean
}

/** May the caller do what `role` stands for in this namespace? null: everywhere. */
export function may({ roles, namespaceRoles }: Principal, role: Role, namespace: string | null): boolean {
  if (allows(roles, role)) return true
  const here = namespace === null ? undefined : namespaceRoles.get(namespace)
  return here !== undefined && allows(here, role)
}

/** May the caller do it everywhere or in some namespace? */
export function mayAnywhere({ roles, namespaceRoles }: Principal, role: Role): boolean {
  return allows(roles, role) || [...namespaceRoles.values()].some((here) => allows(here, role))
}

/**
 * `admin` may do all of it. Who decides or revokes must see what there is, so `approver` and `killswitch` read what `viewer`
 * reads; audit records stay with `auditor`.
 */
export function allows(roles: Roles, role: Role): boolean {
  if (roles.has('admin') || roles.has(role)) return true
  return role === 'viewer' && (roles.has('approver') || roles.has('killswitch'))
}

/** Groups and `user:<name>` by the role that they have (docs/spec/gateway.md, `adminAuth.roles`). */
export type RoleTable = Readonly<Record<string, readonly string[]>>

/** Who has which role: everywhere, and by namespace (docs/spec/gateway.md, `adminAuth.roles` and `adminAuth.namespaceRoles`). */
export interface Grants {
  readonly roles: RoleTable
  readonly namespaceRoles: Readonly<Record<string, RoleTable>>
  readonly people: PeopleTable
}

/** What begins an entry that grants one user. A group whose name begins so grants nothing. */
const USER_PREFIX = 'user:'

/** Whom an identity provider names. */
export interface Person {
  readonly user: string
  readonly groups: readonly string[]
  /** Issuer, subject and every name of the token; absent: the user's name is all that is known. */
  readonly known?: KnownPerson
}

/** Who somebody is in the ledger and in votes; no name of a person reads like the static token's `token:admin`. */
export function principalOf({ user, groups, known }: Person, grants: Grants): Principal {
  const name = `${USER_PREFIX}${user}`
  const mine = new Set([...groups.filter((group) => !group.startsWith(USER_PREFIX)), name])
  const namespaceRoles = new Map<string, Roles>()
  for (const [namespace, table] of Object.entries(grants.namespaceRoles)) {
    const here = rolesOf(table, mine)
    if (here.size > 0) namespaceRoles.set(namespace, here)
  }
  const person = marksOf(known ?? { names: [user], subject: null }, grants.people)
  return { by: name, person, groups, roles: rolesOf(grants.roles, mine), namespaceRoles, byToken: false }
}

function rolesOf(table: RoleTable, mine: ReadonlySet<string>): Roles {
  return new Set(ALL_ROLES.filter((role) => table[role]?.some((entry) => mine.has(entry)) === true))
}
