import type { Clock } from '@plat/core'
import type { AppendHandle } from './file/files.ts'

/** Records of one commit. */
export const BATCH_RECORDS = 1024
/** Bytes of one commit; a single larger entry is a commit of its own. */
export const BATCH_BYTES = 1024 * 1024
/** Entries that may wait for a commit; beyond it the disk has stalled, and `full` says so. */
export const BACKLOG_RECORDS = 65_536
/** Bytes that may wait for a commit. */
export const BACKLOG_BYTES = 64 * 1024 * 1024
/** How long entries that nobody waits for look for company, in milliseconds. */
export const LINGER_MS = 2
/** So many unhurried entries go without lingering. */
const LINGER_RECORDS = 64
/** Entries often come in a few turns of the event loop, one behind the other: so many turns are waited for more at most. */
export const GATHER_TURNS = 8
/** A crowd of fewer is not waited for: when it is gone, a lone entry would pay for it. */
const FEW_RECORDS = 8
/** Fewer callers than this are not worth dividing in two: each commit costs about what it costs to make fifty entries. */
const CROWD_RECORDS = 128
/** About what one entry costs, in milliseconds: encode, hash, tell its caller, and write its bytes. */
const ENTRY_MS = 0.008
/** Bytes of UTF-8 for each UTF-16 unit at most. */
const UNIT_BYTES = 3
/** First wait before a file whose write failed is opened again, in milliseconds; it doubles up to the longest. */
export const FIRST_RECOVERY_MS = 250
export const LONGEST_RECOVERY_MS = 30_000
/** Buffers that are kept for the next batches. */
const SPARE_BUFFERS = 2

/** One entry that waits to become durable: exactly one of the two is called, once. */
export interface Waiter {
  durable(): void
  failed(fault: Error): void
}

/** What a commit cost, for metrics. */
export interface Committed {
  readonly records: number
  readonly bytes: number
  readonly seconds: number
}

export interface GroupCommitOptions {
  readonly handle: AppendHandle
  readonly clock: Clock
  /** Called before the waiters are told; `last` is the last of them. */
  readonly onCommit?: (commit: Committed, last: Waiter) => void
  /** Called once, before the waiters are told. The handle is poisoned: nothing is ever retried on it. */
  readonly onFault?: (fault: Error) => void
}

/** Entries of one commit, in a buffer that they are written into as they come. */
interface Batch {
  readonly buffer: Buffer
  /** Bytes of the buffer that are taken. */
  length: number
  readonly waiters: Waiter[]
}

/**
 * Natural group commit: one durable write is under way, and all that arrives meanwhile is the next batch. No entry is acknowledged
 * before the write that holds it came back well.
 *
 * When many callers append again as soon as they are told, and the disk is quicker than they are, they are kept in two halves:
 * one half's entries are made while those of the other go to disk. On a slower disk everybody shares one commit.
 */
export class GroupCommit {
  readonly #handle: AppendHandle
  readonly #clock: Clock
  readonly #onCommit: GroupCommitOptions['onCommit']
  readonly #onFault: GroupCommitOptions['onFault']
  #open: Batch
  /** Batches that are full, oldest first. */
  #full: Batch[] = []
  readonly #spare: Buffer[] = []
  #waitingRecords = 0
  #waitingBytes = 0
  #hurried = false
  #lingering = false
  #state: 'idle' | 'scheduled' | 'committing' = 'idle'
  /** Turns that the scheduled commit has been put off, and what waited when the last of them began. */
  #turns = 0
  #gathered = 0
  /** Entries that the last commit told of, and those that waited then: so many may be back for the next one. */
  #crowd = 0
  /** So many waiting entries are a commit before the turn is over. */
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

  /** The disk cannot keep up, or is stalled: ask before each entry, and refuse it. */
  get full(): boolean {
    return this.#waitingRecords >= BACKLOG_RECORDS || this.#waitingBytes >= BACKLOG_BYTES
  }

  /** Nothing waits and nothing is under way. */
  get idle(): boolean {
    return this.#state === 'idle' && this.#waitingRecords === 0
  }

  /** Where an entry of at most `bytes` is to be written: `buffer` from `length` on. `add` takes it, with no other call between them. */
  room(bytes: number): { readonly buffer: Buffer; readonly length: number } {
    const batch = this.#open
    const fits = batch.waiters.length < BATCH_RECORDS && batch.length + bytes <= batch.buffer.length
    if (fits) return batch
    if (batch.waiters.length > 0) this.#full.push(batch)
    this.#open = this.#newBatch(bytes)
    return this.#open
  }

  /** Takes the `bytes` that were written into the room. `hurried`: somebody waits for them; otherwise they may linger for company. */
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

  /** Writes `text` (with its line end) into the room and takes it, hurried. */
  addText(text: string, waiter: Waiter): void {
    const { buffer, length } = this.room(text.length * UNIT_BYTES)
    this.add(buffer.write(text, length), waiter, true)
  }

  /** Resolves when nothing waits any more, well or not. */
  flush(): Promise<void> {
    this.#hurried = true
    if (this.#state === 'idle') this.#next()
    if (this.#state === 'idle') return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /**
   * Starts a commit once as many entries wait as the last commit told, or a few turns of the event loop later; after a commit of few, in the
   * first turn that brings no more. So what comes together shares it.
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
    // Callers of the last commit ask upstreams, most of them alike, and come back one behind the other: their number is waited for.
    const isCrowd = this.#crowd >= FEW_RECORDS
    const isWhole = isCrowd ? this.#waitingRecords >= this.#crowd : this.#waitingRecords === this.#gathered
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
    this.#crowd = records + this.#waitingRecords
    this.#enough = this.#halfOf(this.#crowd, ms)
    // The other half goes to disk while this one is told and comes back.
    const goesOn = this.#waitingRecords >= this.#enough
    if (goesOn) this.#commit()
    for (const waiter of waiters) waiter.durable()
    if (!goesOn) this.#next()
  }

  /** Half of a crowd, where two commits of a half take less time than one of all; else more than ever come. */
  #halfOf(crowd: number, commitMs: number): number {
    const divides = crowd >= CROWD_RECORDS && commitMs < crowd * ENTRY_MS
    return divides ? Math.ceil(crowd / 2) : Number.POSITIVE_INFINITY
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

  /** With room for an entry of `bytes`, however large it is. */
  #newBatch(bytes: number): Batch {
    const buffer =
      bytes > BATCH_BYTES ? Buffer.allocUnsafeSlow(bytes) : (this.#spare.pop() ?? Buffer.allocUnsafeSlow(BATCH_BYTES))
    return { buffer, length: 0, waiters: [] }
  }

  #poison(fault: Error, batch: Batch): void {
    this.#fault = fault
    const lost = [batch, ...this.#full, this.#open].flatMap(({ waiters }) => waiters)
    this.#full = []
    this.#open = this.#newBatch(0)
    this.#waitingRecords = 0
    this.#waitingBytes = 0
    this.#onFault?.(fault)
    for (const waiter of lost) waiter.failed(fault)
    this.#rest()
  }
}
