import type { Identity, SessionRef, TaintView } from '../../call/index.ts'
import { type AgentKey, openPlace, placesOf, type SessionKey, sessionKey } from './callees.ts'
import type { TaintEvent } from './events.ts'

/** Bound of unexpired tokens remembered per session. */
const TOKENS_MAX = 4096
/** Bound of places per session. A session with more delegators counts for every caller of its agent. */
const PLACES_MAX = 256

/** Key of inherited labels that were cleared for every token. */
const EVERY_TOKEN = ''
/** `jti` of events that no call caused. */
export const NO_TOKEN = ''

/** A call's token and its claims about the session. */
export interface SessionToken {
  readonly jti: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Nearest first. */
  readonly delegators: readonly SessionKey[]
  /** Inherited labels of the token. */
  readonly brought: readonly string[]
}

export function sessionTokenOf({ jti, expiresAt, delegators, inheritedTaints }: Identity): SessionToken {
  return { jti, expiresAt, delegators: delegators.map(sessionKey), brought: inheritedTaints }
}

/**
 * A session that has labels, has cleared inherited ones, or whose future labels count for others. Changed by journal events only;
 * `arriving` labels are being written.
 */
export class TaintedSession {
  readonly key: SessionKey
  readonly caller: SessionRef
  /** Labels with the turn in which each was added last. */
  readonly labels = new Map<string, number>()
  /** Expiry of each known token, in milliseconds since the epoch. */
  readonly tokens = new Map<string, number>()
  /** Agents whose new labels it receives: they can reach it outside the gateway. */
  readonly listensTo = new Set<AgentKey>()
  readonly #arriving = new Map<string, number>()
  readonly #cleansed = new Map<string, Set<string>>()
  /** Places where its labels count, with the labels that tokens brought there. */
  readonly #places = new Map<string, Set<string>>()
  #placed: ReadonlyMap<string, readonly string[]> | null = null
  /** Number of its events in the journal. */
  version = 0
  /** Number of events being written. */
  writing = 0
  /** Time of the last call, in milliseconds since the epoch. */
  usedAt = 0
  /** Time of the last call that the journal has. */
  notedAt = 0
  /** Latest expiry of its tokens. */
  expiresAt = 0
  #view: TaintView | null = null

  constructor(caller: SessionRef) {
    this.caller = caller
    this.key = sessionKey(caller)
  }

  /** Its labels, including arriving ones. The same object until they change. */
  get view(): TaintView {
    this.#view ??= { labels: [...new Set([...this.labels.keys(), ...this.#arriving.keys()])] }
    return this.#view
  }

