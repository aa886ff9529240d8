import { encodeBase64url, type Ids } from '@plat/core'
import type { Caller } from './processes.ts'

const ID_BYTES = 16
/** Sessions of one server, and of one caller among them. The one that was unused for longest ends first. */
const SESSIONS_MAX = 4096
const SESSIONS_OF_CALLER_MAX = 64
/** Largest `initialize` that is kept for restarts, in bytes. */
const HANDSHAKE_MAX_BYTES = 16 * 1024

/** A session of the protocol, before revision 2026-07-28. It survives its process: a new one gets the same handshake. */
export interface Session {
  readonly id: string
  readonly caller: Caller
  /** The client's `initialize`; null: it was too large to be kept, so that the session ends with its process. */
  readonly handshake: Uint8Array | null
  /** The client has sent `notifications/initialized`. */
  isInitialized: boolean
}

/** The sessions of one server, the one that was unused for longest first. */
export class Sessions {
  readonly #ids: Ids
  readonly #onEvicted: (session: Session) => void
  readonly #sessions = new Map<string, Session>()
  readonly #ofCaller = new Map<string, Set<Session>>()

  constructor(ids: Ids, onEvicted: (session: Session) => void) {
    this.#ids = ids
    this.#onEvicted = onEvicted
  }

  get size(): number {
    return this.#sessions.size
  }

  create(caller: Caller, initialize: Uint8Array): Session {
    const id = encodeBase64url(this.#ids.random(ID_BYTES))
    const handshake = initialize.length > HANDSHAKE_MAX_BYTES ? null : Uint8Array.from(initialize)
    const session: Session = { id, caller, handshake, isInitialized: false }
    this.#sessions.set(id, session)
    const own = this.#ofCaller.getOrInsertComputed(caller.session, () => new Set())
    own.add(session)
    if (own.size > SESSIONS_OF_CALLER_MAX) this.#evict(own)
    if (this.#sessions.size > SESSIONS_MAX) this.#evict(this.#sessions.values())
    return session
  }

  /** Returns the session of this caller, and marks it as used; null if there is none. */
  use(id: string, caller: Caller): Session | null {
    const session = this.#sessions.get(id)
    if (session === undefined || session.caller.session !== caller.session) return null
    const own = this.#ofCaller.get(caller.session)
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
    own?.delete(session)
    own?.add(session)
    return session
  }

  delete(session: Session): void {
    if (!this.#sessions.delete(session.id)) return
    const own = this.#ofCaller.get(session.caller.session)
    own?.delete(session)
    if (own?.size === 0) this.#ofCaller.delete(session.caller.session)
  }

  clear(): void {
    this.#sessions.clear()
    this.#ofCaller.clear()
  }

  #evict(sessions: Iterable<Session>): void {
    for (const oldest of sessions) {
      this.delete(oldest)
      this.#onEvicted(oldest)
      return
    }
  }
}
