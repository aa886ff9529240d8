import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { type Clock, encodeBase64url, type Ids, type SharedPool } from '@plat/core'
import { peerOf } from '@plat/http'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { AdminError } from '../error.ts'
import type { Person } from '../roles.ts'
import type { BegunEvent, BrowserEvent } from './events.ts'

/** Bytes of the secret in a cookie. */
const SECRET_BYTES = 32
/** Base64url of them. */
const SECRET = /^[A-Za-z0-9_-]{43}$/
/** The use of a session is stored at most this often, for other replicas, in milliseconds. */
const SEEN_EVERY_MS = 60_000
/** Ended and expired sessions are removed this often, in milliseconds. */
const SWEEP_EVERY_MS = 5_000
/** Obsolete events after which the journal is compacted. */
const COMPACT_AFTER_EVENTS = 1_000
/** Codes of links that were used and have not expired, at most. */
const MAX_SPENT = 1_000

export interface BrowserSessionsOptions {
  readonly journal: Journal<BrowserEvent>
  /** Reads what other replicas stored, within the share of a peer; null: no other replica writes. */
  readonly lookUps: SessionLookUps | null
  readonly clock: Clock
  readonly ids: Ids
  /** Unused for this long, a session ends, in milliseconds. */
  readonly idleMs: number
  readonly lifetimeMs: number
  readonly pool: SharedPool
  readonly onFault: (error: unknown) => void
}

/** See `LookUps`. */
export interface SessionLookUps {
  /** Resolves when what other replicas stored before is known here. Returns null if the peer is at its share. Never rejects. */
  catchUpBy(peer: string): Promise<void> | null
}

/** A session of the console: a person, or null for the holder of the static token. */
export interface BrowserSession {
  /** SHA-256 of the secret. */
  readonly key: string
  readonly person: Person | null
  /** See `tokenMark`. */
  readonly tokenMark: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

interface Stored extends BrowserSession {
  /** Identifies the person, for the share and for the end of all sessions of the person. */
  readonly owner: string
  readonly begunAt: number
  seenAt: number
  storedSeenAt: number
  /** Of its key in the journal. */
  version: number
  readonly onEnd: Set<() => void>
  /** Its end is being stored. */
  isEnding: boolean
}

/**
 * Sessions of browsers (docs/console.md). The cookie holds a random secret and the journal its hash, so that who reads the journal has no session.
 * With a shared journal every replica knows every session, and the end of one.
 */
export class BrowserSessions {
  readonly #options: BrowserSessionsOptions
  readonly #sessions = new Map<string, Stored>()
  readonly #spent = new Map<string, number>()
  /** Keys of sessions that are being stored. They count already, so that logins at the same time share the limits. */
  readonly #pending = new Set<string>()
  /** Keys that are being looked up. The requests of one page share a look-up. */
  readonly #lookUps = new Map<string, Promise<Stored | null>>()
  readonly #follower: JournalFollower<BrowserEvent>
  readonly #stopSweeping: () => void

  private constructor(options: BrowserSessionsOptions) {
    this.#options = options
    this.#follower = new JournalFollower({
      ...{ journal: options.journal, onFault: options.onFault },
      apply: (entry) => this.#apply(entry),
      replace: (entries) => this.#replace(entries),
    })
    this.#stopSweeping = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Rejects if the journal cannot be read. */
  static async open(options: BrowserSessionsOptions): Promise<BrowserSessions> {
    const sessions = new BrowserSessions(options)
    await sessions.#follower.open()
    return sessions
  }

