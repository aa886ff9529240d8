import { type Clock, type Ids, rfc3339, rfc3339Micros } from '@plat/core'
import { type Ledger, ledgerPage, type Rec } from '@plat/ledger'
import type { Hold } from '@plat/state'
import { AdminError } from '../../admin/index.ts'
import { SANDBOX_USAGE } from '../../call/index.ts'
import type { UsageBook } from './book.ts'
import type { Claim } from './events.ts'
import { digestOf, type Report, type Used } from './report.ts'

/** How long before a claim its records may be in the ledger, in milliseconds: clocks are adjusted. */
const LOOK_BACK_MS = 60_000
/** Page size of such a search, in records. */
const PAGE_RECORDS = 500

/** A session that has called. */
export interface Known {
  readonly user: string | null
  readonly groups: readonly string[]
}

/** The session whose budgets are charged. */
export interface Payer extends Known {
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

interface Cost {
  readonly micros: number
  readonly currency: string
  readonly priceId: string
}

/** Charges money that is already spent. */
export interface Charging {
  costOf(used: Used): Cost
  /** Reserves from every budget of the payer. Returns null if there is none. Throws `AdminError`. */
  take(id: string, payer: Payer, cost: Pick<Cost, 'micros' | 'currency'>): Hold | null | Promise<Hold | null>
  metered(micros: number): void
}

export interface DeskParts {
  readonly book: UsageBook
  /** Returns null if no session has this name. */
  readonly find: (name: Pick<Payer, 'namespace' | 'agent' | 'session'>) => Promise<Known | null>
  readonly charging: Charging
  /** Returns the ledger of the tenant of a namespace, with its file. */
  readonly ledgerOf: (namespace: string) => { readonly ledger: Pick<Ledger, 'append'>; readonly path: string }
  /** Called with the last record of each report. */
  readonly see: (record: Rec, at: number) => void
  readonly replica: string
  readonly clock: Clock
  readonly ids: Ids
}

/** Response to a reporter. */
export interface Accepted {
  readonly id: string
  readonly session: string
  /** The same report was accepted before. */
  readonly duplicate: boolean
  readonly cost: { readonly micros: number; readonly currency: string }
}

/**
 * Accepts reports, each once. A report is claimed in the journal first, then charged and recorded, then marked as counted. After a crash in
 * between, the same report or the next start continues at that step, which the ledger shows.
 */
export class UsageReports {
  readonly #parts: DeskParts
  /** Last pending report of each session; reports of one session are processed one at a time. */
  readonly #queues = new Map<string, Promise<unknown>>()

  constructor(parts: DeskParts) {
    this.#parts = parts
  }

  /** Resolves once it is recorded in the ledger. Throws `AdminError`. */
  async take(report: Report, by: string): Promise<Accepted> {
    return await this.#inTurn(report.session, () => this.#take(report, by))
  }

  /** Finishes reports that this gateway had accepted before it ended. Never rejects. */
  async finish(onFault: (error: unknown) => void): Promise<void> {
    const { book, replica } = this.#parts
    for (const { session, claim } of book.unfinished(replica))
      await this.#inTurn(session, () => this.#countAgain(session, claim)).catch(onFault)
  }

  async #inTurn<T>(session: string, work: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(session) ?? Promise.resolve()
    const own = before.then(work)
    const over = own.catch(() => {})
    this.#queues.set(session, over)
    try {
      return await own
    } finally {
      if (this.#queues.get(session) === over) this.#queues.delete(session)
    }
  }

  async #take(report: Report, by: string): Promise<Accepted> {
    const { book, replica } = this.#parts
    const known = book.known(report)
    if (known !== null) {
      if (!known.counted && known.replica === replica) await this.#countAgain(report.session, known)
      return answerOf(report.session, known, true)
    }
    const claim = await this.#claimOf(report, by)
    if (!(await book.claim(report.session, claim)))
      throw new AdminError('conflict', 'session: another gateway has just taken a report of it; send this one again')
    await this.#count(report.session, claim)
    return answerOf(report.session, claim, false)
  }

