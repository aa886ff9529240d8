import type { Clock } from '@plat/core'
import { rfc3339Micros } from '@plat/core'
import {
  type AppendHandle,
  type AppendTarget,
  type Committed,
  FIRST_RECOVERY_MS,
  type Files,
  GroupCommit,
  LONGEST_RECOVERY_MS,
  type Waiter,
} from '@plat/state'
import { type Head, lineRoom, sealLine, ZERO_HASH } from '../format.ts'
import type { Ledger, OpenIntent, Rec, RecordWaiter } from '../types.ts'
import { encodeRecord, type Stamp } from './encode.ts'
import type { HeadKeeper } from './head-file.ts'
import type { ResumeKeeper } from './resume-point.ts'
import type { OpenIntents } from './sealing/open-intents.ts'
import type { FileStart, Sealer } from './sealing/sealer.ts'
import { WrittenFiles } from './written-files.ts'

/** Metrics callbacks of a ledger. */
export interface LedgerMeter {
  /** Called after a group commit. `headSeq` is the last durable record. */
  committed(commit: Committed, headSeq: number): void
  /** Called for a record that could not be made durable, or was refused while none can be. */
  missed(): void
  /** Called after a failed durable write; `retryMs` until the ledger is reopened. */
  poisoned(reason: string, retryMs: number): void
  /** Called when the ledger works again; a `gap` record states how many records are missing. */
  recovered(unrecorded: number): void
}

/** The record could not be made durable: it was not acknowledged. */
export class LedgerUnavailableError extends Error {}

export interface FileLedgerOptions {
  readonly path: string
  readonly ledgerId: string
  readonly tenant: string
  readonly replica: string
  readonly clock: Clock
  readonly files: Files
  readonly meter: LedgerMeter
  readonly handle: AppendHandle
  /** Last record of the ledger; null for an empty one. */
  readonly head: Head | null
  readonly start: FileStart
  readonly intents: OpenIntents
  /** Part of the active file that was not read at the start; null when there is none. */
  readonly unread: UnreadBeginning | null
  /** Called for each durable record that is neither an intent nor an outcome. */
  readonly onDurable?: (rec: Rec, place: Head) => void
  /** Called when a segment was sealed. */
  readonly onSealed?: () => void
  /** Releases the writer's lock. */
  readonly unlock: () => void
}

/** The beginning of the active file, up to the record where a start began to read. */
export interface UnreadBeginning {
  readonly bytes: number
  /** Its last record, as the next one states it. */
  readonly head: Head
}

/**
 * The single writer of a chain. `append` assigns the record its place in the chain at once and resolves when a group commit has made it durable.
 * After a failed write the handle is not used again: pending records are refused, the file is reopened, truncated to the acknowledged records and
 * checked, and a `gap` record states how many records are missing.
 *
 * When the active file is due, a `segment` record ends it, and later records wait for the next file, which exists once that record is durable and the
 * file has its new name.
 */
export class FileLedger implements Ledger {
  readonly #path: string
  readonly #options: FileLedgerOptions
  readonly #clock: Clock
  readonly #meter: LedgerMeter
  readonly #intents: OpenIntents
  readonly #files: WrittenFiles
  #sealer: Sealer | null = null
  #resume: ResumeKeeper | null = null
  /** Changes with each failure: one that is reported for an abandoned commit is not another one. */
  #attempt = 0
  /** Last record with a place in the chain. */
  #last: Head | null
  /** Last durable record. */
  #durable: Head | null
  #health: Ledger['health'] = 'ok'
  #stampedAt = Number.NaN
  #stamp: Stamp
  /** Number of records refused since the chain last had a place for them. */
  #unrecorded = 0
  #fault: { readonly reason: string; readonly since: string } | null = null
  #recoveryMs = FIRST_RECOVERY_MS
  #cancelRecovery: (() => void) | null = null
  #closed = false
  #keeper: HeadKeeper | null = null

  constructor(options: FileLedgerOptions) {
    this.#path = options.path
    this.#options = options
    this.#clock = options.clock
    this.#meter = options.meter
    this.#stamp = { at: '', tenant: options.tenant, replica: options.replica }
    this.#last = options.head
    this.#durable = options.head
    this.#intents = options.intents
    this.#files = new WrittenFiles({ ...options, commitOn: (target) => this.#commitOn(target) })
  }

