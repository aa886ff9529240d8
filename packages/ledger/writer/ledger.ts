import type { Clock } from '@plat/core'
import { rfc3339Micros } from '@plat/core'
import {
  type AppendHandle,
  type Committed,
  FIRST_RECOVERY_MS,
  type Files,
  GroupCommit,
  LONGEST_RECOVERY_MS,
  readAll,
  type Waiter,
} from '@plat/state'
import { type Head, lineRoom, MAX_LINE_BYTES, readRawLine, sealLine, ZERO_HASH } from '../format.ts'
import type { Ledger, Rec, RecordWaiter } from '../types.ts'
import { encodeRecord, type Stamp } from './encode.ts'
import type { HeadKeeper } from './head-file.ts'

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
  readonly tenant: string
  readonly replica: string
  readonly clock: Clock
  readonly files: Files
  readonly meter: LedgerMeter
  readonly handle: AppendHandle
  /** Last record of the file; null for an empty file. */
  readonly head: Head | null
  /** Releases the writer's lock. */
  readonly unlock: () => void
}

/**
 * The single writer of a chain. `append` assigns the record its place in the chain at once and resolves when a group commit has made it durable.
 * After a failed write the handle is not used again: pending records are refused, the file is reopened, truncated to the acknowledged records and
 * checked, and a `gap` record states how many records are missing.
 */
export class FileLedger implements Ledger {
  readonly #path: string
  readonly #options: FileLedgerOptions
  readonly #clock: Clock
  readonly #meter: LedgerMeter
  #handle: AppendHandle
  #commit: GroupCommit
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
    this.#handle = options.handle
    this.#commit = this.#commitOn(options.handle)
  }

  get health(): Ledger['health'] {
    return this.#health
  }

  /** Returns the last durable record. */
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

  append(rec: Rec): Promise<Head> {
    return new Promise((resolve, reject) => this.enter(rec, { durable: resolve, failed: reject }))
  }

  enter(rec: Rec, waiter: RecordWaiter): void {
    if (this.#closed) waiter.failed(new LedgerUnavailableError(`${this.#path} is closed`))
    else if (this.#health === 'poisoned') this.#refuse(`the last write failed: ${this.#fault?.reason}`, waiter)
    else if (this.#commit.full) this.#refuse('the disk cannot keep up', waiter)
    else this.#place(rec, waiter)
  }

  /** Commits pending records, including lingering outcomes. */
  flush(): Promise<void> {
    return this.#commit.flush()
  }

  /** Commits pending records, then closes. Later appends are refused. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#cancelRecovery?.()
    await this.#commit.flush()
    if (this.#durable !== null) await this.#keeper?.close()
    this.#handle.close()
    this.#options.unlock()
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
    const { buffer, length } = this.#commit.room(lineRoom(text))
    const { hash, end } = sealLine({ buffer, at: length, prev: last === null ? ZERO_HASH : last.hash }, text, seq)
    const head = { seq, hash }
    this.#last = head
    // No caller waits for an outcome, so it may share the commit of the next intent.
    this.#commit.add(end - length, new Pending(this, head, waiter), rec.kind !== 'outcome')
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

  #commitOn(handle: AppendHandle): GroupCommit {
    return new GroupCommit({
      handle,
      clock: this.#clock,
      onCommit: (commit, last) => {
        if (last instanceof Pending) this.#durable = last.head
        this.#keeper?.committed()
        this.#meter.committed(commit, this.#durable?.seq ?? 0)
      },
      onFault: (fault) => this.#poison(fault),
    })
  }

  /** Closes the handle for good and schedules recovery, which cuts off the failed write: its records were not acknowledged. */
  #poison(fault: Error): void {
    this.#health = 'poisoned'
    const code = 'code' in fault && typeof fault.code === 'string' ? fault.code : fault.message
    this.#fault ??= { reason: code, since: rfc3339Micros(this.#clock.now()) }
    this.#handle.close()
    this.#meter.poisoned(code, this.#recoveryMs)
    if (this.#closed) return
    this.#cancelRecovery = this.#clock.after(this.#recoveryMs, () => this.#recover())
    this.#recoveryMs = Math.min(this.#recoveryMs * 2, LONGEST_RECOVERY_MS)
  }

  /** Reopens the file, cuts off unacknowledged bytes, checks the last record of the chain, and records the gap. */
  #recover(): void {
    const durableSize = this.#commit.durableSize
    try {
      const handle = this.#options.files.openAppend(this.#path)
      // The old handle is closed already; a failure from here on closes this one.
      this.#handle = handle
      checkLastLine(handle, durableSize, this.#durable)
      handle.truncate(durableSize)
      this.#commit = this.#commitOn(handle)
    } catch (error) {
      this.#poison(error instanceof Error ? error : new Error(String(error)))
      return
    }
    this.#health = 'recovering'
    this.#last = this.#durable
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
        // Its refusal was counted like that of any record, but the gap record itself is not missing data.
        this.#unrecorded += count - 1
      },
    })
  }

  /** Counts a record without a place in the chain. */
  missed(): void {
    this.#unrecorded++
    this.#meter.missed()
  }
}

/** One append that waits for its commit. */
class Pending implements Waiter {
  readonly head: Head
  readonly #ledger: FileLedger
  readonly #waiter: RecordWaiter

  constructor(ledger: FileLedger, head: Head, waiter: RecordWaiter) {
    this.head = head
    this.#ledger = ledger
    this.#waiter = waiter
  }

  durable(): void {
    this.#waiter.durable(this.head)
  }

  failed(fault: Error): void {
    this.#ledger.missed()
    this.#waiter.failed(new LedgerUnavailableError(`the record could not be made durable: ${fault.message}`))
  }
}

/** Throws unless the file's first `size` bytes end with record `head`. */
function checkLastLine(handle: AppendHandle, size: number, head: Head | null): void {
  if (handle.size() < size) throw new Error(`the file is shorter than the ${size} bytes that were acknowledged`)
  if (head === null) return
  const span = Math.min(size, MAX_LINE_BYTES + 2)
  const bytes = readAll(handle, size, size - span)
  const start = bytes.lastIndexOf(0x0a, span - 2) + 1
  const line = readRawLine(bytes, start, span - 1)
  if (typeof line === 'string' || line.hash !== head.hash) {
    throw new Error(`the last acknowledged record, ${head.seq}, is no longer in the file`)
  }
}
