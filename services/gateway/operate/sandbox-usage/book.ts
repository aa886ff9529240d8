import { type PoolObserver, rfc3339, type SharedPool, watchedPool } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { AdminError } from '../../admin/index.ts'
import type { Claim, UsageEvent } from './events.ts'
import { digestOf, LONGEST_MS, OLDEST_MS, type Report } from './report.ts'

/** Number of reports per session whose spans are remembered; a report older than these is refused. */
const KEPT_REPORTS = 16
/** Events in the journal at which it is compacted; more if more are still needed. */
const COMPACT_AFTER_EVENTS = 10_000

interface Account {
  /** Number of its events in the journal. */
  version: number
  /** End of the settled time, in milliseconds since the epoch. */
  floor: number
  /** The newest claims, in the order of their spans. */
  claims: readonly Claim[]
}

export interface UsageBookOptions {
  readonly journal: Journal<UsageEvent>
  /** Called once, if the journal cannot be followed any more. */
  readonly onFault: (error: unknown) => void
  readonly observer?: PoolObserver | undefined
}

/** Reports of each session: a projection of the journal, with each span of time at most once. */
export class UsageBook {
  readonly #accounts = new Map<string, Account>()
  readonly #journal: Journal<UsageEvent>
  readonly #pool: SharedPool
  readonly #follower: JournalFollower<UsageEvent>

  private constructor({ journal, onFault, observer }: UsageBookOptions) {
    this.#journal = journal
    this.#pool = watchedPool({ name: 'reported_sessions', observer })
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      apply: (entry) => this.#apply(entry),
      replace: (entries) => {
        for (const session of [...this.#accounts.keys()]) this.#forget(session)
        for (const entry of entries) this.#apply(entry)
      },
    })
  }

  /** Reads the journal, then follows writes of this and other gateways. Rejects if it cannot be read. */
  static async open(options: UsageBookOptions): Promise<UsageBook> {
    const book = new UsageBook(options)
    await book.#follower.open()
    return book
  }

  close(): void {
    this.#follower.close()
  }

  /** Returns the claim of this report, or null if it is new. Throws `conflict` if another report has the id or overlaps. */
  known(report: Report): Claim | null {
    const account = this.#accounts.get(report.session)
    const same = account?.claims.find(({ id }) => id === report.id)
    if (same !== undefined) {
      if (same.digest === digestOf(report)) return same
      throw new AdminError('conflict', `id: report ${report.id} was sent before with other values`)
    }
    if (account === undefined) this.#checkRoom(report.session)
    const { floor = 0, claims = [] } = account ?? {}
    if (report.from < floor)
      throw new AdminError('conflict', `from: lies before ${rfc3339(floor)}, up to which this session is settled`)
    const other = claims.find(({ from, to }) => report.from < to && from < report.to)
    if (other === undefined) return null
    const span = `${rfc3339(other.from)} to ${rfc3339(other.to)}`
    throw new AdminError('conflict', `from: overlaps report ${other.id}, which is about ${span}`)
  }

  /** Returns false if another gateway has just claimed a report of this session. */
  async claim(session: string, claim: Claim): Promise<boolean> {
    const version = this.#accounts.get(session)?.version ?? 0
    return (await this.#journal.append(session, [{ t: 'claimed', claim }], version)) !== 'conflict'
  }

  async counted(session: string, id: string): Promise<void> {
    await this.#journal.append(session, [{ t: 'counted', id }])
  }

  /** Returns unfinished claims of a gateway with this name. */
  unfinished(replica: string): readonly { readonly session: string; readonly claim: Claim }[] {
    return [...this.#accounts].flatMap(([session, { claims }]) =>
      claims.filter((claim) => !claim.counted && claim.replica === replica).map((claim) => ({ session, claim })),
    )
  }

  /** Forgets sessions older than any acceptable report, and compacts a long journal. */
  async sweep(now: number): Promise<void> {
    for (const [session, { claims }] of this.#accounts) {
      const last = claims.at(-1)
      const pending = claims.some(({ counted }) => !counted)
      if (!pending && (last === undefined || last.to < now - OLDEST_MS - LONGEST_MS)) this.#forget(session)
    }
    if (this.#follower.events < Math.max(COMPACT_AFTER_EVENTS, 2 * this.#accounts.size)) return
    await this.#follower.compact(() =>
      [...this.#accounts].map(([key, { version, floor, claims }]) => ({
        key,
        version,
        event: { t: 'kept' as const, floor, claims: [...claims] },
      })),
    )
  }

  /** Throws `backlog_full` if no further session can be added. */
  #checkRoom(session: string): void {
    const namespace = namespaceIn(session)
    const bound = this.#pool.acquire(namespace)
    if (bound !== null) {
      const others = bound === 'share' ? `of namespace ${namespace}` : 'of all namespaces'
      throw new AdminError('backlog_full', `session: too many sessions ${others} have reports already`)
    }
    this.#pool.release(namespace)
  }

  #begin(session: string): Account {
    this.#pool.add(namespaceIn(session))
    return { version: 0, floor: 0, claims: [] }
  }

  #forget(session: string): void {
    if (this.#accounts.delete(session)) this.#pool.release(namespaceIn(session))
  }

  #apply({ key, version, event }: JournalEntry<UsageEvent>): void {
    const account = this.#accounts.getOrInsertComputed(key, () => this.#begin(key))
    account.version = version
    if (event.t === 'claimed') add(account, event.claim)
    else if (event.t === 'counted') finish(account, event.id)
    else {
      account.floor = event.floor
      account.claims = event.claims
    }
  }
}

/** Returns the first part of `<namespace>/<agent>/<session>`. */
function namespaceIn(session: string): string {
  return session.slice(0, session.indexOf('/'))
}

function add(account: Account, claim: Claim): void {
  const claims = [...account.claims, claim].toSorted((one, other) => one.from - other.from)
  // Unfinished claims are kept, however many came later.
  const dropped = claims.slice(0, -KEPT_REPORTS).filter(({ counted }) => counted)
  for (const { to } of dropped) account.floor = Math.max(account.floor, to)
  account.claims = claims.filter((one) => !dropped.includes(one))
}

function finish(account: Account, id: string): void {
  account.claims = account.claims.map((claim) => (claim.id === id ? { ...claim, counted: true } : claim))
}
