import { type Clock, runInSlices, type Steps } from '@plat/core'

/** Changes of the revocations within this time are looked at together, in milliseconds. */
const TOGETHER_MS = 1_000

export interface CallingSession {
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string | null
}

export interface EndedSessionsOptions<S extends CallingSession> {
  readonly clock: Pick<Clock, 'after'>
  /** Returns the sessions that are listed; one session is always the same object. */
  readonly sessions: () => Iterable<S>
  /** Whether every call of a session is refused for good: it is revoked, or has ended on its cluster. */
  readonly hasEnded: (session: S) => boolean
  readonly report: (session: S) => void
}

/** Reports each session once when it ends; again if its revocation was lifted meanwhile. */
export class EndedSessions<S extends CallingSession> {
  readonly #options: EndedSessionsOptions<S>
  readonly #ended = new WeakSet<S>()
  #cancel: (() => void) | null = null
  #isClosed = false

  constructor(options: EndedSessionsOptions<S>) {
    this.#options = options
  }

  /** Called after each change of the revocations. */
  readonly changed = (): void => {
    if (this.#isClosed || this.#cancel !== null) return
    this.#cancel = this.#options.clock.after(TOGETHER_MS, () => {
      this.#cancel = null
      void runInSlices(this.#look())
    })
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
  }

  *#look(): Steps<void> {
    const { sessions, hasEnded, report } = this.#options
    for (const session of [...sessions()]) {
      if (this.#isClosed) return
      if (!hasEnded(session)) this.#ended.delete(session)
      else if (!this.#ended.has(session)) {
        this.#ended.add(session)
        report(session)
      }
      yield
    }
  }
}
