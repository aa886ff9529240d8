import type { BrowserSession } from './browser/sessions.ts'
import { AdminError } from './error.ts'
import { queried } from './read.ts'
import { homeOf, may, mayInTenant, type Principal, type Role, tenantsOf } from './roles.ts'
import type { RouteRow } from './routes.ts'

/** Authenticates a caller again; null, or a rejection: it has no valid credential any more. */
export type Renew = () => Principal | null | Promise<Principal | null>

/** The caller of a route, with its permissions. */
export class Caller {
  readonly #principal: Principal
  readonly #needs: Role | null

  readonly #within: RouteRow['within']

  /** True if the feature records the result of the request itself, or the request changes nothing. */
  readonly leavesOwnRecord: boolean
  /** The route is read-only, although it is not a GET. */
  readonly changesNothing: boolean

  /** The session of the console; null: the caller has a token. */
  readonly session: BrowserSession | null
  readonly #renew: Renew

  constructor(
    principal: Principal,
    { needs, within, ownRecord, reads }: RouteRow,
    { session, renew = () => null }: { readonly session?: BrowserSession; readonly renew?: Renew } = {},
  ) {
    this.#principal = principal
    this.#renew = renew
    this.session = session ?? null
    this.#needs = needs === 'person' || needs === 'none' ? null : needs
    this.#within = within
    this.leavesOwnRecord = ownRecord === true || reads === true
    this.changesNothing = reads === true
  }

  /**
   * Returns the caller as it would be authenticated now, for work that outlives its request. Null: its token or login has ended. It counts neither as
   * a use of a login nor as a refused token.
   */
  async renew(): Promise<Principal | null> {
    try {
      return await this.#renew()
    } catch (error) {
      if (error instanceof AdminError) return null
      throw error
    }
  }

  /** Throws `forbidden` unless the caller has the route's role, anywhere if that is enough. */
  admit(): void {
    if (this.#needs === null) return
    if (this.#within === 'cluster') {
      this.demand(null)
      return
    }
    const tenants = tenantsOf(this.#principal, this.#needs)
    const isWhole = (tenant: string) => mayInTenant(this.#principal, this.#role, tenant)
    if (tenants === null || (this.#within === 'tenant' ? [...tenants].some(isWhole) : tenants.size > 0)) return
    const where = this.#within === 'tenant' ? ' everywhere or in a tenant' : ''
    throw new AdminError('forbidden', `this needs the role ${this.#needs}${where}`)
  }

  get principal(): Principal {
    return this.#principal
  }

  /** The name in the ledger and in votes. */
  get by(): string {
    return this.#principal.by
  }

  /** Came with the static token. */
  get byToken(): boolean {
    return this.#principal.byToken
  }

  /** The tenant in whose ledger actions of this caller are recorded; empty: the fleet's. */
  get home(): string {
    return homeOf(this.#principal)
  }

  /**
   * Returns true if the caller may see objects of this namespace; null: objects of no single namespace. Others are `not_found`, so that a
   * caller does not learn what exists in other namespaces. `tenant`: the tenant in which the object was made, where the namespace can be of another one
   * by now.
   */
  sees(namespace: string | null, tenant?: string): boolean {
    return may(this.#principal, this.#seeing, namespace, tenant)
  }

  /** The same for what belongs to a whole tenant. */
  seesTenant(tenant: string): boolean {
    return mayInTenant(this.#principal, this.#seeing, tenant)
  }

  /** Throws `forbidden` unless the caller, who may see this namespace, also has the route's role in it. */
  demand(namespace: string | null, tenant?: string): void {
    if (this.#needs === null || may(this.#principal, this.#needs, namespace, tenant)) return
    const where = namespace === null ? 'everywhere' : `in namespace ${namespace}`
    throw new AdminError('forbidden', `this needs the role ${this.#needs} ${where}`)
  }

  /** Throws `forbidden` unless the caller has the route's role in this whole tenant. */
  demandTenant(tenant: string): void {
    if (mayInTenant(this.#principal, this.#role, tenant)) return
    throw new AdminError('forbidden', `this needs the role ${this.#needs} in tenant ${tenant}`)
  }

  /**
   * Returns the tenant whose ledger is meant: `tenant` of the query, else the only one in which the caller has the route's role; empty: the fleet's.
   * Throws `not_found` for a tenant in which it has none, `invalid_request` if several are possible.
   */
  tenant(query: unknown): string {
    const named = queried(query, 'tenant')
    const { tenancy } = this.#principal
    const known = tenantsOf(this.#principal, this.#role)
    if (known === null) {
      if (named === null || named === '' || tenancy.has(named)) return named ?? ''
    } else if (named === null) {
      const [only = '', ...others] = known
      if (others.length === 0) return only
      const names = [...known].map((name) => (name === '' ? "the fleet's, written as an empty name" : name))
      throw new AdminError('invalid_request', `tenant: must be one of ${names.join(', ')}`)
    } else if (known.has(named)) return named
    throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
  }

  get #role(): Role {
    return this.#needs ?? 'viewer'
  }

  get #seeing(): Role {
    return this.#needs === 'auditor' ? 'auditor' : 'viewer'
  }
}
