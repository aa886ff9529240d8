import { type KnownPerson, marksOf, type PeopleTable, type PersonMarks } from './people.ts'

/** Roles of the admin API (docs/spec/gateway.md, "Authentication"). */
export type Role = 'viewer' | 'approver' | 'auditor' | 'admin' | 'killswitch' | 'audit-forwarder'

/** All roles, which the static token has. */
export const ALL_ROLES: readonly Role[] = ['viewer', 'approver', 'auditor', 'admin', 'killswitch', 'audit-forwarder']

type Roles = ReadonlySet<Role>

/** An authenticated caller of the admin API. */
export interface Principal {
  /** The name in the ledger and in votes: `token:admin`. */
  readonly by: string
  /** Identifiers of the person, the same for every way to authenticate. */
  readonly person: PersonMarks
  /** Groups from the identity provider; the static token has none. */
  readonly groups: readonly string[]
  /** Roles in all namespaces. */
  readonly roles: Roles
  readonly namespaceRoles: ReadonlyMap<string, Roles>
  /** Authenticated with the static token, so that no person is known. */
  readonly byToken: boolean
  /** Absent: authenticated with the static token, or not known. */
  readonly auth?: Authentication
}

/** How and when a person logged in, as the token says (OpenID Connect Core, section 2; RFC 9470). */
export interface Authentication {
  readonly acr: string | null
  readonly amr: readonly string[]
  /** `auth_time`, in seconds since the epoch. */
  readonly at: number | null
}

/** The holder of the static token, who has every role. */
export const TOKEN_PRINCIPAL: Principal = {
  by: 'token:admin',
  person: ['name:token:admin'],
  groups: [],
  roles: new Set(ALL_ROLES),
  namespaceRoles: new Map(),
  byToken: true,
}

/** Returns true if the caller has this role in a namespace; null: in all namespaces. */
export function may({ roles, namespaceRoles }: Principal, role: Role, namespace: string | null): boolean {
  if (allows(roles, role)) return true
  const here = namespace === null ? undefined : namespaceRoles.get(namespace)
  return here !== undefined && allows(here, role)
}

/** Returns true if the caller has this role in at least one namespace. */
export function mayAnywhere({ roles, namespaceRoles }: Principal, role: Role): boolean {
  return allows(roles, role) || [...namespaceRoles.values()].some((here) => allows(here, role))
}

/**
 * Returns true if the roles include `role`. `admin` includes all roles; `approver` and `killswitch` include `viewer`. Only `auditor` may
 * read audit records.
 */
export function allows(roles: Roles, role: Role): boolean {
  if (roles.has('admin') || roles.has(role)) return true
  return role === 'viewer' && (roles.has('approver') || roles.has('killswitch'))
}

/** Groups and `user:<name>` of each role (docs/spec/gateway.md, `adminAuth.roles`). */
export type RoleTable = Readonly<Record<string, readonly string[]>>

/** Grants of roles, global and by namespace (docs/spec/gateway.md, `adminAuth.roles` and `adminAuth.namespaceRoles`). */
export interface Grants {
  readonly roles: RoleTable
  readonly namespaceRoles: Readonly<Record<string, RoleTable>>
  readonly people: PeopleTable
}

/** Prefix of an entry that grants a role to one user. Groups whose names have this prefix are ignored. */
const USER_PREFIX = 'user:'

/** A person, as identified by an identity provider. */
export interface Person {
  readonly user: string
  readonly groups: readonly string[]
  /** Issuer, subject and all names of the token; absent: only the user's name is known. */
  readonly known?: KnownPerson
  readonly auth?: Authentication
}

/** Returns the principal of a person. Its name in the ledger and in votes never equals that of the static token, `token:admin`. */
export function principalOf({ user, groups, known, auth }: Person, grants: Grants): Principal {
  const name = `${USER_PREFIX}${user}`
  const mine = new Set([...groups.filter((group) => !group.startsWith(USER_PREFIX)), name])
  const namespaceRoles = new Map<string, Roles>()
  for (const [namespace, table] of Object.entries(grants.namespaceRoles)) {
    const here = rolesOf(table, mine)
    if (here.size > 0) namespaceRoles.set(namespace, here)
  }
  const person = marksOf(known ?? { names: [user], subject: null }, grants.people)
  return {
    by: name,
    person,
    groups,
    roles: rolesOf(grants.roles, mine),
    namespaceRoles,
    byToken: false,
    ...(auth && { auth }),
  }
}

function rolesOf(table: RoleTable, mine: ReadonlySet<string>): Roles {
  return new Set(ALL_ROLES.filter((role) => table[role]?.some((entry) => mine.has(entry)) === true))
}
