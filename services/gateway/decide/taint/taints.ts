import type { Clock } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { type Denial, deny, type Identity, type SessionRef, type TaintView, unstored } from '../../call/index.ts'
import { ByCaller, type ByCallerOptions } from './by-caller.ts'
import { type AgentKey, CalleeLabels, type SessionKey } from './callees.ts'
import type { TaintEvent } from './events.ts'
import { NO_TOKEN, type SessionToken, sessionTokenOf, type TaintedSession } from './session.ts'

/** Bound of labels per session. */
export const LABELS_MAX = 256
/** Bound of agents that one session listens to. */
const LISTENED_MAX = 256
/** Interval of the sweep of ended sessions, in milliseconds. */
const SWEEP_EVERY_MS = 60_000
/** Events in the journal at which it is compacted; more if there are more sessions. */
export const COMPACT_AFTER_EVENTS = 20_000
/** Calls of a session are noted in the journal this many times per retention, which extends it by one part. */
const NOTES_PER_RETENTION = 24

/** Removes every label if a tool clears it (docs/spec/crds.md, `clearTaints`). */
const EVERY_LABEL = '*'

export interface TaintsOptions extends ByCallerOptions {
  readonly journal: Journal<TaintEvent>
  readonly clock: Clock
  /** Retention of labels after the last call, in milliseconds, but not less than until the last token expires. */
  readonly retentionMs: number
  /** Called once for each label that this replica added or cleared, when durable. */
  readonly onChange: (op: 'added' | 'cleared', label: string) => void
  /** Called with the number of sessions with labels after each change. */
  readonly onSessions: (count: number) => void
  /** Called when the journal cannot be written. */
  readonly onFault: (error: unknown) => void
}

const UNTAINTED: TaintView = { labels: [] }

/** Orders events: later additions have a higher turn. */
export type Turn = number

/**
 * The taint labels of every session: a projection of the journal plus the events being written. A label is in force at once and
 * acknowledged when durable. A cleared label remains in force until its removal is durable.
 */
export class Taints {
  readonly #options: TaintsOptions
  readonly #noteEveryMs: number
  readonly #sessions: ByCaller
  readonly #callees = new CalleeLabels()
  readonly #listeners = new Map<AgentKey, Set<TaintedSession>>()
  readonly #follower: JournalFollower<TaintEvent>
  #stopSweep: () => void = () => {}
  #tainted = 0
  #turn: Turn = 0
  /** Nothing is written until the whole journal was read. */
  #isOpen = false