  /** Labels by the places where they count. Unchanged lists are the same objects. */
  placedLabels(): ReadonlyMap<string, readonly string[]> {
    if (this.#placed !== null) return this.#placed
    const { labels } = this.view
    const entries = [...this.#places].map(([place, brought]): [string, readonly string[]] => {
      const more = [...brought].filter((label) => !this.#isCleansed(EVERY_TOKEN, label))
      return [place, more.length === 0 ? labels : [...new Set([...labels, ...more])]]
    })
    this.#placed = new Map(entries)
    return this.#placed
  }

  /** Whether it has no labels and cleared none. It may still act for delegators. */
  get isClean(): boolean {
    if (this.labels.size > 0 || this.#cleansed.size > 0 || this.listensTo.size > 0 || this.writing > 0) return false
    for (const brought of this.#places.values()) if (brought.size > 0) return false
    return true
  }

  /** Whether it can be dropped without loss: it is clean and acts for itself. */
  get isBlank(): boolean {
    return this.isClean && !this.#isDelegated
  }

  get #isDelegated(): boolean {
    const own = placesOf(this.key, [])
    return [...this.#places.keys()].some((place) => !own.includes(place))
  }

  /** Whether the session has all of these labels durably and no change is under way that could clear one. */
  has(labels: readonly string[]): boolean {
    if (this.writing > 0) return false
    for (const label of labels) if (!this.labels.has(label)) return false
    return true
  }

  /** Marks labels as added again, so that calls that began before do not clear them. */
  again(labels: readonly string[], turn: number): void {
    for (const label of labels) if (this.labels.has(label)) this.labels.set(label, turn)
  }

  isArriving(label: string): boolean {
    return this.#arriving.has(label)
  }

  arrive(labels: readonly string[]): void {
    for (const label of labels) this.#arriving.set(label, (this.#arriving.get(label) ?? 0) + 1)
    this.writing++
    this.#changed()
  }

  /** Ends the arrival of labels, whether they were stored or not. */
  arrived(labels: readonly string[]): void {
    for (const label of labels) {
      const left = (this.#arriving.get(label) ?? 0) - 1
      if (left > 0) this.#arriving.set(label, left)
      else this.#arriving.delete(label)
    }
    this.writing--
    this.#changed()
  }

  /** Returns the inherited labels of a token that still count. */
  inherited({ inheritedTaints, jti }: Pick<Identity, 'inheritedTaints' | 'jti'>): readonly string[] {
    if (inheritedTaints.length === 0 || this.#cleansed.size === 0) return inheritedTaints
    return inheritedTaints.filter((label) => !this.#isCleansed(EVERY_TOKEN, label) && !this.#isCleansed(jti, label))
  }

  /** `turn`: a number that grows with each event of any session. */
  apply(event: TaintEvent, version: number, turn: number): void {
    this.version = version
    this.#changed()
    this.#recordReader(event)
    if (event.t === 'added' || event.t === 'snapshot') for (const label of event.labels) this.labels.set(label, turn)
    if (event.t === 'snapshot') for (const { jti, labels } of event.cleansed) this.#cleanse(jti, labels)
    if (event.t === 'listens') this.listensTo.add(event.to)
    if (event.t !== 'cleared') return
    for (const label of event.labels) this.labels.delete(label)
    this.#cleanse(event.once ? event.jti : EVERY_TOKEN, event.inherited)
  }

  /** Records a call with this token. */
  use(now: number, token: SessionToken): void {
    this.usedAt = now
    this.#keepToken(token)
  }

  /** Removes expired tokens and the labels cleared for them only. */
  forgetTokens(now: number): void {
    for (const [jti, expiresAt] of this.tokens) {
      if (expiresAt > now) continue
      this.tokens.delete(jti)
      this.#cleansed.delete(jti)
    }
  }

  /** Returns a snapshot event that replaces all earlier ones. */
  snapshot(): TaintEvent {
    return {
      t: 'snapshot',
      at: this.usedAt,
      labels: [...this.labels.keys()],
      cleansed: [...this.#cleansed].map(([jti, labels]) => ({ jti, labels: [...labels] })),
      tokens: [...this.tokens].map(([jti, expiresAt]) => ({ jti, expiresAt })),
      places: [...this.#places].map(([place, brought]) => ({ place, brought: [...brought] })),
      listensTo: [...this.listensTo],
    }
  }

  #recordReader(event: TaintEvent): void {
    this.usedAt = Math.max(this.usedAt, event.at)
    this.notedAt = this.usedAt
    if (event.t !== 'snapshot') {
      this.#keepToken({ delegators: [], brought: [], ...event })
      return
    }
    for (const { jti, expiresAt } of event.tokens) this.#rememberToken(jti, expiresAt)
    // An event of an older version has no delegators.
    if (event.places === undefined) this.#place([], [])
    for (const { place, brought } of event.places ?? []) this.#places.set(place, new Set(brought))
    for (const agent of event.listensTo ?? []) this.listensTo.add(agent)
  }

  #keepToken({ jti, expiresAt, delegators, brought }: SessionToken): void {
    this.#rememberToken(jti, expiresAt)
    if (jti !== NO_TOKEN) this.#place(delegators, brought)
  }

  #rememberToken(jti: string, expiresAt: number): void {
    this.expiresAt = Math.max(this.expiresAt, expiresAt)
    if (jti !== NO_TOKEN && this.tokens.size < TOKENS_MAX) this.tokens.set(jti, expiresAt)
  }

  #place(delegators: readonly SessionKey[], brought: readonly string[]): void {
    this.#placed = null
    for (const place of placesOf(this.key, delegators)) {
      const isKept = this.#places.has(place) || this.#places.size < PLACES_MAX
      const at = this.#places.getOrInsertComputed(isKept ? place : openPlace(this.key), () => new Set())
      for (const label of brought) at.add(label)
    }
  }

  #changed(): void {
    this.#view = null
    this.#placed = null
  }

  #isCleansed(jti: string, label: string): boolean {
    return this.#cleansed.get(jti)?.has(label) === true
  }

  #cleanse(jti: string, labels: readonly string[]): void {
    if (labels.length === 0) return
    const cleansed = this.#cleansed.getOrInsertComputed(jti, () => new Set())
    for (const label of labels) cleansed.add(label)
  }
}
