import type { Clock } from '@plat/core'
import type { Journal, JournalEntry } from '@plat/state'
import { type Denial, deny, type Identity, type SessionRef, type TaintView } from '../../call/index.ts'
import { ByCaller, type ByCallerOptions } from './by-caller.ts'
import { type AgentKey, CalleeLabels, type SessionKey } from './callees.ts'
import type { TaintEvent } from './events.ts'
import { NO_TOKEN, type SessionToken, shownToken, type TaintedSession } from './session.ts'

/** Labels of one session. */
export const LABELS_MAX = 256
/** Agents that one session listens to. */
const LISTENED_MAX = 256
/** How often sessions that have ended are looked for, in milliseconds. */
const SWEEP_EVERY_MS = 60_000
/** Events after which the journal is written anew with what still counts; more when there are more sessions than that. */
export const COMPACT_AFTER_EVENTS = 20_000
/** The journal hears of a session's calls this many times in its retention; labels are kept that much longer. */
const NOTES_PER_RETENTION = 24

/** Removes every label, where a tool clears (docs/spec/crds.md, `clearTaints`). */
const EVERY_LABEL = '*'

export interface TaintsOptions extends ByCallerOptions {
  readonly journal: Journal<TaintEvent>
  readonly clock: Clock
  /** How long labels are kept after the last call, in milliseconds; never less than until the last token expires. */
  readonly retentionMs: number
  /** Told once of each label that this replica added or cleared, when it is durable. */
  readonly onChange: (op: 'added' | 'cleared', label: string) => void
  /** Told how many sessions have labels, after each change. */
  readonly onSessions: (count: number) => void
  /** The journal could not be written. */
  readonly onFault: (error: unknown) => void
}

/** Nobody has labels. */
const UNTAINTED: TaintView = { labels: [] }

/** A moment between two events: what is newer was added later. */
export type Turn = number

/**
 * The taint labels of every session: a projection of the journal, and what is on its way there. A label is in force as soon as it is
 * known and acknowledged when it is durable; a cleared one is in force until its removal is durable.
 */
export class Taints {
  readonly #options: TaintsOptions
  readonly #noteEveryMs: number
  readonly #sessions: ByCaller
  readonly #callees = new CalleeLabels()
  readonly #listeners = new Map<AgentKey, Set<TaintedSession>>()
  readonly #stop = new AbortController()
  #stopSweep: () => void = () => {}
  #tainted = 0
  #turn: Turn = 0
  #lastSeq = 0
  #events = 0
  /** Nothing is written before everything was read. */
  #isOpen = false
  #compacting = false

  private constructor(options: TaintsOptions) {
    this.#options = options
    this.#sessions = new ByCaller(options)
    this.#noteEveryMs = options.retentionMs / NOTES_PER_RETENTION
  }

  /** Reads the journal, then answers. Rejects when it cannot be read: a label that is forgotten would open what it shut. */
  static async open(options: TaintsOptions): Promise<Taints> {
    const taints = new Taints(options)
    for await (const entry of options.journal.read(0)) taints.#follow(entry)
    options.journal
      .follow(
        taints.#lastSeq,
        (entry) => taints.#follow(entry),
        taints.#stop.signal,
        (entries) => taints.#replace(entries),
      )
      .catch(options.onFault)
    taints.#isOpen = true
    taints.#sweep()
    taints.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => taints.#sweep())
    return taints
  }

  close(): void {
    this.#stopSweep()
    this.#stop.abort()
  }

  /** Now: whatever is added from here on has a later turn. */
  get turn(): Turn {
    return this.#turn
  }

  /** The labels of a caller now: of its session, of its token, and of the sessions that delegated to it. */
  seen(identity: Identity): TaintView {
    return this.#view(this.#sessions.get(identity), identity)
  }

