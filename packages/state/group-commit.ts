import type { Clock } from '@plat/core'

/** Maximum number of records per commit. */
export const BATCH_RECORDS = 1024
/** Maximum bytes per commit; a single larger entry is committed alone. */
export const BATCH_BYTES = 1024 * 1024
/** Maximum number of pending entries; beyond it the disk has stalled, and `full` is true. */
export const BACKLOG_RECORDS = 65_536
/** Maximum bytes of pending entries. */
export const BACKLOG_BYTES = 64 * 1024 * 1024
/** How long unhurried entries wait for others, in milliseconds. */
export const LINGER_MS = 2
/** Number of unhurried entries that are committed without lingering. */
const LINGER_RECORDS = 64
/** Entries often arrive in consecutive turns of the event loop: a commit waits for at most this many more turns. */
export const GATHER_TURNS = 8
/** Smaller groups are not waited for: once they end, a lone entry would pay for it. */
const FEW_RECORDS = 8
/** With fewer callers, two halves do not pay: a commit costs about as much as making fifty entries. */
const MANY_RECORDS = 128
/** Approximate cost of one entry, in milliseconds: encode, hash, notify the caller, write. */
const ENTRY_MS = 0.008
/** Maximum UTF-8 bytes per UTF-16 unit. */
const UNIT_BYTES = 3
/** First backoff before a file with a failed write is reopened, in milliseconds; it doubles up to the maximum. */
export const FIRST_RECOVERY_MS = 250
export const LONGEST_RECOVERY_MS = 30_000
/** Number of buffers kept for reuse. */
const SPARE_BUFFERS = 2

/** Callbacks of a pending entry: exactly one is called, once. */
export interface Waiter {
  durable(): void
  failed(fault: Error): void
}

/** Cost of a commit, for metrics. */
export interface Committed {
  readonly records: number
  readonly bytes: number
  readonly seconds: number
}

/** An append-only file, as `AppendHandle` of `files.ts`. */
export interface AppendTarget {
  size(): number
  append(bytes: Uint8Array, done: (fault: Error | null, written: number) => void): void
}

export interface GroupCommitOptions {
  readonly handle: AppendTarget
  readonly clock: Clock
  /** Called before the waiters are notified; `last` is the last of them. */
  readonly onCommit?: (commit: Committed, last: Waiter) => void
  /** Called once, before the waiters are notified. The handle is poisoned and never used again. */
  readonly onFault?: (fault: Error) => void
}

/** Entries of one commit, in the buffer that they were written to. */
interface Batch {
  readonly buffer: Buffer
  /** Number of used bytes in the buffer. */
  length: number
  readonly waiters: Waiter[]
}

/**
 * Group commit: while one durable write is in progress, all arriving entries form the next batch. No entry is acknowledged before its write
 * succeeded.
 *
 * When many callers append again right after the acknowledgement, and the disk is faster than they are, they are kept in two halves: one half makes
 * its entries while those of the other are written. On a slower disk all share one commit.
 */
export class GroupCommit {
  readonly #handle: AppendTarget
  readonly #clock: Clock
  readonly #onCommit: GroupCommitOptions['onCommit']
  readonly #onFault: GroupCommitOptions['onFault']
  #open: Batch
  /** Full batches, oldest first. */
  #full: Batch[] = []
  readonly #spare: Buffer[] = []
  #waitingRecords = 0
  #waitingBytes = 0
  #hurried = false
  #lingering = false
  #state: 'idle' | 'scheduled' | 'committing' = 'idle'
  /** Number of turns by which the scheduled commit was postponed, and the number of pending entries at the start of the last one. */
  #turns = 0
  #gathered = 0
  /** Entries acknowledged by the last commit plus those pending then: as many may be back for the next one. */
  #expected = 0
  /** Number of pending entries that starts a commit before the turn is over. */
  #enough = Number.POSITIVE_INFINITY
  #fault: Error | null = null
  #durableSize: number
  #idle: (() => void)[] = []

  constructor(options: GroupCommitOptions) {
    this.#handle = options.handle
    this.#clock = options.clock
    this.#onCommit = options.onCommit
    this.#onFault = options.onFault
    this.#durableSize = options.handle.size()
    this.#open = this.#newBatch(0)
  }

  /** Bytes of the file up to the last acknowledged entry. */
  get durableSize(): number {
    return this.#durableSize
  }

  /** True when the disk cannot keep up or has stalled. Callers must check before each entry, and refuse it. */
  get full(): boolean {
    return this.#waitingRecords >= BACKLOG_RECORDS || this.#waitingBytes >= BACKLOG_BYTES
  }

  /** True when nothing is pending and no write is in progress. */
  get idle(): boolean {
    return this.#state === 'idle' && this.#waitingRecords === 0
  }

  /** Returns the place to write an entry of at most `bytes`: `buffer` from `length` on. Caller must call `add` before any other method. */
  room(bytes: number): { readonly buffer: Buffer; readonly length: number } {
    const batch = this.#open
    const fits = batch.waiters.length < BATCH_RECORDS && batch.length + bytes <= batch.buffer.length
    if (fits) return batch
    if (batch.waiters.length > 0) this.#full.push(batch)
    this.#open = this.#newBatch(bytes)
    return this.#open
  }