  /**
   * Begins a session and returns its secret. With its share of sessions in use, the owner's oldest one ends.
   * @throws AdminError `backlog_full` if all sessions are in use or the whole share is being used up by logins at this moment, or
   *   `state_unavailable`
   */
  async begin(
    person: Person | null,
    token: string | null,
  ): Promise<{ readonly secret: string; readonly expiresAt: number }> {
    const { clock, ids, lifetimeMs, pool } = this.#options
    const owner = ownerOf(person)
    const bound = pool.boundFor(owner)
    if (bound === 'total') throw new AdminError('backlog_full', 'too many people are logged in: try again later')
    const oldest = bound === 'share' ? this.#oldest(owner) : null
    if (bound === 'share' && oldest === null) throw new AdminError('backlog_full', 'too many logins at once: try again')
    const secret = encodeBase64url(ids.random(SECRET_BYTES))
    const at = clock.now()
    const expiresAt = at + lifetimeMs
    const tokenMark = token === null ? '' : tokenMarkOf(secret, token)
    const key = keyOf(secret)
    this.#pending.add(key)
    pool.add(owner)
    try {
      if (oldest !== null) await this.end(oldest.key)
      await this.#append(key, { t: 'begun', person: storable(person), tokenMark, at, seenAt: at, expiresAt })
    } catch (error) {
      if (this.#pending.delete(key)) pool.release(owner)
      throw error
    }
    return { secret, expiresAt }
  }

  /** Whether a session has not ended. */
  isLive({ key }: Pick<BrowserSession, 'key'>): boolean {
    return this.#live(key) !== null
  }

  /**
   * Returns the session of a secret, and counts it as used; null if there is none, or it has ended. Returns `unread` if it is unknown here, and the
   * peer address has used up its share of look-ups of what other replicas stored.
   */
  async find(secret: string, address: string): Promise<BrowserSession | null | 'unread'> {
    if (!SECRET.test(secret)) return null
    const key = keyOf(secret)
    const found = this.#live(key) ?? (await this.#lookUp(key, address))
    if (found !== null && found !== 'unread') this.#used(found)
    return found
  }

  async end(key: string): Promise<void> {
    const session = this.#sessions.get(key)
    if (session === undefined) return
    session.isEnding = true
    try {
      await this.#append(key, { t: 'ended' })
    } finally {
      session.isEnding = false
    }
  }

  async endAll({ person }: BrowserSession): Promise<void> {
    const owner = ownerOf(person)
    const own = [...this.#sessions.values()].filter((one) => one.owner === owner)
    await Promise.all(own.map(({ key }) => this.end(key)))
  }

  /** Calls `notify` once when the session ends, however it does. Returns a function that cancels it. */
  onEnd({ key }: Pick<BrowserSession, 'key'>, notify: () => void): () => void {
    const session = this.#live(key)
    if (session === null) {
      notify()
      return () => {}
    }
    session.onEnd.add(notify)
    return () => session.onEnd.delete(notify)
  }

  /** Marks the code of a link as used. Returns false if it was used before, on any replica. */
  async spend(id: string, until: number): Promise<boolean> {
    if (this.#spent.size >= MAX_SPENT) throw new AdminError('backlog_full', 'too many links were used: try again later')
    return (await this.#append(`link ${id}`, { t: 'spent', until }, 0)) !== 'conflict'
  }

  close(): void {
    this.#follower.close()
    this.#stopSweeping()
  }

  #live(key: string): Stored | null {
    const session = this.#sessions.get(key)
    return session !== undefined && this.#isLive(session) ? session : null
  }

  #isLive({ expiresAt, seenAt }: Stored): boolean {
    const { clock, idleMs, lookUps } = this.#options
    // Other replicas may have used it without having stored that yet.
    const slackMs = lookUps === null ? 0 : SEEN_EVERY_MS
    return clock.now() < Math.min(expiresAt, seenAt + idleMs + slackMs)
  }

  /** Returns a session that began on another replica a moment ago, or null. */
  #lookUp(key: string, address: string): null | 'unread' | Promise<Stored | null> {
    const { lookUps } = this.#options
    if (lookUps === null) return null
    const pending = this.#lookUps.get(key)
    if (pending !== undefined) return pending
    const caughtUp = lookUps.catchUpBy(peerOf(address))
    if (caughtUp === null) return 'unread'
    const lookedUp = caughtUp.then(() => this.#live(key)).finally(() => this.#lookUps.delete(key))
    this.#lookUps.set(key, lookedUp)
    return lookedUp
  }

  #used(session: Stored): void {
    const now = this.#options.clock.now()
    session.seenAt = now
    if (this.#options.lookUps === null || now - session.storedSeenAt < SEEN_EVERY_MS) return
    session.storedSeenAt = now
    this.#append(session.key, { t: 'seen', at: now }).catch(() => {})
  }

  /** Returns the owner's oldest session that is not ending already, or null. */
  #oldest(owner: string): Stored | null {
    const own = [...this.#sessions.values()].filter((one) => one.owner === owner && !one.isEnding)
    return own.toSorted((one, other) => one.begunAt - other.begunAt)[0] ?? null
  }

  async #append(key: string, event: BrowserEvent, onlyIf?: number): Promise<number | 'conflict'> {
    const { journal, onFault } = this.#options
    return journal.append(key, [event], onlyIf).catch((error: unknown) => {
      onFault(error)
      throw new AdminError('state_unavailable', 'sessions of the console cannot be stored now')
    })
  }

  #apply({ key, version, event }: JournalEntry<BrowserEvent>): void {
    if (event.t === 'begun') this.#add(key, version, event)
    else if (event.t === 'ended') this.#remove(key)
    else if (event.t === 'spent') this.#spent.set(key, event.until)
    else {
      const session = this.#sessions.get(key)
      if (session === undefined) return
      session.version = version
      session.seenAt = Math.max(session.seenAt, event.at)
    }
  }

