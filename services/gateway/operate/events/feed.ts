import { type Clock, type Ids, rfc3339 } from '@plat/core'
import { boundedEvent, denialOf, eventOf, type GatewayEvent } from './event.ts'

/** Events that a reader can resume from. */
const RING_EVENTS = 2_000
/** Events are still collected this long after the last reader left, so that it can resume, in milliseconds. */
const LINGER_MS = 60_000
/** Counts of calls and changes of health are sent this often, in milliseconds. */
const TICK_MS = 1_000
/** Events of calls and sessions (refusals, new and ended sessions) of one namespace in one tick; more are counted only, so that they displace no others. */
const CALL_EVENTS_PER_TICK = 20
/** Namespaces that are counted in one tick. */
const NAMESPACES_MAX = 1_000

export interface NumberedEvent extends GatewayEvent {
  /** From 1, without gaps. */
  readonly seq: number
  /** RFC 3339. */
  readonly at: string
}

/** Calls of one namespace in one tick. */
export interface CallCount {
  calls: number
  denied: number
  /** Events that were not sent. */
  suppressed: number
  events: number
}

interface SessionName {
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** Receives events; none of its functions throws. */
export interface EventReader {
  event(event: NumberedEvent): void
  counts(counts: ReadonlyMap<string, Readonly<CallCount>>): void
  /** No further event follows. */
  end(): void
}

export interface EventFeedOptions {
  readonly clock: Clock
  readonly ids: Pick<Ids, 'uuid'>
  /** Returns the names of what is not well. */
  readonly problems: () => readonly string[]
}

/**
 * Events of this gateway for readers of `GET /v1/events`, in a bounded ring. Nothing is collected while there is no reader: then every function
 * returns at once and allocates nothing.
 */
export class EventFeed {
  readonly #options: EventFeedOptions
  /** Distinguishes numbers of this process from those of others. */
  readonly instance: string
  readonly #readers = new Set<EventReader>()
  #ring: NumberedEvent[] = []
  #seq = 0
  #counts = new Map<string, CallCount>()
  #problems = ''
  #isCollecting = false
  #stopTicking: (() => void) | null = null
  #cancelLinger: (() => void) | null = null

  constructor(options: EventFeedOptions) {
    this.#options = options
    this.instance = options.ids.uuid()
  }

  get seq(): number {
    return this.#seq
  }

  get isCollecting(): boolean {
    return this.#isCollecting
  }

  /** Adds a reader. Returns a function that removes it. */
  follow(reader: EventReader): () => void {
    this.#readers.add(reader)
    this.#cancelLinger?.()
    this.#cancelLinger = null
    if (!this.#isCollecting) this.#begin()
    return () => {
      if (this.#readers.delete(reader) && this.#readers.size === 0) this.#linger()
    }
  }

  /** Returns the events after `seq` of this process, or null if they are no longer known. */
  after(instance: string, seq: number): readonly NumberedEvent[] | null {
    const first = this.#seq - this.#ring.length
    if (instance !== this.instance || seq < first || seq > this.#seq) return null
    return this.#ring.slice(seq - first)
  }

  add(event: GatewayEvent): void {
    if (this.#isCollecting) this.#add(event)
  }

  /** Called with each record that is not of a call. */
  readonly record = (rec: Parameters<typeof eventOf>[0]): void => {
    if (!this.#isCollecting) return
    const event = eventOf(rec)
    if (event !== null) this.#add(event)
  }

  /** Called with the last record of each call. */
  readonly see = (rec: Readonly<Record<string, unknown>>): void => {
    if (!this.#isCollecting || typeof rec.namespace !== 'string') return
    const count = this.#countOf(rec.namespace)
    if (count === null) return
    count.calls++
    const denial = denialOf(rec)
    if (denial === null) return
    count.denied++
    this.#addOfCall(denial, count)
  }

  /** Called with the first call of each session. */
  readonly sessionStarted = (session: SessionName): void => this.#addOfSession('session.started', session)

  /** Called when every further call of a session is refused. */
  readonly sessionEnded = (session: SessionName): void => this.#addOfSession('session.ended', session)

  /** Forgets what a reader could resume from: each loads everything again. */
  forget(): void {
    this.#ring = []
    this.#seq++
  }

  close(): void {
    for (const reader of [...this.#readers]) reader.end()
    this.#readers.clear()
    this.#stop()
  }

  #begin(): void {
    this.#isCollecting = true
    this.#problems = this.#options.problems().join()
    this.#stopTicking = this.#options.clock.every(TICK_MS, () => this.#tick())
  }

  #linger(): void {
    this.#cancelLinger = this.#options.clock.after(LINGER_MS, () => this.#stop())
  }

  #stop(): void {
    this.#isCollecting = false
    this.#cancelLinger?.()
    this.#stopTicking?.()
    this.#cancelLinger = null
    this.#stopTicking = null
    this.#ring = []
    this.#counts.clear()
    // Later events get no number, so a reader must not resume from before.
    this.#seq++
  }

  #tick(): void {
    const problems = this.#options.problems()
    const text = problems.join()
    if (text !== this.#problems) {
      this.#problems = text
      this.#add({ type: 'health.changed', namespace: null, data: { problems } })
    }
    if (this.#counts.size === 0) return
    const counts = this.#counts
    this.#counts = new Map()
    for (const reader of this.#readers) reader.counts(counts)
  }

  /** Null: too many namespaces in this tick. */
  #countOf(namespace: string): CallCount | null {
    const known = this.#counts.get(namespace)
    if (known !== undefined) return known
    if (this.#counts.size >= NAMESPACES_MAX) return null
    const count = { calls: 0, denied: 0, suppressed: 0, events: 0 }
    this.#counts.set(namespace, count)
    return count
  }

  #addOfSession(type: string, { namespace, agent, session }: SessionName): void {
    if (!this.#isCollecting) return
    const count = this.#countOf(namespace)
    if (count !== null) this.#addOfCall({ type, namespace, data: { namespace, agent, session } }, count)
  }

  #addOfCall(event: GatewayEvent, count: CallCount): void {
    if (count.events >= CALL_EVENTS_PER_TICK) {
      count.suppressed++
      return
    }
    count.events++
    this.#add(event)
  }

  #add(event: GatewayEvent): void {
    const numbered = { ...boundedEvent(event), seq: ++this.#seq, at: rfc3339(this.#options.clock.now()) }
    this.#ring.push(numbered)
    if (this.#ring.length > RING_EVENTS) this.#ring.shift()
    for (const reader of this.#readers) reader.event(numbered)
  }
}