  get ledgerId(): string {
    return this.#options.ledgerId
  }

  get health(): Ledger['health'] {
    return this.#health
  }

  head(): Head {
    if (this.#durable === null) throw new LedgerUnavailableError(`${this.#path}: no record yet`)
    return this.#durable
  }

  /** Last record with a place in the chain; it may not be durable yet. */
  get placed(): Head {
    return this.#last ?? this.head()
  }

  /** Stores the head outside the ledger from now on; called once. */
  keepHead(keeper: HeadKeeper): void {
    this.#keeper = keeper
  }

  /** Part of the active file that was not read at the start, to be verified later; null when there is none. */
  get unread(): UnreadBeginning | null {
    return this.#options.unread
  }

  /** Seals the active file when it is due from now on, and saves resume points; called once, before the first record. */
  sealWith(sealer: Sealer, resume: ResumeKeeper | null): void {
    this.#sealer = sealer
    this.#resume = resume
    this.#beginFile()
  }

  append(rec: Rec): Promise<Head> {
    return new Promise((resolve, reject) => this.enter(rec, { durable: resolve, failed: reject }))
  }

  enter(rec: Rec, waiter: RecordWaiter): void {
    if (this.#closed) waiter.failed(new LedgerUnavailableError(`${this.#path} is closed`))
    else if (this.#health === 'poisoned') this.#refuse(`the last write failed: ${this.#fault?.reason}`, waiter)
    else if (this.#files.commit.full) this.#refuse('the disk cannot keep up', waiter)
    else this.#place(rec, waiter)
  }

  /** Commits pending records, including lingering outcomes. */
  flush(): Promise<void> {
    return this.#files.flush()
  }

  /** Commits pending records, then closes. Later appends are refused. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#cancelRecovery?.()
    this.#sealer?.close()
    await this.flush()
    if (this.#durable !== null) await this.#keeper?.close()
    await this.#resume?.close()
    this.#files.close()
    this.#options.unlock()
  }

  #beginFile(): void {
    const { start, durableSize } = this.#files
    this.#sealer?.begin(start, durableSize, this.#files.lastIn(this.#durable))
    this.#resume?.begin(start.first, durableSize)
  }

  #place(rec: Rec, waiter: RecordWaiter): void {
    const last = this.#last
    const seq = last === null ? 0 : last.seq + 1
    let text: string
    try {
      text = encodeRecord(rec, this.#stampNow())
    } catch (error) {
      waiter.failed(error)
      return
    }
    const { commit } = this.#files
    const { buffer, length } = commit.room(lineRoom(text))
    const { hash, end } = sealLine({ buffer, at: length, prev: last === null ? ZERO_HASH : last.hash }, text, seq)
    const head = { seq, hash }
    this.#last = head
    const pending = new Pending(this, head, rec, waiter)
    pending.closed = this.#intents.placed(rec, seq, waiter.intent)
    // No caller waits for an outcome, so it may share the commit of the next intent.
    commit.add(end - length, pending, rec.kind !== 'outcome')
    this.#resume?.placed(head, end - length)
    this.#sealer?.placed(head, buffer, { start: length, end: end - 1 })
  }

  /** Ends the active file with its `segment` record. Later records go to the next file. */
  seal(): void {
    const sealer = this.#sealer
    if (sealer === null || this.#health !== 'ok' || this.#files.isSealing || this.#closed) return
    const failed = () => this.uncount()
    const start = sealer.end((rec) => {
      const durable = rec.kind === 'segment' ? () => this.#changeFile() : () => {}
      this.#place(rec, { durable, failed })
    })
    if (start === null) return
    sealer.begin(start, 0, null)
    this.#resume?.begin(start.first, 0)
    this.#files.divert(start)
  }

  /** Called when the `segment` record is durable. */
  #changeFile(): void {
    try {
      this.#files.change(this.head())
    } catch (error) {
      this.#poison(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Many records share a millisecond: its text is cached. */
  #stampNow(): Stamp {
    const now = this.#clock.now()
    if (now !== this.#stampedAt) {
      this.#stampedAt = now
      // Upper case already: this flattens the string (see `encodeRecord`).
      this.#stamp = { ...this.#stamp, at: rfc3339Micros(now).toUpperCase() }
    }
    return this.#stamp
  }

  #refuse(why: string, waiter: RecordWaiter): void {
    this.missed()
    waiter.failed(new LedgerUnavailableError(`${this.#path}: ${why}`))
  }

  #commitOn(handle: AppendTarget): GroupCommit {
    const attempt = this.#attempt
    return new GroupCommit({
      handle,
      clock: this.#clock,
      onCommit: (commit, last) => {
        if (last instanceof Pending) {
          this.#durable = last.head
          this.#sealer?.durable(last.head)
          this.#resume?.durable(last.head)
        }
        this.#keeper?.committed()
        this.#meter.committed(commit, this.#durable?.seq ?? 0)
      },
      onFault: (fault) => {
        if (attempt === this.#attempt) this.#poison(fault)
      },
    })
  }

  /** Closes the handle for good and schedules recovery, which cuts off the failed write: its records were not acknowledged. */
  #poison(fault: Error): void {
    this.#attempt++
    this.#health = 'poisoned'
    const code = 'code' in fault && typeof fault.code === 'string' ? fault.code : fault.message
    this.#fault ??= { reason: code, since: rfc3339Micros(this.#clock.now()) }
    this.#files.fail(fault)
    this.#meter.poisoned(code, this.#recoveryMs)
    if (this.#closed) return
    this.#cancelRecovery = this.#clock.after(this.#recoveryMs, () => this.#recover())
    this.#recoveryMs = Math.min(this.#recoveryMs * 2, LONGEST_RECOVERY_MS)
  }

  /** Reopens the file, cuts off unacknowledged bytes, checks the last record of the chain, and records the gap. */
  #recover(): void {
    try {
      this.#files.reopen(this.#durable)
    } catch (error) {
      this.#poison(error instanceof Error ? error : new Error(String(error)))
      return
    }
    this.#health = 'recovering'
    this.#last = this.#durable
    this.#beginFile()
    this.#recordGap()
  }

  #recordGap(): void {
    const count = this.#unrecorded
    this.#unrecorded = 0
    const gap: Rec = { kind: 'gap', count, reason: this.#fault?.reason, since: this.#fault?.since }
    this.#place(gap, {
      durable: () => {
        this.#health = 'ok'
        this.#fault = null
        this.#recoveryMs = FIRST_RECOVERY_MS
        this.#meter.recovered(count)
      },
      failed: () => {
        // The gap record itself is not missing data.
        this.#unrecorded += count
        this.uncount()
      },
    })
  }

  /** Counts a record without a place in the chain. */
  missed(): void {
    this.#unrecorded++
    this.#meter.missed()
  }

  /** Called for a record that is durable. */
  durable(rec: Rec, place: Head): void {
    if (rec.kind !== 'intent' && rec.kind !== 'outcome') this.#options.onDurable?.(rec, place)
  }

  /** The record that failed was one of the ledger itself: nothing is missing. */
  uncount(): void {
    this.#unrecorded--
  }

  /** Called for a placed record that could not be made durable. `closed`: the number of the intent that it closed, or -1. */
  lost(rec: Rec, intent: OpenIntent | undefined, closed: number): void {
    this.#intents.failed(rec, intent, closed, this.#durable?.seq ?? -1)
    this.missed()
  }
}

/** One append that waits for its commit. */
class Pending implements Waiter {
  readonly head: Head
  /** Number of the intent that it closes, or -1. */
  closed = -1
  readonly #ledger: FileLedger
  readonly #rec: Rec
  readonly #waiter: RecordWaiter

  constructor(ledger: FileLedger, head: Head, rec: Rec, waiter: RecordWaiter) {
    this.head = head
    this.#ledger = ledger
    this.#rec = rec
    this.#waiter = waiter
  }

  durable(): void {
    this.#ledger.durable(this.#rec, this.head)
    this.#waiter.durable(this.head)
  }

  failed(fault: Error): void {
    this.#ledger.lost(this.#rec, this.#waiter.intent, this.closed)
    this.#waiter.failed(new LedgerUnavailableError(`the record could not be made durable: ${fault.message}`))
  }
}