  private constructor(options: TaintsOptions) {
    this.#options = options
    this.#sessions = new ByCaller(options)
    this.#noteEveryMs = options.retentionMs / NOTES_PER_RETENTION
    const { journal, onFault } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      apply: (entry) => this.#follow(entry),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal, then serves. Rejects if it cannot be read: a lost label would allow denied calls. */
  static async open(options: TaintsOptions): Promise<Taints> {
    const taints = new Taints(options)
    await taints.#follower.open()
    taints.#isOpen = true
    taints.#sweep()
    taints.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => taints.#sweep())
    return taints
  }

  close(): void {
    this.#stopSweep()
    this.#follower.close()
  }

  /** The current turn. Labels added from now on have a later one. */
  get turn(): Turn {
    return this.#turn
  }

  /** Current labels of a caller: of its session, of its token, and of the sessions that delegated to it. */
  seen(identity: Identity): TaintView {
    return this.#view(this.#sessions.get(identity), identity)
  }

  /**
   * Notes a call of a session and, for a new token, the callers for which its labels count and the labels it brings. Null: the latter
   * are durable. Synchronous for nearly every call.
   */
  note(identity: Identity): null | Denial | Promise<null | Denial> {
    const { inheritedTaints, delegators } = identity
    const known = this.#sessions.get(identity)
    if (known !== null) return this.#use(known, identity)
    if (inheritedTaints.length > 0) {
      const begun = this.#sessions.begin(identity)
      return begun === null ? full('sessions with taint labels') : this.#use(begun, identity)
    }
    // Without this note, labels that it gets later would count for every caller of its agent.
    if (delegators.length > 0 && this.#sessions.isHalfEmpty) {
      const begun = this.#sessions.begin(identity)
      if (begun !== null) this.#use(begun, identity)
    }
    return null
  }

  /** The same without recording a call. */
  labelsOf(identity: Identity): readonly string[] {
    return this.#view(this.#sessions.get(identity), identity).labels
  }

  /** Labels of a session without those of its tokens. */
  ownLabels(session: SessionRef): readonly string[] {
    const known = this.#sessions.get(session)
    return known === null ? [] : this.#ownLabels(known)
  }

  /**
   * Labels that a response of an agent brings to these callers, from its sessions that act for one of them or for themselves; null:
   * unknown callers. See `CalleeLabels`.
   */
  labelsFrom(agent: AgentKey, callers: readonly SessionKey[] | null): readonly string[] {
    return this.#callees.of(agent, callers)
  }

  /** Whether the session has all of these labels durably and its token is known. */
  has(identity: Identity, labels: readonly string[]): boolean {
    const known = this.#sessions.get(identity)
    return known?.tokens.has(identity.jti) === true && known.has(labels)
  }

  /** Lets the session receive and retain new labels of the agent's sessions. Null: done durably. */
  listen(identity: Identity, agent: AgentKey): null | Denial | Promise<null | Denial> {
    const known = this.#sessions.get(identity)
    if (known?.listensTo.has(agent) === true) return null
    const session = known ?? this.#sessions.begin(identity)
    if (session === null) return full('sessions with taint labels')
    if (session.listensTo.size >= LISTENED_MAX) return full('agents that one session listens to')
    return this.#append(session, { t: 'listens', ...this.#membersOf(sessionTokenOf(identity)), to: agent }, [])
  }

  /** Adds labels to the session. Null: done durably. Synchronous if it has them already. */
  add(identity: Identity, labels: readonly string[]): null | Denial | Promise<null | Denial> {
    const known = this.#sessions.get(identity)
    known?.again(labels, ++this.#turn)
    if (this.has(identity, labels)) return null
    const session = known ?? this.#sessions.begin(identity)
    if (session === null) return full('sessions with taint labels')
    // A write in progress could remove a label that is still present.
    const missing = session.writing > 0 ? labels : labels.filter((label) => !session.labels.has(label))
    if (session.view.labels.length + missing.length > LABELS_MAX) return full('taint labels of one session')
    return this.#write(session, sessionTokenOf(identity), missing)
  }

  /**
   * Removes the labels matched by `wanted` that the caller had at `turn`; later ones remain. Returns the removed labels when durable.
   * Rejects if the journal fails, and then nothing is removed.
   */
  async clear(
    identity: Identity,
    { wanted, turn }: { readonly wanted: readonly string[]; readonly turn: Turn },
  ): Promise<readonly string[]> {
    const everything = wanted.includes(EVERY_LABEL)
    const names = (label: string) => everything || wanted.includes(label)
    const known = this.#sessions.get(identity)
    const own = [...(known?.labels ?? [])].filter(
      ([label, added]) => names(label) && added <= turn && known?.isArriving(label) !== true,
    )
    const inherited = (known?.inherited(identity) ?? identity.inheritedTaints).filter(names)
    const labels = own.map(([label]) => label)
    if (labels.length === 0 && inherited.length === 0) return []
    const session = known ?? this.#sessions.begin(identity)
    if (session === null) return []
    // The next delegated token brings the labels of its delegator again.
    const once = identity.chain.length > 0
    session.arrive([])
    try {
      const members = this.#membersOf(sessionTokenOf(identity))
      await this.#options.journal.append(session.key, [
        { t: 'cleared', ...members, labels, inherited: [...inherited], once },
      ])
    } finally {
      this.#arrived(session, [])
    }
    const cleared = [...new Set([...labels, ...inherited])]
    for (const label of cleared) this.#options.onChange('cleared', label)
    return cleared
  }

