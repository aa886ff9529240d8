import type { Clock, PoolBound, SharedPool } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { type Denial, deny } from '../denial.ts'
import { agentOf, type Identity } from '../facts.ts'
import { unstored } from '../unstored.ts'
import { Binding, type BoundKind, boundEvent, isOwner, keyOf, ownerOf } from './binding.ts'
import { type BindingEvent, type BoundTask, type Owner, ownerKeys } from './events.ts'
import { OldestBindings } from './oldest.ts'

/** How long a task or context of A2A is kept after its last use, in milliseconds: 30 days. */
export const KEPT_MS = 30 * 24 * 3600 * 1000
/** Minimum time between journal entries about its use, in milliseconds. */
const NOTE_EVERY_MS = 3600 * 1000
/** Interval of the search for expired bindings, in milliseconds. */
const SWEEP_EVERY_MS = 3600 * 1000
/** Events in the journal at which it is compacted; more if more are still needed. */
const COMPACT_AFTER_EVENTS = 20_000
/** Maximum length of an id, in characters. */
const MAX_ID_CHARS = 256

export interface BindingsOptions {
  readonly journal: Journal<BindingEvent>
  readonly clock: Clock
  /** Limits concurrent bindings; new ones are refused when full, and none is evicted early. */
  readonly pool: SharedPool
  /** Called when the journal could not be written. */
  readonly onFault: (error: unknown) => void
  /** Returns how long a binding is kept after its last use, in milliseconds; `status` is that of a task of a server. Default: 30 days. */
  readonly keptMs?: (status: string | null) => number
  /** Noun for named things in refusals. Default: tasks. */
  readonly noun?: string
  /** At its share an agent loses for each new binding the one that it has not used for longest, instead of getting no new ones. Default: false. */
  readonly forgetsOldest?: boolean
}

/** The call whose response contained an id. */
export interface Bringing {
  readonly identity: Identity
  /** A prefix, a slash, and the callee: `a2a/<ns>/<agent>`. */
  readonly server: string
  readonly call: string
  /** Sessions of the caller whose messages caused it, or null if unknown. Default: the caller's session. */
  readonly sessions?: readonly string[] | null
  /** Set for a task of a server, which only the caller's session owns. Absent: every session of the agent and user owns it. */
  readonly task?: BoundTask
  /** Taint labels of its content; absent: none. */
  readonly labels?: readonly string[]
}

export interface OwnedTask {
  readonly owner: Owner
  /** The call whose response contained it. */
  readonly call: string
  readonly id: string
  readonly task: BoundTask
}

/**
 * Owners of the tasks and contexts of agents and servers, and of content at model providers: a projection of the journal, plus pending
 * writes. The others choose the ids; an id without an owner belongs to no caller, so that guessed ids cannot be claimed.
 */
export class Bindings {
  readonly #options: BindingsOptions
  readonly #pool: SharedPool
  readonly #bindings = new Map<string, Binding>()
  /** Keys of the bindings of each agent, in the order in which they were bound. */
  readonly #ofAgent = new Map<string, Set<string>>()
  readonly #oldest = new OldestBindings(this.#bindings)
  readonly #follower: JournalFollower<BindingEvent>
  #stopSweep: () => void = () => {}

