import { type Clock, reasonOf } from '@plat/core'
import { type AppendHandle, type Files, ReplaceUncertainError, readAll, systemFiles } from './file/files.ts'
import { FIRST_RECOVERY_MS, GroupCommit, LONGEST_RECOVERY_MS } from './group-commit.ts'
import type { Journal, JournalEntry, OpenJournal } from './journal.ts'
import { type JournalLine, readJournalLine, writeJournalLine } from './journal-line.ts'
import { lockPath } from './lock.ts'

/** Maximum number of keys in a journal. The owning feature compacts old ones. */
export const MAX_JOURNAL_KEYS = 1_000_000

export interface FileJournalOptions<E> {
  readonly path: string
  readonly clock: Clock
  /** Decodes a stored event. Throws on an unknown event: the journal then refuses to open. */
  decode(event: unknown): E
  /** Default: the system's file system. */
  readonly files?: Files
}

/** The journal cannot be read or written; the message names the file. */
export class JournalError extends Error {}

type TimedEntry<E> = JournalEntry<E> & { readonly at: number }

/**
 * Opens the journal at `path`, a file with a single writer, and creates it if missing. A torn last line was never acknowledged and is cut off;
 * damage before it is refused. After a failed write the journal is `poisoned`, and its features deny, until the file was reopened, read up to the
 * last acknowledged event and truncated there; this is retried with exponential backoff.
 */
