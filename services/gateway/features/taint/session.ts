import type { Identity, TaintView } from '../../call/index.ts'
import type { TaintEvent } from './events.ts'

/** Tokens of one session that are remembered until they expire. */
const TOKENS_MAX = 4096

/** What cleared inherited labels for every token of the session. */
const EVERY_TOKEN = ''

/** A session that has labels, or cleared those that it inherited. Changed by events of the journal; `arriving` are on their way there. */
export class TaintedSession {
  readonly key: string
  readonly caller: Pick<Identity, 'namespace' | 'agent' | 'session'>
  /** With the turn in which each was added last. */
  readonly labels = new Map<string, number>()
  /** When each token that it was heard of with expires, in milliseconds since the epoch. */
  readonly tokens = new Map<string, number>()
  readonly #arriving = new Map<string, number>()
  readonly #cleansed = new Map<string, Set<string>>()
  /** Events that the journal has of it. */
  version = 0
  /** Events that are being written. */
  writing = 0
  /** When it last called, in milliseconds since the epoch. */
  usedAt = 0
  /** The last call that the journal knows of. */
  notedAt = 0
  /** When the last of its tokens expires. */
  expiresAt = 0
  #view: TaintView | null = null

  constructor(caller: TaintedSession['caller']) {
    this.caller = caller
    this.key = keyOf(caller)
  }

  /** Its own labels, those on their way included; the same object for as long as nothing changes. */
  get view(): TaintView {
    this.#view ??= { labels: [...new Set([...this.labels.keys(), ...this.#arriving.keys()])] }
    return this.#view
  }

  /** Nothing is known of it that somebody could miss. */
  get isBlank(): boolean {
    return this.labels.size === 0 && this.#cleansed.size === 0 && this.writing === 0
  }

  /** Whether all of these are its own and durable, and nothing is under way that could clear one. */
  has(labels: readonly string[]): boolean {
    if (this.writing > 0) return false
    for (const label of labels) if (!this.labels.has(label)) return false
    return true
  }

  /** These were brought again: a call that began before does not clear them. */
  again(labels: readonly string[], turn: number): void {
    for (const label of labels) if (this.labels.has(label)) this.labels.set(label, turn)
  }

  isArriving(label: string): boolean {
    return this.#arriving.has(label)
  }

  arrive(labels: readonly string[]): void {
    for (const label of labels) this.#arriving.set(label, (this.#arriving.get(label) ?? 0) + 1)
    this.writing++
    this.#view = null
  }

  /** They have arrived, or never will. */
  arrived(labels: readonly string[]): void {
    for (const label of labels) {
      const left = (this.#arriving.get(label) ?? 0) - 1
      if (left > 0) this.#arriving.set(label, left)
      else this.#arriving.delete(label)
    }
    this.writing--
    this.#view = null
  }

  /** Which of the labels that a token brings still count. */
  inherited({ inheritedTaints, jti }: Pick<Identity, 'inheritedTaints' | 'jti'>): readonly string[] {
    if (inheritedTaints.length === 0 || this.#cleansed.size === 0) return inheritedTaints
    return inheritedTaints.filter((label) => !this.#isCleansed(EVERY_TOKEN, label) && !this.#isCleansed(jti, label))
  }

  /** `turn`: a number that grows with each event of any session. */
  apply(event: TaintEvent, version: number, turn: number): void {
    this.version = version
    this.#view = null
    this.#heard(event)
    if (event.t === 'added' || event.t === 'snapshot') for (const label of event.labels) this.labels.set(label, turn)
    if (event.t === 'snapshot') for (const { jti, labels } of event.cleansed) this.#cleanse(jti, labels)
    if (event.t !== 'cleared') return
    for (const label of event.labels) this.labels.delete(label)
    this.#cleanse(event.once ? event.jti : EVERY_TOKEN, event.inherited)
  }

  /** A call with this token. */
  use(now: number, { jti, expiresAt }: Pick<Identity, 'jti' | 'expiresAt'>): void {
    this.usedAt = now
    this.#keepToken(jti, expiresAt)
  }

  /** Forgets tokens that have expired, and what was cleared for them alone. */
  forgetTokens(now: number): void {
    for (const [jti, expiresAt] of this.tokens) {
      if (expiresAt > now) continue
      this.tokens.delete(jti)
      this.#cleansed.delete(jti)
    }
  }

  /** One event that stands for all that were. */
  snapshot(): TaintEvent {
    return {
      t: 'snapshot',
      at: this.usedAt,
      labels: [...this.labels.keys()],
      cleansed: [...this.#cleansed].map(([jti, labels]) => ({ jti, labels: [...labels] })),
      tokens: [...this.tokens].map(([jti, expiresAt]) => ({ jti, expiresAt })),
    }
  }

  #heard(event: TaintEvent): void {
    this.usedAt = Math.max(this.usedAt, event.at)
    this.notedAt = this.usedAt
    if (event.t === 'snapshot') for (const { jti, expiresAt } of event.tokens) this.#keepToken(jti, expiresAt)
    else this.#keepToken(event.jti, event.expiresAt)
  }

  #keepToken(jti: string, expiresAt: number): void {
    this.expiresAt = Math.max(this.expiresAt, expiresAt)
    if (this.tokens.size < TOKENS_MAX) this.tokens.set(jti, expiresAt)
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

/** The same name that revocations have for a session. */
function keyOf({ namespace, agent, session }: TaintedSession['caller']): string {
  return `${namespace}/${agent}/${session}`
}