  async #write(session: TaintedSession, token: SessionToken, labels: readonly string[]): Promise<null | Denial> {
    const denial = await this.#append(session, { t: 'added', ...this.#membersOf(token), labels: [...labels] }, labels)
    if (denial === null) for (const label of labels) this.#options.onChange('added', label)
    return denial
  }

  /** Null: the event is durable. `arriving` labels are in force while it is written. */
  async #append(session: TaintedSession, event: TaintEvent, arriving: readonly string[]): Promise<null | Denial> {
    session.arrive(arriving)
    this.#update(session)
    try {
      await this.#options.journal.append(session.key, [event])
      return null
    } catch (error) {
      return this.#unkept(error)
    } finally {
      this.#arrived(session, arriving)
    }
  }

  #unkept(error: unknown): Denial {
    return unstored(error, 'the taint labels of the session cannot be stored', this.#options.onFault)
  }

  #arrived(session: TaintedSession, labels: readonly string[]): void {
    session.arrived(labels)
    this.#update(session)
    this.#dropBlank(session)
  }

  /** Updates the labels that count for other sessions. */
  #update(session: TaintedSession): void {
    for (const agent of this.#callees.update(session))
      for (const listener of this.#listeners.get(agent) ?? []) this.#keepListened(listener)
  }

  /** Members of every event about the call that caused it. */
  #membersOf({ jti, expiresAt, delegators, brought }: SessionToken) {
    return {
      at: this.#options.clock.now(),
      jti,
      expiresAt,
      ...(delegators.length > 0 && { delegators: [...delegators] }),
      ...(brought.length > 0 && { brought: [...brought] }),
    }
  }

  #ownLabels({ view: { labels }, listensTo }: TaintedSession): readonly string[] {
    if (listensTo.size === 0) return labels
    return [...new Set([...labels, ...[...listensTo].flatMap((agent) => this.#callees.of(agent, null))])]
  }

  #view(session: TaintedSession | null, identity: Identity): TaintView {
    const { inheritedTaints, delegators } = identity
    const isListening = session !== null && session.listensTo.size > 0
    if (inheritedTaints.length === 0 && delegators.length === 0 && !isListening) return session?.view ?? UNTAINTED
    const inherited = session?.inherited(identity) ?? inheritedTaints
    const all = new Set([...(session === null ? [] : this.#ownLabels(session)), ...inherited])
    // By name: a delegator with a refreshed token is the same session, and content it reads meanwhile may have been passed on.
    for (const one of delegators) for (const label of this.ownLabels(one)) all.add(label)
    return { labels: [...all] }
  }

  /**
   * Notes the call in the journal periodically and with each new token, so that retention survives a restart. Waits if the token may
   * bring a label that the journal lacks.
   */
  #use(session: TaintedSession, identity: Identity): null | Promise<null | Denial> {
    const now = this.#options.clock.now()
    const isNew = !session.tokens.has(identity.jti)
    if (!isNew && now - session.notedAt < this.#noteEveryMs) {
      session.usedAt = now
      return null
    }
    const token = sessionTokenOf(identity)
    session.use(now, token)
    session.notedAt = now
    if (isNew) this.#update(session)
    const writing = this.#options.journal.append(session.key, [{ t: 'used', ...this.#membersOf(token) }]).then(
      () => null,
      (error: unknown) => {
        session.tokens.delete(token.jti)
        return this.#unkept(error)
      },
    )
    return isNew && token.brought.length > 0 ? writing : null
  }

  #follow({ key, version, event }: JournalEntry<TaintEvent>): void {
    const [namespace = '', agent = '', name = ''] = key.split('/')
    const caller = { namespace, agent, session: name }
    const session = this.#sessions.get(caller) ?? this.#sessions.restore(caller)
    const before = session.labels.size
    session.apply(event, version, ++this.#turn)
    for (const agent of session.listensTo) this.#listeners.getOrInsertComputed(agent, () => new Set()).add(session)
    this.#update(session)
    this.#keepListened(session)
    this.#count(before, session.labels.size)
    this.#dropBlank(session)
    if (this.#follower.events >= Math.max(COMPACT_AFTER_EVENTS, 2 * this.#sessions.size)) void this.compact()
  }

  /** Rebuilds the state from the journal. Labels being written remain. */
  #replace(entries: readonly JournalEntry<TaintEvent>[]): void {
    for (const session of [...this.#sessions]) if (session.writing === 0) this.#drop(session)
    for (const entry of entries) this.#follow(entry)
  }

  /** Updates the number of sessions with labels after a session's label count changed. */
  #count(before: number, after: number): void {
    if (before > 0 === after > 0) return
    this.#tainted += after > 0 ? 1 : -1
    this.#options.onSessions(this.#tainted)
  }

  #dropBlank(session: TaintedSession): void {
    if (session.isBlank) this.#drop(session)
  }

  #drop(session: TaintedSession): void {
    if (this.#sessions.get(session.caller) !== session) return
    this.#sessions.delete(session)
    this.#callees.forget(session)
    for (const agent of session.listensTo) {
      const listeners = this.#listeners.get(agent)
      if (listeners?.delete(session) === true && listeners.size === 0) this.#listeners.delete(agent)
    }
    this.#count(session.labels.size, 0)
  }

  #sweep(): void {
    const now = this.#options.clock.now()
    const { retentionMs } = this.#options
    const sessions = [...this.#sessions]
    // Retries failed writes.
    for (const session of sessions) this.#keepListened(session)
    for (const session of sessions) {
      session.forgetTokens(now)
      const isClean = session.isClean
      const keepUntil = Math.max(isClean ? 0 : session.usedAt + this.#noteEveryMs + retentionMs, session.expiresAt)
      if (session.writing === 0 && keepUntil <= now) this.#drop(session)
    }
  }

  /** Adds the labels of agents that a session listens to. */
  #keepListened(session: TaintedSession): void {
    // Nothing is written until the whole journal was read.
    if (session.listensTo.size === 0 || !this.#isOpen) return
    const { labels, expiresAt } = session
    const missing = this.#ownLabels(session).filter((label) => !labels.has(label) && !session.isArriving(label))
    if (missing.length === 0 || session.view.labels.length + missing.length > LABELS_MAX) return
    void this.#write(session, { jti: NO_TOKEN, expiresAt, delegators: [], brought: [] }, missing)
  }

  /** Compacts the journal to the current state. Never rejects. */
  compact(): Promise<void> {
    const snapshot = () => {
      const known = [...this.#sessions].filter(({ version }) => version > 0)
      return known.map((session) => ({ key: session.key, version: session.version, event: session.snapshot() }))
    }
    return this.#follower.compact(snapshot).catch(this.#options.onFault)
  }
}

function full(what: string): Denial {
  return deny('state_unavailable', `there are too many ${what}`)
}
