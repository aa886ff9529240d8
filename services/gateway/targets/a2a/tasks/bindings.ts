import type { Clock, SharedPool } from '@plat/core'
import type { Journal, JournalEntry } from '@plat/state'
import { agentOf, type Denial, deny, type Identity } from '../../../call/index.ts'
import type { BindingEvent, Owner } from './events.ts'

/** How long a task or a context is known after its last use, in milliseconds: 30 days. */
export const KEPT_MS = 30 * 24 * 3600 * 1000
/** The journal hears of its use at most this often, in milliseconds. */
const NOTE_EVERY_MS = 3600 * 1000
/** How often what was not used is looked for, in milliseconds. */
const SWEEP_EVERY_MS = 3600 * 1000
/** Events after which the journal is written anew with what still counts; more when more is kept than that. */
const COMPACT_AFTER_EVENTS = 20_000
/** Longest id of a task or context that is kept, in characters. */
const MAX_ID_CHARS = 256

/** Sessions that are kept for one task or context. When more send into it, they count as not known. */
const SESSIONS_MAX = 32

/** What an agent gives its callers to come back with. */
export type BoundKind = 'task' | 'context'

export interface BindingsOptions {
  readonly journal: Journal<BindingEvent>
  readonly clock: Clock
  /** How many are kept at one time; one more is refused, and none is forgotten before its time. */
  readonly pool: SharedPool
  /** The journal could not be written. */
  readonly onFault: (error: unknown) => void
}

class Binding {
  readonly owner: Owner
  readonly call: string
  usedAt: number
  notedAt: number
  /** Events of its key so far. */
  version = 0
  /** Null: the owner is durable. */
  writing: Promise<Denial | null> | null = null
  /** Sessions of the owner that sent into it; null: not known. */
  sessions: Set<string> | null

  constructor({ owner, call, at, sessions }: Pick<BoundEvent, 'owner' | 'call' | 'at' | 'sessions'>) {
    this.owner = owner
    this.call = call
    this.usedAt = at
    this.notedAt = at
    this.sessions = sessions === undefined ? null : new Set(sessions)
  }

  sentBy(session: string | undefined): void {
    if (session !== undefined) this.sessions?.add(session)
    if (session === undefined || (this.sessions?.size ?? 0) > SESSIONS_MAX) this.sessions = null
  }

  /** Which of these are not known to have sent into it; undefined stands for those that nobody knows. */
  missing(sessions: readonly string[] | null): readonly (string | undefined)[] {
    const { sessions: known } = this
    if (known === null) return []
    return sessions === null ? [undefined] : sessions.filter((session) => !known.has(session))
  }
}

type BoundEvent = Extract<BindingEvent, { readonly t: 'bound' }>

/** The call in which an id came back. */
export interface Bringing {
  readonly identity: Identity
  /** `a2a/<ns>/<agent>`. */
  readonly server: string
  readonly call: string
  /** Sessions of the caller whose messages it is about; null: not known. Default: the caller's own. */
  readonly sessions?: readonly string[] | null
}

/**
 * Who owns the tasks and contexts of agents: a projection of the journal, and what is on its way there. Ids are the agents' own; what
 * nobody owns is nobody's, so that no caller can claim a task by guessing its id.
 */
export class Bindings {
  readonly #options: BindingsOptions
  readonly #pool: SharedPool
  readonly #bindings = new Map<string, Binding>()
  readonly #stop = new AbortController()
  #stopSweep: () => void = () => {}
  #lastSeq = 0
  #events = 0
  /** Nothing is written before everything was read. */
  #compacting = true

  private constructor(options: BindingsOptions) {
    this.#options = options
    this.#pool = options.pool
  }

  /** Reads the journal, then answers. Rejects when it cannot be read. */
  static async open(options: BindingsOptions): Promise<Bindings> {
    const bindings = new Bindings(options)
    for await (const entry of options.journal.read(0)) bindings.#follow(entry)
    options.journal
      .follow(
        bindings.#lastSeq,
        (entry) => bindings.#follow(entry),
        bindings.#stop.signal,
        (entries) => bindings.#replace(entries),
      )
      .catch(options.onFault)
    bindings.#compacting = false
    bindings.#sweep()
    bindings.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => bindings.#sweep())
    return bindings
  }