  private constructor(options: BindingsOptions) {
    this.#options = options
    this.#pool = options.pool
    const { journal, onFault } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      apply: (entry) => this.#follow(entry),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal first. Rejects if it cannot be read. */
  static async open(options: BindingsOptions): Promise<Bindings> {
    const bindings = new Bindings(options)
    await bindings.#follower.open()
    bindings.#sweep()
    bindings.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => bindings.#sweep())
    return bindings
  }

  close(): void {
    this.#stopSweep()
    this.#follower.close()
  }

  get size(): number {
    return this.#bindings.size
  }

  /** Returns whether the caller owns it, and records its use. */
  owns(identity: Identity, server: string, kind: BoundKind, id: string): boolean {
    const key = keyOf(server, kind, id)
    const binding = this.#bindings.get(key)
    if (binding === undefined || !isOwner(binding.owner, identity)) return false
    this.#use(key, binding)
    return true
  }

  /** Returns the taint labels of its content; empty if it is unknown. */
  labelsOf(server: string, kind: BoundKind, id: string): readonly string[] {
    return this.#bindings.get(keyOf(server, kind, id))?.labels ?? []
  }

  /** Returns the ids that the caller owns at a callee, in the order in which they were bound. */
  idsOf(identity: Identity, server: string, kind: BoundKind): readonly string[] {
    const prefix = keyOf(server, kind, '')
    const owned: string[] = []
    for (const key of this.#ofAgent.get(agentOf(identity)) ?? []) {
      const binding = key.startsWith(prefix) ? this.#bindings.get(key) : undefined
      if (binding !== undefined && isOwner(binding.owner, identity)) owned.push(key.slice(prefix.length))
    }
    return owned
  }

  /** Returns why the caller can bind nothing now, or null. The pool counts a refusal. */
  refusalFor(identity: Identity): Denial | null {
    const keys = ownerKeys(ownerOf(identity, false))
    const full = this.#full(this.#pool.acquire(keys))
    if (full === null) this.#pool.release(keys)
    return full
  }

  /** Removes the binding of what no longer exists. Resolves when that is durable. */
  async release(server: string, kind: BoundKind, id: string): Promise<Denial | null> {
    const key = keyOf(server, kind, id)
    const binding = this.#bindings.get(key)
    if (binding === undefined) return null
    try {
      await this.#options.journal.append(key, [{ t: 'released', at: this.#options.clock.now() }])
      if (this.#bindings.get(key) === binding) this.#forget(key, binding)
      return null
    } catch (error) {
      return unstored(error, `the release of the ${this.#noun} cannot be stored`, this.#options.onFault)
    }
  }

  /** Returns the caller's task of a server, and records its use; null if the caller owns none with this id. */
  taskOf(identity: Identity, server: string, id: string): OwnedTask | null {
    if (!this.owns(identity, server, 'task', id)) return null
    const binding = this.#bindings.get(keyOf(server, 'task', id))
    return binding?.task ? { owner: binding.owner, call: binding.call, id, task: binding.task } : null
  }

  /** Returns the tasks of servers for which `isWanted` returns true. */
  tasksWhere(isWanted: (owned: Omit<OwnedTask, 'id'>) => boolean): readonly OwnedTask[] {
    const wanted: OwnedTask[] = []
    for (const [key, { owner, call, task }] of this.#bindings) {
      if (task === null || !isWanted({ owner, call, task })) continue
      // `task/<callee>/<id>`; the callee has no slash.
      wanted.push({ owner, call, task, id: key.slice(key.indexOf('/', key.indexOf('/') + 1) + 1) })
    }
    return wanted
  }

  /**
   * Stores the status of a task of a server. Resolves to true if this replica stored a change, false if the status was known or another
   * replica changed the task at the same time. Never rejects.
   */
  async changed(server: string, id: string, status: string): Promise<boolean> {
    const key = keyOf(server, 'task', id)
    const binding = this.#bindings.get(key)
    if (!binding?.task || binding.task.status === status) return false
    const { version } = binding
    binding.task = { ...binding.task, status }
    try {
      const at = this.#options.clock.now()
      return (await this.#options.journal.append(key, [{ t: 'status', at, status }], version)) !== 'conflict'
    } catch (error) {
      this.#options.onFault(error)
      return true
    }
  }

  /** Returns the call whose response contained it, for any owner, or null if unknown. */
  callOf(server: string, kind: BoundKind, id: string): string | null {
    return this.#bindings.get(keyOf(server, kind, id))?.call ?? null
  }

  /**
   * Returns the sessions of its owner that sent into it, for which its agent may have worked; null if unknown. Its content may be
   * for any of them.
   */
  sessionsOf(server: string, kind: BoundKind, id: string): ReadonlySet<string> | null {
    return this.#bindings.get(keyOf(server, kind, id))?.sessions ?? null
  }

  /** Records that its owner sends into it. Resolves with null when durable; returns null at once if recorded before. */
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

  /** Binds an id to the caller. Resolves with null when durable; returns null at once if the caller owned it before. */
  bind(bringing: Bringing, kind: BoundKind, id: string): null | Denial | Promise<Denial | null> {
    const { identity, server, call, sessions = [identity.session], task, labels = [] } = bringing
    const name = task?.server ?? server
    if (id.length > MAX_ID_CHARS) return deny('upstream_error', `${name} gave a ${kind} id that is too long`)
    const key = keyOf(server, kind, id)
    const known = this.#bindings.get(key)
    if (known !== undefined) {
      if (!isOwner(known.owner, identity)) return foreign(name)
      this.#use(key, known)
      const sent = () => this.#sent(key, known, sessions)
      if (known.writing === null) return sent()
      return known.missing(sessions).length === 0 ? known.writing : known.writing.then((denial) => denial ?? sent())
    }
    const owner = ownerOf(identity, task !== undefined)
    if (this.#options.forgetsOldest === true) this.#makeRoom(owner)
    const full = this.#full(this.#pool.acquire(ownerKeys(owner)))
    if (full !== null) return full
    const at = this.#options.clock.now()
    const sent = sessions && { sessions: [...sessions] }
    const binding = new Binding({ owner, call, at, labels, ...sent, ...(task && { task }) })
    this.#set(key, binding)
    binding.writing = this.#write(key, binding, name)
    return binding.writing
  }

  get #noun(): string {
    return this.#options.noun ?? 'tasks'
  }

  #full(bound: PoolBound | null): Denial | null {
    if (bound === null) return null
    return bound === 'share'
      ? deny('rate_limited', `this caller has reached its share of ${this.#noun}`)
      : deny('state_unavailable', `too many ${this.#noun}`)
  }

  /** Forgets what the agent of an owner has not used for longest, until one more is within its share. */
  #makeRoom(owner: Owner): void {
    const agent = agentOf(owner)
    while (this.#pool.boundFor(ownerKeys(owner)) === 'share') {
      const oldest = this.#oldest.next(agent, this.#ofAgent.get(agent) ?? new Set())
      if (oldest === null) return
      this.#forget(oldest.key, oldest.binding)
      const at = this.#options.clock.now()
      this.#options.journal.append(oldest.key, [{ t: 'released', at }]).catch(this.#options.onFault)
    }
  }

  async #write(key: string, binding: Binding, name: string): Promise<Denial | null> {
    try {
      await this.#options.journal.append(key, [boundEvent(binding)])
      const stored = this.#bindings.get(key) ?? binding
      return isOwner(stored.owner, binding.owner) ? null : foreign(name)
    } catch (error) {
      if (this.#bindings.get(key) === binding) this.#forget(key, binding)
      return unstored(error, `the owner of the ${this.#noun} cannot be stored`, this.#options.onFault)
    } finally {
      binding.writing = null
    }
  }

  /** Records senders. Resolves with null when durable. */
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
      return unstored(error, `the sender to the ${this.#noun} cannot be stored`, this.#options.onFault)
    }
  }

  #use(key: string, binding: Binding): void {
    const now = this.#options.clock.now()
    binding.usedAt = now
    if (now - binding.notedAt < NOTE_EVERY_MS) return
    binding.notedAt = now
    this.#options.journal.append(key, [{ t: 'used', at: now }]).catch(this.#options.onFault)
  }

  /** A later owner applies only if the earlier binding had expired by then. */
  #follow({ key, version, event }: JournalEntry<BindingEvent>): void {
    let binding = this.#bindings.get(key)
    if (event.t === 'released') {
      if (binding !== undefined && binding.writing === null) this.#forget(key, binding)
      return
    }
    // Pending writes yield to what another replica wrote first.
    const isFree = binding === undefined || binding.writing !== null || this.#endOf(binding) <= event.at
    if (event.t === 'bound' && isFree) {
      if (binding !== undefined) this.#forget(key, binding)
      binding = new Binding(event)
      this.#set(key, binding)
      this.#pool.add(ownerKeys(binding.owner))
    }
    if (binding !== undefined) {
      if (event.t === 'sent') binding.sentBy(event.session)
      if (event.t === 'status' && binding.task !== null) binding.task = { ...binding.task, status: event.status }
      binding.version = version
      binding.usedAt = Math.max(binding.usedAt, event.at)
      binding.notedAt = Math.max(binding.notedAt, event.at)
    }
    if (this.#follower.events >= Math.max(COMPACT_AFTER_EVENTS, 2 * this.#bindings.size)) void this.compact()
  }

  /** Replaces all bindings by the journal's; pending writes stay. */
  #replace(entries: readonly JournalEntry<BindingEvent>[]): void {
    for (const [key, binding] of this.#bindings) if (binding.writing === null) this.#forget(key, binding)
    for (const entry of entries) this.#follow(entry)
  }

  #sweep(): void {
    const now = this.#options.clock.now()
    for (const [key, binding] of this.#bindings)
      if (binding.writing === null && this.#endOf(binding) <= now) this.#forget(key, binding)
  }

  #set(key: string, binding: Binding): void {
    this.#bindings.set(key, binding)
    this.#ofAgent.getOrInsertComputed(agentOf(binding.owner), () => new Set()).add(key)
  }

  #forget(key: string, { owner }: Binding): void {
    this.#bindings.delete(key)
    const keys = this.#ofAgent.get(agentOf(owner))
    keys?.delete(key)
    if (keys?.size === 0) {
      this.#ofAgent.delete(agentOf(owner))
      this.#oldest.forget(agentOf(owner))
    }
    this.#pool.release(ownerKeys(owner))
  }

  /** Returns when a binding expires if it is not used again. */
  #endOf({ usedAt, task }: Binding): number {
    return usedAt + (this.#options.keptMs?.(task?.status ?? null) ?? KEPT_MS)
  }

  /** Compacts the journal. Never rejects. */
  compact(): Promise<void> {
    const snapshot = () => {
      const stored = [...this.#bindings].filter(([, { version }]) => version > 0)
      return stored.map(([key, binding]) => ({ key, version: binding.version, event: boundEvent(binding) }))
    }
    return this.#follower.compact(snapshot).catch(this.#options.onFault)
  }
}

function foreign(name: string): Denial {
  return deny('upstream_error', `${name} responded with an id of another owner`)
}
