import type { JournalEntry, OpenJournal } from './journal.ts'

/** Maximum number of events of a journal in memory; a feature that writes more must use a file. */
const MAX_EVENTS = 1_000_000

/** Creates a journal that lasts as long as the process. */
export function createMemoryJournal<E>(now: () => number): OpenJournal<E> {
  return new MemoryJournal(now)
}

class MemoryJournal<E> implements OpenJournal<E> {
  readonly health = 'ok'
  readonly #now: () => number
  readonly #versions = new Map<string, number>()
  readonly #followers = new Set<(entry: JournalEntry<E>) => void>()
  #entries: (JournalEntry<E> & { readonly at: number })[] = []
  #seq = 0

  constructor(now: () => number) {
    this.#now = now
  }

  async append(key: string, events: readonly E[], onlyIf?: number): Promise<number | 'conflict'> {
    const version = this.#versions.get(key) ?? 0
    if (onlyIf !== undefined && onlyIf !== version) return 'conflict'
    if (this.#entries.length + events.length > MAX_EVENTS)
      throw new Error(`a journal in memory holds ${MAX_EVENTS} events`)
    if (events.length > 0) this.#versions.set(key, version + events.length)
    for (const [index, event] of events.entries()) {
      const entry = { seq: ++this.#seq, key, version: version + index + 1, event, at: this.#now() }
      this.#entries.push(entry)
      for (const deliver of this.#followers) deliver(entry)
    }
    return version + events.length
  }

  async *read(after: number): AsyncGenerator<JournalEntry<E> & { readonly at: number }> {
    for (const entry of [...this.#entries]) if (entry.seq > after) yield entry
  }

  async follow(after: number, apply: (entry: JournalEntry<E>) => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    for (const entry of [...this.#entries]) if (entry.seq > after) apply(entry)
    this.#followers.add(apply)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    this.#followers.delete(apply)
  }

  async compact(upTo: number, snapshot: readonly { key: string; version: number; event: E }[]): Promise<void> {
    const at = this.#now()
    const later = this.#entries.filter(({ seq }) => seq > upTo)
    this.#entries = [...snapshot.map((entry) => ({ ...entry, seq: upTo, at })), ...later]
    this.#versions.clear()
    for (const { key, version } of this.#entries) this.#versions.set(key, version)
  }

  async close(): Promise<void> {}
}
