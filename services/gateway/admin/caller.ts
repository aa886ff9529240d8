import { AdminError } from './error.ts'
import { may, mayAnywhere, type Principal, type Role } from './roles.ts'
import type { RouteRow } from './routes.ts'

/** Who calls a route, and what of it is theirs. */
export class Caller {
  readonly #principal: Principal
  readonly #needs: Role | null

  readonly #within: RouteRow['within']

  /** What comes of the request stands in a record of the feature's own, or nothing comes of it. */
  readonly leavesOwnRecord: boolean
  /** The route is a read, though it is no GET. */
  readonly changesNothing: boolean

  constructor(principal: Principal, { needs, within, ownRecord, reads }: RouteRow) {
    this.#principal = principal
    this.#needs = needs === 'person' || needs === 'nobody' ? null : needs
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
   * May the caller see what is of this namespace? null: what is of no single one. Whatever may not be seen is `not_found`, so that nobody
   * learns what there is elsewhere.
   */
  sees(namespace: string | null): boolean {
    const role = this.#needs === 'auditor' ? 'auditor' : 'viewer'
    return may(this.#principal, role, namespace)
  }

  /** Throws `forbidden` unless the caller has the route's role for what is of this namespace, which the caller may see. */
  demand(namespace: string | null): void {
    if (this.#needs === null || may(this.#principal, this.#needs, namespace)) return
    const where = namespace === null ? 'everywhere' : `in namespace ${namespace}`
    throw new AdminError('forbidden', `this needs the role ${this.#needs} ${where}`)
  }
}
