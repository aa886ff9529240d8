import { type PoolObserver, rfc3339, type SharedPool, watchedPool } from '@plat/core'
import type { Journal, JournalEntry } from '@plat/state'
import { AdminError } from '../../admin/index.ts'
import type { Claim, UsageEvent } from './events.ts'
import { digestOf, LONGEST_MS, OLDEST_MS, type Report } from './report.ts'

/** Reports of one session whose spans are remembered apart; one that comes later than so many later ones is refused. */
const KEPT_REPORTS = 16
/** Events after which the journal is written anew with what still counts; more when more is kept than that. */
const COMPACT_AFTER_EVENTS = 10_000

interface Account {
  /** Events that the journal has of it. */
  version: number
  /** Everything up to here was reported and is not remembered apart. */
  floor: number
  /** The newest, in the order of their spans. */
  claims: readonly Claim[]
}

/** What was reported of each session: a projection of the journal, in which each span of time stands once. */
export class UsageBook {
  readonly #accounts = new Map<string, Account>()
  readonly #journal: Journal<UsageEvent>
  readonly #pool: SharedPool
  #lastSeq = 0
  #events = 0

  constructor(journal: Journal<UsageEvent>, observer?: PoolObserver) {
    this.#journal = journal
    this.#pool = watchedPool({ name: 'reported_sessions', observer })
  }

  /** Reads the journal, then follows what this gateway and others write. Rejects when it cannot be read. */
  async open(signal: AbortSignal, onFault: (error: unknown) => void): Promise<void> {
    for await (const entry of this.#journal.read(0)) this.#apply(entry)
    const replace = (entries: readonly JournalEntry<UsageEvent>[]) => {
      for (const session of [...this.#accounts.keys()]) this.#forget(session)
      this.#lastSeq = 0
      this.#events = 0
      for (const entry of entries) this.#apply(entry)
    }
    this.#journal.follow(this.#lastSeq, (entry) => this.#apply(entry), signal, replace).catch(onFault)
  }

  /** The claim of this very report; null: it is new. Throws `conflict` where another report has the id, or is about the same time. */
  known(report: Report): Claim | null {
    const account = this.#accounts.get(report.session)
    const same = account?.claims.find(({ id }) => id === report.id)
    if (same !== undefined) {
      if (same.digest === digestOf(report)) return same
      throw new AdminError('conflict', `id: report ${report.id} said something else`)
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

  /** False: another gateway has just taken a report of this session. */
  async claim(session: string, claim: Claim): Promise<boolean> {
    const version = this.#accounts.get(session)?.version ?? 0
    return (await this.#journal.append(session, [{ t: 'claimed', claim }], version)) !== 'conflict'
  }

  async counted(session: string, id: string): Promise<void> {
    await this.#journal.append(session, [{ t: 'counted', id }])
  }

  /** What a gateway of this name took and did not finish. */
  unfinished(replica: string): readonly { readonly session: string; readonly claim: Claim }[] {
    return [...this.#accounts].flatMap(([session, { claims }]) =>
      claims.filter((claim) => !claim.counted && claim.replica === replica).map((claim) => ({ session, claim })),
    )
  }

  /** Forgets sessions of which nothing older than what may come was reported, and writes the journal anew when it is long. */
  async sweep(now: number): Promise<void> {
    for (const [session, { claims }] of this.#accounts) {
      const last = claims.at(-1)
      const pending = claims.some(({ counted }) => !counted)
      if (!pending && (last === undefined || last.to < now - OLDEST_MS - LONGEST_MS)) this.#forget(session)
    }
    if (this.#events < Math.max(COMPACT_AFTER_EVENTS, 2 * this.#accounts.size)) return
    this.#events = 0
    const snapshot = [...this.#accounts].map(([key, { version, floor, claims }]) => ({
      key,
      version,
      event: { t: 'kept' as const, floor, claims: [...claims] },
    }))
    await this.#journal.compact(this.#lastSeq, snapshot)
  }

  /** Throws `backlog_full` where no further session may be reported of. */
  #checkRoom(session: string): void {
    const namespace = namespaceIn(session)
    const bound = this.#pool.acquire(namespace)
    if (bound !== null) {
      const others = bound === 'share' ? `of namespace ${namespace}` : 'of all namespaces'
      throw new AdminError('backlog_full', `session: too many others ${others} are reported of already`)
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

  #apply({ seq, key, version, event }: JournalEntry<UsageEvent>): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq)
    this.#events++
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

/** The first part of `<namespace>/<agent>/<session>`. */
function namespaceIn(session: string): string {
  return session.slice(0, session.indexOf('/'))
}

function add(account: Account, claim: Claim): void {
  const claims = [...account.claims, claim].toSorted((one, other) => one.from - other.from)
  // What is not finished is remembered, however much came after it.
  const dropped = claims.slice(0, -KEPT_REPORTS).filter(({ counted }) => counted)
  for (const { to } of dropped) account.floor = Math.max(account.floor, to)
  account.claims = claims.filter((one) => !dropped.includes(one))
}

function finish(account: Account, id: string): void {
  account.claims = account.claims.map((claim) => (claim.id === id ? { ...claim, counted: true } : claim))
}