  close(): void {
    this.#stopSweep()
    this.#stop.abort()
  }

  get size(): number {
    return this.#bindings.size
  }

  /** Whether the caller owns it. Notes that it is used. */
  owns(identity: Identity, server: string, kind: BoundKind, id: string): boolean {
    const key = keyOf(server, kind, id)
    const binding = this.#bindings.get(key)
    if (binding === undefined || !isOwner(binding.owner, identity)) return false
    this.#use(key, binding)
    return true
  }

  /** The call that brought it, whoever owns it; null: nobody knows it. */
  callOf(server: string, kind: BoundKind, id: string): string | null {
    return this.#bindings.get(keyOf(server, kind, id))?.call ?? null
  }

  /**
   * Sessions of its owner that sent into it, on whose behalf its agent may have worked; null: not known. What it brings, it brings of
   * them all.
   */
  sessionsOf(server: string, kind: BoundKind, id: string): ReadonlySet<string> | null {
    return this.#bindings.get(keyOf(server, kind, id))?.sessions ?? null
  }

  /** The caller, who owns it, sends into it. Null: that is durable. A plain value where it has done so before. */
  sends(
    { session }: Pick<Identity, 'session'>,
    server: string,
    kind: BoundKind,
    id: string,
  ): null | Denial | Promise<Denial | null> {
    const key = keyOf(server, kind, id)
    const binding = this.#bindings.get(key)
    return binding === undefined ? null : this.#sent(key, binding, [session])
  }

  /** Null: the caller owns it, and a restart does not change that. A plain value where it was so before. */
  bind(bringing: Bringing, kind: BoundKind, id: string): null | Denial | Promise<Denial | null> {
    const { identity, server, call, sessions = [identity.session] } = bringing
    if (id.length > MAX_ID_CHARS) return deny('upstream_error', `${server} gave a ${kind} id that is too long`)
    const key = keyOf(server, kind, id)
    const known = this.#bindings.get(key)
    if (known !== undefined) {
      if (!isOwner(known.owner, identity)) return foreign(server)
      this.#use(key, known)
      const sent = () => this.#sent(key, known, sessions)
      if (known.writing === null) return sent()
      return known.missing(sessions).length === 0 ? known.writing : known.writing.then((denial) => denial ?? sent())
    }
    const bound = this.#pool.acquire(agentOf(identity))
    if (bound === 'share') return deny('rate_limited', 'this agent has as many tasks of other agents as it may have')
    if (bound === 'total') return deny('state_unavailable', 'too many tasks of agents are kept')
    const at = this.#options.clock.now()
    const binding = new Binding({ owner: ownerOf(identity), call, at, ...(sessions && { sessions: [...sessions] }) })
    this.#bindings.set(key, binding)
    binding.writing = this.#write(key, binding, server)
    return binding.writing
  }

  async #write(key: string, binding: Binding, server: string): Promise<Denial | null> {
    try {
      await this.#options.journal.append(key, [boundEvent(binding)])
      const kept = this.#bindings.get(key) ?? binding
      return isOwner(kept.owner, binding.owner) ? null : foreign(server)
    } catch (error) {
      this.#options.onFault(error)
      if (this.#bindings.get(key) === binding) this.#forget(key, binding)
      return deny('state_unavailable', 'the owner of the task cannot be kept')
    } finally {
      binding.writing = null
    }
  }