  async #claimOf(report: Report, by: string): Promise<Claim> {
    const { find, charging, replica, clock, ids } = this.#parts
    const { session, ...values } = report
    const caller = await find(nameOf(session))
    if (caller === null)
      throw new AdminError('unknown_session', `session: ${session} has not called through this gateway`)
    const { micros, currency, priceId } = charging.costOf(report)
    return {
      ...values,
      call: ids.uuid(),
      digest: digestOf(report),
      by,
      replica,
      at: clock.now(),
      user: caller.user,
      groups: [...caller.groups],
      costMicros: micros,
      currency,
      priceId,
      counted: false,
    }
  }

  /** Counts a claim whose progress is unknown. */
  async #countAgain(session: string, claim: Claim): Promise<void> {
    if (await this.#isRecorded(session, claim)) await this.#parts.book.counted(session, claim.id)
    else await this.#count(session, claim)
  }

  /** An intent is enough: without an outcome its whole hold counts as spent, which is the usage. */
  async #isRecorded(session: string, { call, at }: Claim): Promise<boolean> {
    const { path } = this.#ledgerOf(session)
    const wants = (rec: Readonly<Record<string, unknown>>) => rec.call === call
    let page = await ledgerPage(path, {
      from: { at: rfc3339Micros(at - LOOK_BACK_MS) },
      to: null,
      limit: PAGE_RECORDS,
      wants,
    })
    while (page.items.length === 0 && page.next !== null)
      page = await ledgerPage(path, { from: page.next, to: null, limit: PAGE_RECORDS, wants })
    return page.items.length > 0
  }

  async #count(session: string, claim: Claim): Promise<void> {
    const { book, charging, see, clock } = this.#parts
    const { call, costMicros: micros, currency, user, groups } = claim
    const hold = await charging.take(call, { ...nameOf(session), user, groups }, { micros, currency })
    const shared = sharedMembers(session, claim)
    if (hold !== null) await this.#intend(session, hold, shared)
    // Settles and records in one turn of the event loop: totals are saved in between.
    const settling = hold?.settle(new Map(hold.items.map(({ key }) => [key, micros])))
    const record = outcomeOf(shared, claim, hold)
    const recorded = this.#ledgerOf(session).ledger.append(record)
    const notify = () => {
      if (micros > 0) charging.metered(micros)
      see(record, clock.now())
    }
    if (hold !== null) notify()
    await settling
    await recorded.catch(unrecorded)
    // Without an intent this is its first record: the report may be counted again after a crash before this point.
    if (hold === null) notify()
    await book.counted(session, claim.id)
  }

  #ledgerOf(session: string) {
    return this.#parts.ledgerOf(nameOf(session).namespace)
  }

  async #intend(session: string, hold: Hold, shared: Members): Promise<void> {
    const holds = hold.items.map(({ amount, cap, key, unit, window }) => ({ amount, cap, key, unit, window }))
    try {
      await this.#ledgerOf(session).ledger.append({ kind: 'intent', ...shared, holds })
    } catch {
      await hold.release()
      unrecorded()
    }
  }
}

type Members = Omit<Rec, 'kind'>

/** Members of both records. */
function sharedMembers(session: string, claim: Claim): Members {
  const { call, id, by, from, to, cpuMs, memoryByteSeconds, gpuMs, user } = claim
  return {
    call,
    ...nameOf(session),
    ...(user !== null && { user }),
    op: SANDBOX_USAGE,
    server: 'plat-sandbox',
    sandbox: { by, cpuMs, from: rfc3339(from), gpuMs, memoryByteSeconds, report: id, to: rfc3339(to) },
  }
}

function outcomeOf(shared: Members, { costMicros, currency, priceId }: Claim, hold: Hold | null): Rec {
  const money = costMicros === 0 ? {} : { currency, priceId }
  const settled = hold?.settled ?? null
  return {
    kind: 'outcome',
    ...shared,
    result: 'completed',
    status: 200,
    costMicros,
    ...money,
    ...(settled !== null && { settled: Object.fromEntries(settled) }),
  }
}

function nameOf(session: string): Pick<Payer, 'namespace' | 'agent' | 'session'> {
  const [namespace = '', agent = '', name = ''] = session.split('/')
  return { namespace, agent, session: name }
}

function answerOf(session: string, { id, costMicros, currency }: Claim, duplicate: boolean): Accepted {
  return { id, session, duplicate, cost: { micros: costMicros, currency } }
}

function unrecorded(): never {
  throw new AdminError('audit_unavailable', 'the report could not be recorded: send it again')
}