  /** Adds an entry of `bytes` written to the place from `room`. `hurried`: a caller waits for it; other entries may linger. */
  add(bytes: number, waiter: Waiter, hurried: boolean): void {
    if (this.#fault !== null) {
      waiter.failed(this.#fault)
      return
    }
    this.#open.length += bytes
    this.#open.waiters.push(waiter)
    this.#waitingBytes += bytes
    this.#waitingRecords++
    if (hurried) this.#hurried = true
    if (this.#state === 'idle') this.#next()
    else if (this.#state === 'scheduled' && this.#waitingRecords >= this.#enough) this.#commit()
  }

  /** Writes `text` (with its line end) and adds it as a hurried entry. */
  addText(text: string, waiter: Waiter): void {
    const { buffer, length } = this.room(text.length * UNIT_BYTES)
    this.add(buffer.write(text, length), waiter, true)
  }

  /** Resolves when nothing is pending any more, committed or failed. */
  flush(): Promise<void> {
    this.#hurried = true
    if (this.#state === 'idle') this.#next()
    if (this.#state === 'idle') return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /**
   * Starts a commit when as many entries are pending as the last commit acknowledged, or a few turns of the event loop later; after a small commit,
   * in the first turn without a new entry. So entries that arrive together share a commit.
   */
  #next(): void {
    if (this.#waitingRecords === 0) {
      this.#rest()
    } else if (this.#hurried || this.#waitingRecords >= LINGER_RECORDS) {
      this.#state = 'scheduled'
      this.#turns = 0
      this.#gathered = this.#waitingRecords
      setImmediate(this.#turnEnds)
    } else {
      this.#state = 'idle'
      this.#linger()
    }
  }

  #rest(): void {
    this.#state = 'idle'
    this.#hurried = false
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  #linger(): void {
    if (this.#lingering) return
    this.#lingering = true
    this.#clock.after(LINGER_MS, () => {
      this.#lingering = false
      this.#hurried = true
      if (this.#state === 'idle') this.#next()
    })
  }

  readonly #turnEnds = (): void => {
    if (this.#state !== 'scheduled') return
    // Callers of the last commit call similar upstreams and return one after the other: the commit waits for their number.
    const isMany = this.#expected >= FEW_RECORDS
    const isWhole = isMany ? this.#waitingRecords >= this.#expected : this.#waitingRecords === this.#gathered
    if (isWhole || this.#turns === GATHER_TURNS) {
      this.#commit()
      return
    }
    this.#turns++
    this.#gathered = this.#waitingRecords
    setImmediate(this.#turnEnds)
  }

  #commit(): void {
    this.#state = 'committing'
    const started = this.#clock.monotonic()
    const batch = this.#takeBatch()
    this.#write(batch, (fault) => {
      if (fault === null) this.#committed(batch, this.#clock.monotonic() - started)
      else this.#poison(fault, batch)
    })
  }

  #write({ buffer, length }: Batch, done: (fault: Error | null) => void): void {
    try {
      this.#handle.append(buffer.subarray(0, length), (fault, written) => {
        if (fault === null && written !== length) done(new Error(`short write: ${written} of ${length} bytes`))
        else done(fault)
      })
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #committed({ buffer, length, waiters }: Batch, ms: number): void {
    this.#durableSize += length
    if (buffer.length === BATCH_BYTES && this.#spare.length < SPARE_BUFFERS) this.#spare.push(buffer)
    const records = waiters.length
    const last = waiters.at(-1)
    if (last !== undefined) this.#onCommit?.({ records, bytes: length, seconds: ms / 1000 }, last)
    this.#expected = records + this.#waitingRecords
    this.#enough = this.#halfOf(this.#expected, ms)
    // The other half is written while this one is notified and returns.
    const goesOn = this.#waitingRecords >= this.#enough
    if (goesOn) this.#commit()
    for (const waiter of waiters) waiter.durable()
    if (!goesOn) this.#next()
  }

  /** Returns half of the expected entries if two commits of a half take less time than one of all; else a number that is never reached. */
  #halfOf(expected: number, commitMs: number): number {
    const divides = expected >= MANY_RECORDS && commitMs < expected * ENTRY_MS
    return divides ? Math.ceil(expected / 2) : Number.POSITIVE_INFINITY
  }

  #takeBatch(): Batch {
    const batch = this.#full.shift() ?? this.#open
    if (batch === this.#open) {
      this.#open = this.#newBatch(0)
      this.#hurried = false
    }
    this.#waitingBytes -= batch.length
    this.#waitingRecords -= batch.waiters.length
    return batch
  }

  /** Returns a batch with room for an entry of `bytes`, of any size. */
  #newBatch(bytes: number): Batch {
    const buffer =
      bytes > BATCH_BYTES ? Buffer.allocUnsafeSlow(bytes) : (this.#spare.pop() ?? Buffer.allocUnsafeSlow(BATCH_BYTES))
    return { buffer, length: 0, waiters: [] }
  }

  /** Fails all pending and all later entries. Caller must know that no write is in progress. */
  fail(fault: Error): void {
    if (this.#fault === null) this.#poison(fault, null)
  }

  #poison(fault: Error, batch: Batch | null): void {
    this.#fault = fault
    const batches = [...this.#full, this.#open]
    const lost = (batch === null ? batches : [batch, ...batches]).flatMap(({ waiters }) => waiters)
    this.#full = []
    this.#open = this.#newBatch(0)
    this.#waitingRecords = 0
    this.#waitingBytes = 0
    this.#onFault?.(fault)
    for (const waiter of lost) waiter.failed(fault)
    this.#rest()
  }
}
