import { type Clock, isObject, reasonOf, Slices } from '@plat/core'
import { CopyDamagedError, openChunk } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { LedgerCopies, LedgerCopy, StoredChunk } from '@plat/state'

/** Interval at which copies are read, in milliseconds. */
const POLL_MS = 1_000
/** Lines that are read at once, in bytes. */
const READ_BYTES = 1024 * 1024
/** Records at the end of a copy that are read first, and age of copies that are not read any more, in milliseconds: a week. */
const RESTORED_RECORDS = 20_000
const OLD_MS = 7 * 24 * 3_600_000
/** Occurs in every intent, of which followers need nothing; cannot occur inside a string. */
const INTENT = Buffer.from('"kind":"intent"')
const LF = 0x0a

export interface FollowerOptions {
  readonly copies: LedgerCopies
  /** Returns whether a ledger is open here: its records are known already. */
  readonly isHere: (ledgerId: string) => boolean
  readonly clock: Clock
  readonly log: Log
  /** Called with each record that is no intent, in the order of its ledger. */
  readonly onRecord: (rec: Readonly<Record<string, unknown>>, at: number, tenant: string) => void
  /** Called with the number of copies that were found damaged. */
  readonly onDamaged: (count: number) => void
}

/** The last record that was read of a copy. */
interface Place {
  readonly seq: number
  readonly hash: string | null
  readonly position: number
}

/**
 * Reads the copies of other replicas' ledgers from near their ends on. Each line is verified, and that it follows the one before; a copy that was changed is
 * reported, and not read further.
 */
export class CopyFollower {
  readonly #options: FollowerOptions
  readonly #places = new Map<string, Place>()
  readonly #damaged = new Map<string, string>()
  readonly #stopTimer: () => void
  #isClosed = false
  #hasFailed = false
  #running: Promise<void> | null = null

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#stopTimer = options.clock.every(POLL_MS, () => void this.look())
    void this.look()
  }

  /** Why the copy of a ledger is not read, or null. */
  problemOf(ledgerId: string): string | null {
    return this.#damaged.get(ledgerId) ?? null
  }

  /** Reads what is new. Never rejects. */
  look(): Promise<void> {
    this.#running ??= this.#attempt().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopTimer()
    await this.#running
  }

  async #attempt(): Promise<void> {
    const { copies, clock, log, isHere } = this.#options
    try {
      for (const copy of await copies.list()) {
        const isOld = !this.#places.has(copy.ledgerId) && copy.at < clock.now() - OLD_MS
        if (isHere(copy.ledgerId) || isOld || copy.seq === -1) continue
        await this.#read(copy)
      }
      this.#hasFailed = false
    } catch (error) {
      // Logs only the first of consecutive failures.
      if (!this.#hasFailed)
        log.warn({ reason: reasonOf(error) }, 'the ledgers of other replicas cannot be read, will retry')
      this.#hasFailed = true
    }
  }

  /** After a change in the database was undone, a copy is read on. */
  async #read(copy: LedgerCopy): Promise<void> {
    const { log, onDamaged } = this.#options
    const { ledgerId, replica } = copy
    try {
      await this.#readOn(copy)
      if (this.#damaged.delete(ledgerId)) onDamaged(this.#damaged.size)
    } catch (error) {
      if (!(error instanceof CopyDamagedError)) throw error
      if (!this.#damaged.has(ledgerId))
        log.error(
          { replica, ledger: ledgerId, reason: error.message },
          'a copy of a ledger in the state database was changed',
        )
      this.#damaged.set(ledgerId, error.message)
      onDamaged(this.#damaged.size)
    }
  }

  async #readOn({ ledgerId, tenant, seq, hash }: LedgerCopy): Promise<void> {
    const place = this.#places.get(ledgerId) ?? (await this.#begin(ledgerId, seq))
    let { position } = place
    while (!this.#isClosed) {
      const from = this.#places.get(ledgerId) ?? place
      if (from.seq >= seq) {
        if (from.seq === seq && from.hash !== null && from.hash !== hash) throw replaced(seq)
        return
      }
      const chunks = await this.#options.copies.chunks(ledgerId, position, READ_BYTES)
      if (chunks.length === 0) throw new CopyDamagedError(`records ${from.seq + 1} to ${seq} are missing`)
      for (const chunk of chunks) {
        await this.#take(ledgerId, tenant, chunk)
        position = chunk.position + chunk.bytes
      }
    }
  }

  async #begin(ledgerId: string, seq: number): Promise<Place> {
    const first = Math.max(0, seq - RESTORED_RECORDS)
    const position = (await this.#options.copies.positionOf(ledgerId, first)) ?? 0
    return { seq: -1, hash: null, position }
  }

  async #take(ledgerId: string, tenant: string, chunk: StoredChunk): Promise<void> {
    const before = this.#places.get(ledgerId) ?? null
    const lines = await openChunk(chunk)
    if (before !== null && chunk.first === before.seq + 1 && chunk.prev !== before.hash) throw replaced(before.seq)
    const slices = new Slices()
    for (let start = 0, seq = chunk.first; start < lines.length; seq++) {
      if (slices.isOver) await slices.next()
      const end = lines.indexOf(LF, start)
      const line = lines.subarray(start, end)
      if (before === null || seq > before.seq) this.#see(line, tenant)
      // A copy that was restored can have other chunks of the same records.
      else if (seq === before.seq && !line.includes(`"hash":"${before.hash}"`)) throw replaced(seq)
      start = end + 1
    }
    const { last: seq, hash, position, bytes } = chunk
    if (before === null || seq > before.seq) this.#places.set(ledgerId, { seq, hash, position: position + bytes })
  }

  #see(line: Buffer, tenant: string): void {
    if (line.includes(INTENT)) return
    const value: unknown = JSON.parse(line.toString())
    if (!isObject(value) || !isObject(value.rec) || typeof value.rec.at !== 'string') return
    this.#options.onRecord(value.rec, Date.parse(value.rec.at), tenant)
  }
}

function replaced(seq: number): CopyDamagedError {
  return new CopyDamagedError(`record ${seq} is another one than was read before`)
}