  /**
   * Notes that a session calls, and with a new token for whom its labels count and which ones the token brings. Null: a restart does not
   * change the latter. A plain value for nearly every call.
   */
  note(identity: Identity): null | Denial | Promise<null | Denial> {
    const { inheritedTaints, delegators } = identity
    const known = this.#sessions.get(identity)
    if (known !== null) return this.#use(known, identity)
    if (inheritedTaints.length > 0) {
      const begun = this.#sessions.begin(identity)
      return begun === null ? full('sessions with taint labels') : this.#use(begun, identity)
    }
    // Without this note its labels, should it get any, count for every caller of its agent.
    if (delegators.length > 0 && this.#sessions.isHalfEmpty) {
      const begun = this.#sessions.begin(identity)
      if (begun !== null) this.#use(begun, identity)
    }
    return null
  }

  /** The same for somebody who only looks. */
  labelsOf(identity: Identity): readonly string[] {
    return this.#view(this.#sessions.get(identity), identity).labels
  }

  /** The labels that a session has of its own, whichever token it shows. */
  ownLabels(session: SessionRef): readonly string[] {
    const known = this.#sessions.get(session)
    return known === null ? [] : this.#ownLabels(known)
  }

  /**
   * The labels that a response of an agent brings to these callers: of its sessions that act for one of them or for themselves. Callers
   * are null where they are not known. See `CalleeLabels`.
   */
  labelsFrom(agent: AgentKey, callers: readonly SessionKey[] | null): readonly string[] {
    return this.#callees.of(agent, callers)
  }

  /** Whether all of these are the session's own and durable already, and its token is known. */
  has(identity: Identity, labels: readonly string[]): boolean {
    const known = this.#sessions.get(identity)
    return known?.tokens.has(identity.jti) === true && known.has(labels)
  }

  /** The session gets the labels of the agent's sessions as they come, and keeps them. Null: a restart does not change that. */
  listen(identity: Identity, agent: AgentKey): null | Denial | Promise<null | Denial> {
    const known = this.#sessions.get(identity)
    if (known?.listensTo.has(agent) === true) return null
    const session = known ?? this.#sessions.begin(identity)
    if (session === null) return full('sessions with taint labels')
    if (session.listensTo.size >= LISTENED_MAX) return full('agents that one session listens to')
    return this.#append(session, { t: 'listens', ...this.#heard(shownToken(identity)), to: agent }, [])
  }

  /** Null: the session has these labels, and a restart does not change that. A plain value where it had them before. */
  add(identity: Identity, labels: readonly string[]): null | Denial | Promise<null | Denial> {
    const known = this.#sessions.get(identity)
    known?.again(labels, ++this.#turn)
    if (this.has(identity, labels)) return null
    const session = known ?? this.#sessions.begin(identity)
    if (session === null) return full('sessions with taint labels')
    // Something is being written: it could be the removal of a label that seems to be there.
    const missing = session.writing > 0 ? labels : labels.filter((label) => !session.labels.has(label))
    if (session.view.labels.length + missing.length > LABELS_MAX) return full('taint labels of one session')
    return this.#write(session, shownToken(identity), missing)
  }

  /**
   * Removes what `wanted` names of the labels that the caller had at `turn`; what came later, or comes now, stays. Answers what was
   * removed, when that is durable. Rejects with the journal, and then nothing is removed.
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
    // A delegated token brings labels of its delegator, and the next one brings them anew.
    const once = identity.chain.length > 0
    session.arrive([])
    try {
      const heard = this.#heard(shownToken(identity))
      await this.#options.journal.append(session.key, [
        { t: 'cleared', ...heard, labels, inherited: [...inherited], once },
      ])
    } finally {
      this.#arrived(session, [])
    }
    const cleared = [...new Set([...labels, ...inherited])]
    for (const label of cleared) this.#options.onChange('cleared', label)
    return cleared
  }

  async #write(session: TaintedSession, token: SessionToken, labels: readonly string[]): Promise<null | Denial> {
    const denial = await this.#append(session, { t: 'added', ...this.#heard(token), labels: [...labels] }, labels)
    if (denial === null) for (const label of labels) this.#options.onChange('added', label)
    return denial
  }

  /** Null: the event is durable. `arriving` are in force while it is written. */
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
    this.#options.onFault(error)
    return deny('state_unavailable', 'the taint labels of the session cannot be kept')
  }