export async function openFileJournal<E>(options: FileJournalOptions<E>): Promise<OpenJournal<E>> {
  const unlock = lockPath(options.path)
  try {
    return new Opened(options, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}

class Opened<E> implements OpenJournal<E> {
  readonly #options: FileJournalOptions<E>
  readonly #files: Files
  readonly #unlock: () => void
  #versions = new Map<string, number>()
  readonly #followers = new Set<(entries: readonly JournalEntry<E>[]) => void>()
  #handle: AppendHandle
  #commit: GroupCommit
  /** Number of the last event, durable or pending. */
  #seq = 0
  /** Settles when the last append is durable or has failed. */
  #lastAppend: Promise<unknown> = Promise.resolve()
  #health: Journal<E>['health'] = 'ok'
  #closed = false
  /** Number of bytes that recovery keeps; null for the whole file, when a compaction may have replaced it. */
  #recoverySize: number | null = 0
  #recoveryMs = FIRST_RECOVERY_MS
  #cancelRecovery: (() => void) | null = null

  constructor(options: FileJournalOptions<E>, unlock: () => void) {
    this.#options = options
    this.#files = options.files ?? systemFiles
    this.#unlock = unlock
    this.#handle = this.#files.openAppend(options.path)
    try {
      this.#load(this.#handle, null)
      this.#commit = this.#commitOn(this.#handle)
    } catch (error) {
      this.#handle.close()
      throw error
    }
  }

  get health(): Journal<E>['health'] {
    return this.#health
  }

  append(key: string, events: readonly E[], onlyIf?: number): Promise<number | 'conflict'> {
    if (this.#closed || this.#health !== 'ok' || this.#commit.full)
      return Promise.reject(this.#fault('cannot be written'))
    const version = this.#versions.get(key) ?? 0
    // Resolves after followers received the earlier events: a caller that retries at once would otherwise find nothing new, and a loop of such
    // retries would starve the write.
    if (onlyIf !== undefined && onlyIf !== version) return this.#lastAppend.then(() => 'conflict')
    if (events.length === 0) return Promise.resolve(version)
    if (version === 0 && this.#versions.size >= MAX_JOURNAL_KEYS)
      return Promise.reject(this.#fault(`holds ${MAX_JOURNAL_KEYS} keys`))
    const line = {
      seq: this.#seq + 1,
      version: version + 1,
      at: this.#options.clock.now(),
      key,
      snapshot: false,
      events,
    }
    const after = version + events.length
    this.#seq += events.length
    this.#versions.set(key, after)
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const durable = () => {
      const entries = entriesOf(line, events)
      for (const deliver of this.#followers) deliver(entries)
      resolve(after)
    }
    this.#lastAppend = promise.catch(() => {})
    this.#commit.addText(writeJournalLine(line), { durable, failed: (fault) => reject(this.#fault(fault.message)) })
    return promise
  }

  /** Yields the durable events after number `after`. A compacted journal begins with its snapshot. */
  async *read(after: number): AsyncGenerator<TimedEntry<E>> {
    for (const line of this.#durableLines()) {
      const events = line.events.map((event) => this.#options.decode(event))
      for (const entry of entriesOf(line, events)) if (entry.seq > after) yield { ...entry, at: line.at }
    }
  }

  async follow(after: number, apply: (entry: JournalEntry<E>) => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const stopped = Promise.withResolvers<void>()
    // Following starts before reading, in the same turn of the event loop, so no event is missed between.
    const deliver = (entries: readonly JournalEntry<E>[]) => {
      for (const entry of entries) apply(entry)
    }
    for (const line of this.#durableLines()) {
      const events = line.events.map((event) => this.#options.decode(event))
      deliver(entriesOf(line, events).filter(({ seq }) => seq > after))
    }
    this.#followers.add(deliver)
    signal.addEventListener('abort', () => stopped.resolve(), { once: true })
    await stopped.promise
    this.#followers.delete(deliver)
  }

  async compact(upTo: number, snapshot: readonly { key: string; version: number; event: E }[]): Promise<void> {
    while (!this.#commit.idle) await this.#commit.flush()
    if (this.#closed || this.#health !== 'ok') throw this.#fault('cannot be written')
    if (upTo > this.#seq) throw this.#fault(`ends at event ${this.#seq}, before ${upTo}`)
    const at = this.#options.clock.now()
    const lines = snapshot.map(({ key, version, event }) =>
      writeJournalLine({ seq: upTo, version, at, key, snapshot: true, events: [event] }),
    )
    for (const line of this.#durableLines()) for (const later of linesAfter(line, upTo)) lines.push(later)
    this.#swap(Buffer.from(lines.join('')))
    this.#seq = Math.max(this.#seq, upTo)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#cancelRecovery?.()
    await this.#commit.flush()
    this.#handle.close()
    this.#unlock()
  }

  /** Replaces the file. The old handle is used until the new one is ready. */
  #swap(bytes: Buffer): void {
    let handle: AppendHandle
    try {
      handle = this.#files.rewrite(this.#options.path, bytes)
    } catch (error) {
      // Either file contains everything acknowledged, but the old handle may belong to an unlinked file.
      if (error instanceof ReplaceUncertainError) this.#poison(null)
      throw this.#fault(`could not be compacted: ${reasonOf(error)}`)
    }
    try {
      this.#adopt(handle, bytes.length)
    } catch (error) {
      handle.close()
      this.#poison(null)
      throw this.#fault(`could not be read after it was compacted: ${reasonOf(error)}`)
    }
  }

  /**
   * Switches to another handle of the file, whose first `size` bytes are valid, and closes the old one. Throws without a change when the file cannot
   * be read.
   */
  #adopt(handle: AppendHandle, size: number | null): void {
    this.#load(handle, size)
    const commit = this.#commitOn(handle)
    this.#handle.close()
    this.#handle = handle
    this.#commit = commit
  }

  #commitOn(handle: AppendHandle): GroupCommit {
    const commit = new GroupCommit({
      handle,
      clock: this.#options.clock,
      onFault: () => this.#poison(commit.durableSize),
    })
    return commit
  }

  /** Discards the handle and schedules recovery, which cuts off the failed write: it was not acknowledged. */
  #poison(recoverySize: number | null): void {
    this.#health = 'poisoned'
    this.#recoverySize = recoverySize
    this.#handle.close()
    this.#recoverLater()
  }

  #recoverLater(): void {
    if (this.#closed) return
    this.#cancelRecovery = this.#options.clock.after(this.#recoveryMs, () => this.#recover())
    this.#recoveryMs = Math.min(this.#recoveryMs * 2, LONGEST_RECOVERY_MS)
  }

  #recover(): void {
    let handle: AppendHandle | null = null
    try {
      handle = this.#files.openAppend(this.#options.path)
      this.#adopt(handle, this.#recoverySize)
      this.#health = 'ok'
      this.#recoveryMs = FIRST_RECOVERY_MS
    } catch {
      handle?.close()
      this.#recoverLater()
    }
  }

  /**
   * Reads the file once: versions, last number, and that every event is known. Truncates to `size` bytes, or, with null, after the last intact line.
   * Throws without a change when the file is damaged or shorter.
   */
  #load(handle: AppendHandle, size: number | null): void {
    const versions = new Map<string, number>()
    let seq = 0
    let good = 0
    for (const line of this.#lines(readAll(handle, size ?? handle.size()))) {
      for (const event of line.events) this.#options.decode(event)
      seq = line.snapshot ? Math.max(seq, line.seq) : line.seq + line.events.length - 1
      versions.set(line.key, line.version + line.events.length - 1)
      good += line.bytes
    }
    if (size !== null && good !== size) throw this.#fault(`no longer holds the ${size} bytes that were acknowledged`)
    if (good < handle.size()) handle.truncate(good)
    this.#versions = versions
    // Numbers never decrease within a process, even when a compaction left no event.
    this.#seq = Math.max(this.#seq, seq)
  }

  #durableLines(): Generator<JournalLine & { readonly bytes: number }> {
    const whole = Buffer.from(this.#files.readWhole(this.#options.path) ?? [])
    return this.#lines(whole.subarray(0, this.#commit.durableSize))
  }

  /** Throws on a damaged line, except the torn last one. */
  *#lines(bytes: Buffer): Generator<JournalLine & { readonly bytes: number }> {
    let start = 0
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
      const line = readJournalLine(bytes.toString('utf8', start, end))
      if (line === null)
        throw this.#fault(`is damaged at byte ${start}; restore it from a copy, or move it away to begin anew`)
      yield { ...line, bytes: end + 1 - start }
      start = end + 1
    }
  }

  #fault(what: string): JournalError {
    return new JournalError(`journal ${this.#options.path} ${what}`)
  }
}

/** Returns the entries of a line: each event has its own number and version; all events of a snapshot share one number. */
function entriesOf<E>(line: Omit<JournalLine, 'events'>, events: readonly E[]): JournalEntry<E>[] {
  const step = line.snapshot ? 0 : 1
  return events.map((event, index) => ({
    seq: line.seq + index * step,
    key: line.key,
    version: line.version + index,
    event,
  }))
}

/** Returns the part of a line that is newer than a snapshot up to event `upTo`. */
function linesAfter(line: JournalLine, upTo: number): string[] {
  const old = line.snapshot ? line.events.length : Math.min(line.events.length, Math.max(0, upTo - line.seq + 1))
  if (old === line.events.length) return []
  return [
    writeJournalLine({ ...line, seq: line.seq + old, version: line.version + old, events: line.events.slice(old) }),
  ]
}
