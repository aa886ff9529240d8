import { type Clock, isPromise, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import {
  type Hold,
  type HoldItem,
  isShort,
  type JournalEntry,
  JournalFollower,
  type JournalSpec,
  type Limits,
  type OpenJournal,
  PoolFullError,
} from '@plat/state'
import { agentOf, type Denial, deny, holdOfBatch, unstored } from '../../../call/index.ts'
import { type BatchEvent, type BatchUsed, batchesJournal, type StoredBatch } from './events.ts'

const DAY_MS = 24 * 3600 * 1000
/** Age at which a batch whose results were not read is settled as held, in milliseconds: providers keep results for 29 and 30 days. */
export const KEPT_MS = 31 * DAY_MS
/** Interval of the search for such batches, in milliseconds. */
const SWEEP_EVERY_MS = 3600 * 1000
/** Age of a settlement that another gateway may finish, in milliseconds. */
const STALE_MS = 3600 * 1000
/** Events in the journal at which it is compacted; more if more are still needed. */
const COMPACT_AFTER_EVENTS = 10_000

/** Counts what was held, and what was used. */
export interface BatchCharging {
  readonly limits: Pick<Limits, 'take'>
  /** Records and counts what a batch has used, of its hold. */
  settle(batch: StoredBatch, used: BatchUsed, hold: Hold | null): Promise<void>
}

export interface BatchBookOptions {
  readonly config: { readonly auditPath: string }
  readonly journals: { open(spec: JournalSpec<BatchEvent>): Promise<OpenJournal<BatchEvent>> }
  readonly clock: Clock
  readonly log: Log
  /** Name of this gateway. */
  readonly replica: string
}

interface Entry {
  readonly batch: StoredBatch
  version: number
  files: readonly string[]
  /** A gateway settles it, or has begun to. */
  settling: { readonly at: number; readonly replica: string; readonly used: BatchUsed } | null
  isBusy: boolean
}

/** Batches that are not settled: a projection of the journal. Their holds outlive calls and gateways. */
export class BatchBook {
  readonly #options: BatchBookOptions
  readonly #journal: OpenJournal<BatchEvent>
  readonly #entries = new Map<string, Entry>()
  /** Keys of entries by the files of their results. */
  readonly #byFile = new Map<string, string>()
  readonly #follower: JournalFollower<BatchEvent>
  #charging: BatchCharging | null = null
  #stopSweep: () => void = () => {}

  private constructor(options: BatchBookOptions, journal: OpenJournal<BatchEvent>) {
    this.#options = options
    this.#journal = journal
    this.#follower = new JournalFollower({
      journal,
      onFault: (error) => this.#failed(error),
      apply: (entry) => this.#apply(entry),
      replace: (entries) => {
        this.#entries.clear()
        this.#byFile.clear()
        for (const entry of entries) this.#apply(entry)
      },
    })
  }

  /** Reads the journal. Rejects if it cannot be read. */
  static async open(options: BatchBookOptions): Promise<BatchBook> {
    const journal = await options.journals.open(batchesJournal(options.config))
    const book = new BatchBook(options, journal)
    await book.#follower.open()
    return book
  }

  /** Holds again what was held for batches before this gateway began, and finishes settlements that it had begun. Call before calls are served. */
  async begin(charging: BatchCharging): Promise<void> {
    this.#charging = charging
    for (const entry of [...this.#entries.values()]) {
      const hold = await this.#take(entry.batch).catch((error: unknown) => this.#failed(error))
      if (hold !== undefined && entry.settling?.replica === this.#options.replica)
        await this.#finish(entry, entry.settling.used).catch((error: unknown) => this.#failed(error))
    }
    this.#stopSweep = this.#options.clock.every(SWEEP_EVERY_MS, () => void this.#sweep())
  }

  async close(): Promise<void> {
    this.#stopSweep()
    this.#follower.close()
    await this.#journal.close()
  }

  /** Returns a batch that is not settled; null: there is none. */
  find(account: string, id: string): StoredBatch | null {
    return this.#entries.get(keyOf({ account, id }))?.batch ?? null
  }

  /** Returns the batch, not settled, whose results are in a file; null: there is none. */
  ofFile(account: string, file: string): StoredBatch | null {
    const key = this.#byFile.get(`${account}/${file}`)
    return key === undefined ? null : (this.#entries.get(key)?.batch ?? null)
  }

  /** Holds what a batch may use and stores it. Resolves to null once that is durable. */
  async created(batch: StoredBatch): Promise<Denial | null> {
    const key = keyOf(batch)
    if (this.#entries.has(key)) return deny('upstream_error', `${batch.server} responded with the id of another batch`)
    let hold: Hold | null = null
    try {
      hold = await this.#take(batch)
      if ((await this.#journal.append(key, [{ t: 'created', batch }], 0)) !== 'conflict') return null
      return deny('upstream_error', `${batch.server} responded with the id of another batch`)
    } catch (error) {
      await hold?.release()
      if (error instanceof PoolFullError) return deny('backlog_full', 'too many batches and calls hold money')
      return unstored(error, 'the batch cannot be stored', (fault) => this.#failed(fault))
    }
  }

  /** Notes the files with the results of a batch. */
  async results(batch: StoredBatch, files: readonly string[]): Promise<Denial | null> {
    const entry = this.#entries.get(keyOf(batch))
    if (entry === undefined || files.every((file) => entry.files.includes(file))) return null
    try {
      await this.#journal.append(keyOf(batch), [{ t: 'results', files: [...files] }])
      return null
    } catch (error) {
      return unstored(error, 'the results of the batch cannot be stored', (fault) => this.#failed(fault))
    }
  }

  /** Counts what a batch has used, once, whichever gateway reads its results. Never rejects. */
  async settle(batch: StoredBatch, used: BatchUsed): Promise<void> {
    const entry = this.#entries.get(keyOf(batch))
    if (entry !== undefined && entry.settling === null) await this.#settle(entry, used)
  }

  /** Never rejects. */
  async #settle(entry: Entry, used: BatchUsed): Promise<void> {
    if (entry.isBusy) return
    entry.isBusy = true
    try {
      const { replica, clock } = this.#options
      const event = { t: 'settling' as const, at: clock.now(), replica, used }
      const claimed = await this.#journal.append(keyOf(entry.batch), [event], entry.version)
      if (claimed !== 'conflict') await this.#finish(entry, used)
    } catch (error) {
      this.#failed(error)
    } finally {
      entry.isBusy = false
    }
  }

  async #finish({ batch }: Entry, used: BatchUsed): Promise<void> {
    await this.#charging?.settle(batch, used, await this.#take(batch))
    await this.#journal.append(keyOf(batch), [{ t: 'settled' }])
  }

  /** The same hold as before, while it is open. */
  async #take(batch: StoredBatch): Promise<Hold | null> {
    const items = batch.holds.map((item): HoldItem => ({ ...item, cap: Number.MAX_SAFE_INTEGER }))
    if (items.length === 0 || this.#charging === null) return null
    const agent = agentOf(batch)
    const caller = [agent, `${agent}/${batch.session}`]
    const taken = this.#charging.limits.take(holdOfBatch(batch.account, batch.id), items, batch.at + KEPT_MS, caller)
    const hold = isPromise(taken) ? await taken : taken
    if (isShort(hold)) throw new Error(`${hold.key}: the amount is too large to count`)
    return hold
  }

  async #sweep(): Promise<void> {
    const now = this.#options.clock.now()
    for (const entry of [...this.#entries.values()]) {
      const { batch, settling } = entry
      // The gateway that began it has ended.
      if (settling !== null && settling.at + STALE_MS <= now) await this.#settle(entry, settling.used)
      else if (batch.at + KEPT_MS - DAY_MS <= now) await this.settle(batch, { usage: null, costMicros: 0 })
    }
    if (this.#follower.events < Math.max(COMPACT_AFTER_EVENTS, 4 * this.#entries.size)) return
    if ([...this.#entries.values()].some(({ settling }) => settling !== null)) return
    const snapshot = () =>
      [...this.#entries].map(([key, { version, batch, files }]) => {
        const event = { t: 'created' as const, batch, files: [...files] }
        return { key, version, event }
      })
    await this.#follower.compact(snapshot).catch((error: unknown) => this.#failed(error))
  }

  #apply({ key, version, event }: JournalEntry<BatchEvent>): void {
    if (event.t === 'created') {
      const { batch, files = [] } = event
      this.#entries.set(key, { batch, version, files: [], settling: null, isBusy: false })
      this.#noteFiles(key, batch, files)
    }
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    entry.version = version
    if (event.t === 'results') this.#noteFiles(key, entry.batch, event.files)
    if (event.t === 'settling') entry.settling = { at: event.at, replica: event.replica, used: event.used }
    if (event.t === 'settled') this.#forget(key, entry)
  }

  #noteFiles(key: string, { account }: StoredBatch, files: readonly string[]): void {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.files = files
    for (const file of files) this.#byFile.set(`${account}/${file}`, key)
  }

  #forget(key: string, { batch, files }: Entry): void {
    this.#entries.delete(key)
    for (const file of files) this.#byFile.delete(`${batch.account}/${file}`)
  }

  #failed(error: unknown): undefined {
    this.#options.log.error({ error: reasonOf(error) }, 'a batch could not be stored or settled; its hold stays')
  }
}

function keyOf({ account, id }: Pick<StoredBatch, 'account' | 'id'>): string {
  return `${account}/${id}`
}