  #arrived(session: TaintedSession, labels: readonly string[]): void {
    session.arrived(labels)
    this.#update(session)
    this.#dropBlank(session)
  }

  /** The session has changed: its labels count for others, too. */
  #update(session: TaintedSession): void {
    for (const agent of this.#callees.update(session))
      for (const listener of this.#listeners.get(agent) ?? []) this.#keepListened(listener)
  }

  /** What every event says of the call that caused it. */
  #heard({ jti, expiresAt, delegators, brought }: SessionToken) {
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
    // By name: a delegator that refreshed its token is the same session, and what it reads meanwhile may have been passed on.
    for (const one of delegators) for (const label of this.ownLabels(one)) all.add(label)
    return { labels: [...all] }
  }

  /**
   * The journal gets it now and then, and with each new token, so that labels live as long after a restart. Waits where the token may
   * bring a label that the journal does not know yet.
   */
  #use(session: TaintedSession, identity: Identity): null | Promise<null | Denial> {
    const now = this.#options.clock.now()
    const isNew = !session.tokens.has(identity.jti)
    if (!isNew && now - session.notedAt < this.#noteEveryMs) {
      session.usedAt = now
      return null
    }
    const token = shownToken(identity)
    session.use(now, token)
    session.notedAt = now
    if (isNew) this.#update(session)
    const writing = this.#options.journal.append(session.key, [{ t: 'used', ...this.#heard(token) }]).then(
      () => null,
      (error: unknown) => {
        session.tokens.delete(token.jti)
        return this.#unkept(error)
      },
    )
    return isNew && token.brought.length > 0 ? writing : null
  }

  #follow({ seq, key, version, event }: JournalEntry<TaintEvent>): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq)
    this.#events++
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
    const isLong = this.#events >= Math.max(COMPACT_AFTER_EVENTS, this.#sessions.size)
    if (isLong && this.#isOpen && !this.#compacting) void this.compact()
  }

  /** Starts over with what the journal holds; labels that are being written stay. */
  #replace(entries: readonly JournalEntry<TaintEvent>[]): void {
    this.#lastSeq = 0
    this.#events = 0
    for (const session of [...this.#sessions]) if (session.writing === 0) this.#drop(session)
    for (const entry of entries) this.#follow(entry)
  }

  /** How many sessions have labels, when one went from so many labels to so many. */
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
    // Again where it could not be written.
    for (const session of sessions) this.#keepListened(session)
    for (const session of sessions) {
      session.forgetTokens(now)
      const isClean = session.isClean
      const keepUntil = Math.max(isClean ? 0 : session.usedAt + this.#noteEveryMs + retentionMs, session.expiresAt)
      if (session.writing === 0 && keepUntil <= now) this.#drop(session)
    }
  }

  /** Makes the labels of agents that a session listens to its own. */
  #keepListened(session: TaintedSession): void {
    // Nothing is written before everything was read.
    if (session.listensTo.size === 0 || !this.#isOpen) return
    const { labels, expiresAt } = session
    const missing = this.#ownLabels(session).filter((label) => !labels.has(label) && !session.isArriving(label))
    if (missing.length === 0 || session.view.labels.length + missing.length > LABELS_MAX) return
    void this.#write(session, { jti: NO_TOKEN, expiresAt, delegators: [], brought: [] }, missing)
  }

  /** Writes the journal anew with what still counts. Never rejects. */
  async compact(): Promise<void> {
    this.#compacting = true
    try {
      const known = [...this.#sessions].filter(({ version }) => version > 0)
      this.#events = 0
      const snapshot = known.map((session) => ({
        key: session.key,
        version: session.version,
        event: session.snapshot(),
      }))
      await this.#options.journal.compact(this.#lastSeq, snapshot)
    } catch (error) {
      this.#options.onFault(error)
    } finally {
      this.#compacting = false
    }
  }
}

function full(what: string): Denial {
  return deny('state_unavailable', `there are too many ${what}`)
}