  /** Null: it is durable that these sessions sent into it. */
  #sent(key: string, binding: Binding, sessions: readonly string[] | null): null | Promise<Denial | null> {
    const missing = binding.missing(sessions)
    return missing.length === 0 ? null : this.#writeSent(key, missing)
  }

  async #writeSent(key: string, sessions: readonly (string | undefined)[]): Promise<Denial | null> {
    const at = this.#options.clock.now()
    const events = sessions.map(
      (session): BindingEvent => ({ t: 'sent', at, ...(session !== undefined && { session }) }),
    )
    try {
      await this.#options.journal.append(key, events)
      return null
    } catch (error) {
      this.#options.onFault(error)
      return deny('state_unavailable', 'who sends to the task cannot be kept')
    }
  }

  #use(key: string, binding: Binding): void {
    const now = this.#options.clock.now()
    binding.usedAt = now
    if (now - binding.notedAt < NOTE_EVERY_MS) return
    binding.notedAt = now
    this.#options.journal.append(key, [{ t: 'used', at: now }]).catch(this.#options.onFault)
  }

  /** A later owner counts only of what had been forgotten by then. */
  #follow({ seq, key, version, event }: JournalEntry<BindingEvent>): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq)
    this.#events++
    let binding = this.#bindings.get(key)
    // What is still being written gives way to what another replica wrote first.
    const isFree = binding === undefined || binding.writing !== null || binding.usedAt + KEPT_MS <= event.at
    if (event.t === 'bound' && isFree) {
      if (binding !== undefined) this.#pool.release(agentOf(binding.owner))
      binding = new Binding(event)
      this.#bindings.set(key, binding)
      this.#pool.add(agentOf(binding.owner))
    }
    if (binding !== undefined) {
      if (event.t === 'sent') binding.sentBy(event.session)
      binding.version = version
      binding.usedAt = Math.max(binding.usedAt, event.at)
      binding.notedAt = Math.max(binding.notedAt, event.at)
    }
    const isLong = this.#events >= Math.max(COMPACT_AFTER_EVENTS, 2 * this.#bindings.size)
    if (isLong && !this.#compacting) void this.compact()
  }

  /** Starts over with what the journal holds; what is being written stays. */
  #replace(entries: readonly JournalEntry<BindingEvent>[]): void {
    for (const [key, { writing }] of this.#bindings) if (writing === null) this.#bindings.delete(key)
    this.#lastSeq = 0
    this.#events = 0
    for (const entry of entries) this.#follow(entry)
  }

  #sweep(): void {
    const now = this.#options.clock.now()
    for (const [key, binding] of this.#bindings)
      if (binding.writing === null && binding.usedAt + KEPT_MS <= now) this.#forget(key, binding)
  }

  #forget(key: string, { owner }: Binding): void {
    this.#bindings.delete(key)
    this.#pool.release(agentOf(owner))
  }

  /** Writes the journal anew with what still counts. Never rejects. */
  async compact(): Promise<void> {
    this.#compacting = true
    try {
      this.#events = 0
      const kept = [...this.#bindings].filter(([, { version }]) => version > 0)
      const snapshot = kept.map(([key, binding]) => ({ key, version: binding.version, event: boundEvent(binding) }))
      await this.#options.journal.compact(this.#lastSeq, snapshot)
    } catch (error) {
      this.#options.onFault(error)
    } finally {
      this.#compacting = false
    }
  }
}

/** `<kind>/<ns>/<agent>/<id>`: an id may hold anything, so it comes last. */
function keyOf(server: string, kind: BoundKind, id: string): string {
  return `${kind}${server.slice(server.indexOf('/'))}/${id}`
}

/** What stands for all that is known of it. */
function boundEvent({ usedAt: at, owner, call, sessions }: Binding): BoundEvent {
  return { t: 'bound', at, owner, call, ...(sessions !== null && { sessions: [...sessions] }) }
}

function ownerOf({ tenant, namespace, agent, user, issuer }: Identity): Owner {
  return { tenant, namespace, agent, user, issuer }
}

function foreign(server: string): Denial {
  return deny('upstream_error', `${server} answered with what is not the caller's`)
}

function isOwner(owner: Owner, { tenant, namespace, agent, user, issuer }: Owner): boolean {
  // Two issuers may know different people by one name. An owner that was recorded without an issuer matches no caller.
  if (owner.user !== user || owner.issuer !== issuer) return false
  return owner.tenant === tenant && owner.namespace === namespace && owner.agent === agent
}
