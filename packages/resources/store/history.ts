import type { Kind, Resource } from '../kinds/kinds.ts'
import type { WatchEvent } from './store.ts'

/** Events that a watch may resume from; older revisions are GONE. */
const HISTORY_MAX = 1024

type Change = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Resource }

/** What happened to a store since it was opened: numbered events, and everybody who waits for the next. */
export class History {
  /** Tells revisions of this opening from those of another. */
  readonly #opening: string
  #events: { readonly at: number; readonly change: Change }[] = []
  #at = 0
  readonly #waiting = new Set<() => void>()

  constructor(opening: string) {
    this.#opening = opening
  }

  get revision(): string {
    return `${this.#opening}.${this.#at}`
  }

  /** The revision that the next event will have. */
  get nextRevision(): string {
    return `${this.#opening}.${this.#at + 1}`
  }

  push(change: Change): void {
    this.#at += 1
    this.#events.push({ at: this.#at, change })
    if (this.#events.length > HISTORY_MAX) this.#events = this.#events.slice(-HISTORY_MAX / 2)
    for (const wake of this.#waiting) wake()
  }

  /** Position of a revision; null when it is of another opening, not yet reached, or no longer remembered. */
  position(revision: string): number | null {
    const dot = revision.lastIndexOf('.')
    const at = Number(revision.slice(dot + 1))
    const oldest = (this.#events[0]?.at ?? this.#at + 1) - 1
    const known = revision.slice(0, dot) === this.#opening && Number.isInteger(at) && at >= oldest && at <= this.#at
    return known ? at : null
  }

  /** Events of a kind after a position, until the signal aborts. */
  async *follow<K extends Kind>(
    from: number,
    isOfKind: (object: Resource) => object is Resource<K>,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<K>> {
    let at = from
    while (!signal.aborted) {
      if (this.position(`${this.#opening}.${at}`) === null) {
        yield { type: 'GONE' }
        return
      }
      const next = this.#events.filter((event) => event.at > at)
      for (const event of next) {
        at = event.at
        const { type, object } = event.change
        if (isOfKind(object)) yield { type, object, revision: `${this.#opening}.${at}` }
        if (signal.aborted) return
      }
      if (next.length > 0) yield { type: 'BOOKMARK', revision: `${this.#opening}.${at}` }
      if (at === this.#at) await this.#next(signal)
    }
  }

  #next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#waiting.add(done)
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }
}
