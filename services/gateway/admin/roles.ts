import { noTenancy, type Tenancy } from '../call/index.ts'
import { type KnownPerson, marksOf, type PeopleTable, type PersonMarks } from './people.ts'

/** Roles of the admin API (docs/spec/gateway.md, "Authentication"). */
export type Role = 'viewer' | 'approver' | 'auditor' | 'admin' | 'killswitch' | 'audit-forwarder'

/** All roles, which the static token has. */
export const ALL_ROLES: readonly Role[] = ['viewer', 'approver', 'auditor', 'admin', 'killswitch', 'audit-forwarder']

type Roles = ReadonlySet<Role>

/** Roles by the name of a namespace or a tenant, for responses. */
export function listsOf(roles: ReadonlyMap<string, Roles>): Record<string, readonly Role[]> {
  return Object.fromEntries([...roles].map(([name, here]) => [name, [...here]]))
}

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
  /** Roles in all namespaces of one tenant and in its ledger, by its name. */
  readonly tenantRoles: ReadonlyMap<string, Roles>
  readonly tenancy: Tenancy
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
export function tokenPrincipal({ tenancy = noTenancy }: Pick<Grants, 'tenancy'>): Principal {
  return {
    by: 'token:admin',
    person: ['name:token:admin'],
    groups: [],
    roles: new Set(ALL_ROLES),
    namespaceRoles: new Map(),
    tenantRoles: new Map(),
    tenancy,
    byToken: true,
  }
}

/**
 * Returns true if the caller has this role in a namespace; null: in all namespaces. `madeIn`: the tenant that an object of the namespace was made in,
 * where that can be another one than now.
 */
export function may(principal: Principal, role: Role, namespace: string | null, madeIn?: string): boolean {
  const { roles, namespaceRoles, tenancy } = principal
  if (allows(roles, role)) return true
  const tenant = tenancy.isOn ? madeIn : undefined
  if (namespace === null) return tenant !== undefined && mayInTenant(principal, role, tenant)
  const owner = tenancy.of(namespace)
  if (mayInTenant(principal, role, tenant ?? owner)) return true
  const here = namespaceRoles.get(namespace)
  return here !== undefined && allows(here, role) && (tenant ?? owner) === owner
}

/** Returns true if the caller has this role in a whole tenant. */
export function mayInTenant({ roles, tenantRoles, tenancy }: Principal, role: Role, tenant: string): boolean {
  if (allows(roles, role)) return true
  const here = tenantRoles.get(tenant)
  return here !== undefined && tenancy.has(tenant) && allows(here, role)
}

/** Returns the only tenant in which the caller has roles, in whose ledger its actions are recorded; empty: the fleet's. */
export function homeOf({ roles, tenancy, tenantRoles, namespaceRoles }: Principal): string {
  if (roles.size > 0) return ''
  const all = new Set([...tenantRoles.keys(), ...[...namespaceRoles.keys()].map((name) => tenancy.of(name))])
  const [only = ''] = all
  return all.size === 1 && tenancy.has(only) ? only : ''
}

/** Returns the tenants in which the caller has this role, whole or in a namespace; empty: in a namespace of none. Null: it has it everywhere. */
export function tenantsOf(principal: Principal, role: Role): ReadonlySet<string> | null {
  const { roles, namespaceRoles, tenantRoles, tenancy } = principal
  if (allows(roles, role)) return null
  const whole = [...tenantRoles.keys()].filter((tenant) => mayInTenant(principal, role, tenant))
  const parts = [...namespaceRoles].filter(([, here]) => allows(here, role)).map(([namespace]) => tenancy.of(namespace))
  return new Set([...whole, ...parts])
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

/** Grants of roles: global, by namespace (docs/spec/gateway.md, `adminAuth.roles` and `adminAuth.namespaceRoles`), and by tenant. */
export interface Grants {
  readonly roles: RoleTable
  readonly namespaceRoles: Readonly<Record<string, RoleTable>>
  /** Absent: none. */
  readonly tenantRoles?: Readonly<Record<string, RoleTable>>
  readonly people: PeopleTable
  /** Absent: there are no tenants. */
  readonly tenancy?: Tenancy
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
  const person = marksOf(known ?? { names: [user], subject: null }, grants.people)
  return {
    by: name,
    person,
    groups,
    roles: rolesOf(grants.roles, mine),
    namespaceRoles: rolesIn(grants.namespaceRoles, mine),
    tenantRoles: rolesIn(grants.tenantRoles ?? {}, mine),
    tenancy: grants.tenancy ?? noTenancy,
    byToken: false,
    ...(auth && { auth }),
  }
}

function rolesIn(tables: Readonly<Record<string, RoleTable>>, mine: ReadonlySet<string>): Map<string, Roles> {
  const found = new Map<string, Roles>()
  for (const [name, table] of Object.entries(tables)) {
    const here = rolesOf(table, mine)
    if (here.size > 0) found.set(name, here)
  }
  return found
}

function rolesOf(table: RoleTable, mine: ReadonlySet<string>): Roles {
  return new Set(ALL_ROLES.filter((role) => table[role]?.some((entry) => mine.has(entry)) === true))
}
