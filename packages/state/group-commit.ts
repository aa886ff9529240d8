import type { Clock } from '@plat/core'
import type { AppendHandle } from './files.ts'

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

interface Entry {
  readonly text: string
  readonly bytes: number
  readonly waiter: Waiter
}

/**
 * Natural group commit: one write and one fdatasync are under way, and all that arrives meanwhile is the next batch. No entry is
 * acknowledged before the fdatasync that covers it came back well.
 */
export class GroupCommit {
  readonly #handle: AppendHandle
  readonly #clock: Clock
  readonly #onCommit: GroupCommitOptions['onCommit']
  readonly #onFault: GroupCommitOptions['onFault']
  #waiting: Entry[] = []
  #waitingBytes = 0
  #hurried = false
  #lingering = false
  #state: 'idle' | 'scheduled' | 'committing' = 'idle'
  #fault: Error | null = null
  #durableSize: number
  #idle: (() => void)[] = []

  constructor(options: GroupCommitOptions) {
    this.#handle = options.handle
    this.#clock = options.clock
    this.#onCommit = options.onCommit
    this.#onFault = options.onFault
    this.#durableSize = options.handle.size()
  }

  /** Bytes of the file up to the last acknowledged entry. */
  get durableSize(): number {
    return this.#durableSize
  }

  /** The disk cannot keep up, or is stalled: ask before each `add`, and refuse the entry. */
  get full(): boolean {
    return this.#waiting.length >= BACKLOG_RECORDS || this.#waitingBytes >= BACKLOG_BYTES
  }

  /** Nothing waits and nothing is under way. */
  get idle(): boolean {
    return this.#state === 'idle' && this.#waiting.length === 0
  }

  /** Queues `text` (with its line end). `hurried`: somebody waits for it; otherwise it may linger for company. */
  add(text: string, waiter: Waiter, hurried: boolean): void {
    if (this.#fault !== null) {
      waiter.failed(this.#fault)
      return
    }
    const bytes = Buffer.byteLength(text)
    this.#waiting.push({ text, bytes, waiter })
    this.#waitingBytes += bytes
    if (hurried) this.#hurried = true
    if (this.#state === 'idle') this.#next()
  }

  /** Resolves when nothing waits any more, well or not. */
  flush(): Promise<void> {
    this.#hurried = true
    if (this.#state === 'idle') this.#next()
    if (this.#state === 'idle') return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Starts a commit in this turn of the event loop, so that what arrives in the same turn shares it. */
  #next(): void {
    if (this.#waiting.length === 0) {
      this.#rest()
    } else if (this.#hurried || this.#waiting.length >= LINGER_RECORDS) {
      this.#state = 'scheduled'
      setImmediate(this.#commit)
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

  readonly #commit = (): void => {
    this.#state = 'committing'
    const started = this.#clock.monotonic()
    const batch = this.#takeBatch()
    let text = ''
    for (const entry of batch) text += entry.text
    const bytes = Buffer.from(text)
    try {
      const written = this.#handle.write(bytes)
      if (written !== bytes.length) throw new Error(`short write: ${written} of ${bytes.length} bytes`)
    } catch (error) {
      this.#poison(asError(error), batch)
      return
    }
    this.#sync((fault) => {
      if (fault !== null) {
        this.#poison(fault, batch)
        return
      }
      this.#durableSize += bytes.length
      const last = batch.at(-1)
      const seconds = (this.#clock.monotonic() - started) / 1000
      if (last !== undefined) this.#onCommit?.({ records: batch.length, bytes: bytes.length, seconds }, last.waiter)
      for (const entry of batch) entry.waiter.durable()
      this.#next()
    })
  }

  #sync(done: (fault: Error | null) => void): void {
    try {
      this.#handle.sync(done)
    } catch (error) {
      done(asError(error))
    }
  }

  #takeBatch(): Entry[] {
    let count = 0
    let bytes = 0
    for (const entry of this.#waiting) {
      if (count === BATCH_RECORDS || (count > 0 && bytes + entry.bytes > BATCH_BYTES)) break
      count++
      bytes += entry.bytes
    }
    this.#waitingBytes -= bytes
    if (count === this.#waiting.length) {
      const all = this.#waiting
      this.#waiting = []
      this.#hurried = false
      return all
    }
    return this.#waiting.splice(0, count)
  }

  #poison(fault: Error, batch: readonly Entry[]): void {
    this.#fault = fault
    const lost = [...batch, ...this.#waiting]
    this.#waiting = []
    this.#waitingBytes = 0
    this.#onFault?.(fault)
    for (const entry of lost) entry.waiter.failed(fault)
    this.#rest()
  }
}

/** A thrown value as an `Error`. */
function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
