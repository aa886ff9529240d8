import type { Kind, Resource } from '../kinds/kinds.ts'
import type { WatchEvent } from './store.ts'

/** Number of events from which a watch may resume; older revisions are GONE. */
const HISTORY_MAX = 1024

/** Digits of a UUIDv7 with the time, and some of its random bits. */
const OPENING_HEX_DIGITS = 18

/** Bits for the events of one opening. */
const EVENT_BITS = 40n

/** Decimal, as the Kubernetes API promises to clients that compare. */
const REVISION = /^\d{1,40}$/

type Change = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Resource }

/** Events of a store since it was opened, numbered, with their waiters. */
export class History {
  /** Initial revision. Its high bits distinguish this opening from others; a later one is larger. */
  readonly #opening: bigint
  #events: { readonly at: number; readonly change: Change }[] = []
  #at = 0
  readonly #waiting = new Set<() => void>()

  /** `opening`: a UUIDv7, whose beginning is the time. */
  constructor(opening: string) {
    this.#opening = BigInt(`0x${opening.replaceAll('-', '').slice(0, OPENING_HEX_DIGITS)}`) << EVENT_BITS
  }

  get revision(): string {
    return this.#revisionAt(this.#at)
  }

  /** The revision that the next event will have. */
  get nextRevision(): string {
    return this.#revisionAt(this.#at + 1)
  }

  #revisionAt(at: number): string {
    return String(this.#opening + BigInt(at))
  }

  push(change: Change): void {
    this.#at += 1
    this.#events.push({ at: this.#at, change })
    if (this.#events.length > HISTORY_MAX) this.#events = this.#events.slice(-HISTORY_MAX / 2)
    for (const wake of this.#waiting) wake()
  }

  /** Returns the position of a revision; null when it is of another opening, not yet reached, or no longer kept. */
  position(revision: string): number | null {
    if (!REVISION.test(revision)) return null
    const at = Number(BigInt(revision) - this.#opening)
    const oldest = (this.#events[0]?.at ?? this.#at + 1) - 1
    return at >= oldest && at <= this.#at ? at : null
  }

  /** Events of a kind after a position, until the signal aborts. */
  async *follow<K extends Kind>(
    from: number,
    isOfKind: (object: Resource) => object is Resource<K>,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<K>> {
    let at = from
    while (!signal.aborted) {
      if (this.position(this.#revisionAt(at)) === null) {
        yield { type: 'GONE' }
        return
      }
      const next = this.#events.filter((event) => event.at > at)
      for (const event of next) {
        at = event.at
        const { type, object } = event.change
        if (isOfKind(object)) yield { type, object, revision: this.#revisionAt(at) }
        if (signal.aborted) return
      }
      if (next.length > 0) yield { type: 'BOOKMARK', revision: this.#revisionAt(at) }
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