  #add(key: string, version: number, { person, tokenMark, at, seenAt, expiresAt }: BegunEvent): void {
    if (this.#sessions.has(key)) return
    const owner = ownerOf(person)
    const times = { begunAt: at, seenAt, storedSeenAt: seenAt, expiresAt }
    this.#sessions.set(key, {
      key,
      version,
      person: personOf(person),
      tokenMark,
      owner,
      ...times,
      onEnd: new Set(),
      isEnding: false,
    })
    if (!this.#pending.delete(key)) this.#options.pool.add(owner)
  }

  #remove(key: string): void {
    const session = this.#sessions.get(key)
    if (session === undefined) return
    this.#sessions.delete(key)
    this.#options.pool.release(session.owner)
    for (const notify of session.onEnd) notify()
  }

  /** The state database was adopted: sessions that it does not have end. */
  #replace(entries: readonly JournalEntry<BrowserEvent>[]): void {
    this.#spent.clear()
    const stored = new Set(entries.filter(({ event }) => event.t === 'begun').map(({ key }) => key))
    for (const key of [...this.#sessions.keys()]) if (!stored.has(key)) this.#remove(key)
    for (const entry of entries) this.#apply(entry)
  }

  /** Sessions that expired here are removed without an event: every replica does so by itself. */
  #sweep(): void {
    const now = this.#options.clock.now()
    for (const session of [...this.#sessions.values()]) if (!this.#isLive(session)) this.#remove(session.key)
    for (const [id, until] of this.#spent) if (now >= until) this.#spent.delete(id)
    const needless = this.#follower.events - this.#sessions.size - this.#spent.size
    if (needless >= COMPACT_AFTER_EVENTS) this.#follower.compact(() => this.#snapshot()).catch(this.#options.onFault)
  }

  #snapshot() {
    const sessions = [...this.#sessions.values()].map((session) => ({
      key: session.key,
      version: session.version,
      event: begunEventOf(session),
    }))
    const spent = [...this.#spent].map(([key, until]) => ({ key, version: 1, event: { t: 'spent' as const, until } }))
    return [...sessions, ...spent]
  }
}

function begunEventOf({ person, tokenMark, begunAt, seenAt, expiresAt }: Stored): BegunEvent {
  return { t: 'begun', person: storable(person), tokenMark, at: begunAt, seenAt, expiresAt }
}

/** Marks the static token, so that sessions end with it; without the secret of the session nothing can be learned from it. */
export function tokenMarkOf(secret: string, token: string): string {
  return createHmac('sha256', secret).update(token).digest('base64url')
}

/** The value that requests of a session that change something must carry (docs/console.md). */
export function csrfOf(secret: string): string {
  return createHmac('sha256', secret).update('plat console csrf').digest('base64url')
}

/** Compares in constant time. */
export function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest())
}

function keyOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

function ownerOf(person: BegunEvent['person'] | Person): string {
  if (person === null) return 'token'
  const { user, known } = person
  return JSON.stringify(known?.subject == null ? [user] : [known.subject.issuer, known.subject.subject])
}

/** A copy that a journal can keep. */
function storable(person: Person | null): BegunEvent['person'] {
  if (person === null) return null
  const { user, groups, known, auth } = person
  return {
    user,
    groups: [...groups],
    ...(known !== undefined && { known: { names: [...known.names], subject: known.subject } }),
    ...(auth !== undefined && { auth: { ...auth, amr: [...auth.amr] } }),
  }
}

function personOf(person: BegunEvent['person']): Person | null {
  if (person === null) return null
  const { user, groups, known, auth } = person
  return { user, groups, ...(known !== undefined && { known }), ...(auth !== undefined && { auth }) }
}
