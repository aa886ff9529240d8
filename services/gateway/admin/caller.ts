import type { BrowserSession } from './browser/sessions.ts'
import { AdminError } from './error.ts'
import { may, mayAnywhere, type Principal, type Role } from './roles.ts'
import type { RouteRow } from './routes.ts'

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

  constructor(
    principal: Principal,
    { needs, within, ownRecord, reads }: RouteRow,
    session: BrowserSession | null = null,
  ) {
    this.#principal = principal
    this.session = session
    this.#needs = needs === 'person' || needs === 'none' ? null : needs
    this.#within = within
    this.leavesOwnRecord = ownRecord === true || reads === true
    this.changesNothing = reads === true
  }

  /** Throws `forbidden` unless the caller has the route's role, anywhere if that is enough. */
  admit(): void {
    if (this.#needs === null) return
    if (this.#within === 'cluster') this.demand(null)
    else if (!mayAnywhere(this.#principal, this.#needs)) {
      throw new AdminError('forbidden', `this needs the role ${this.#needs}`)
    }
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

  /**
   * Returns true if the caller may see objects of this namespace; null: objects of no single namespace. Others are `not_found`, so that a
   * caller does not learn what exists in other namespaces.
   */
  sees(namespace: string | null): boolean {
    const role = this.#needs === 'auditor' ? 'auditor' : 'viewer'
    return may(this.#principal, role, namespace)
  }

  /** Throws `forbidden` unless the caller, who may see this namespace, also has the route's role in it. */
  demand(namespace: string | null): void {
    if (this.#needs === null || may(this.#principal, this.#needs, namespace)) return
    const where = namespace === null ? 'everywhere' : `in namespace ${namespace}`
    throw new AdminError('forbidden', `this needs the role ${this.#needs} ${where}`)
  }
}
