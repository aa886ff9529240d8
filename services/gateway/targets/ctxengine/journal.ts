import { existsSync } from 'node:fs'
import { type Clock, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { JournalFollower, type OpenJournal, openFileJournal, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import type { Identity } from '../../call/index.ts'

/** Events after which the journal is compacted. */
const COMPACT_AFTER_EVENTS = 10_000

const closed = { additionalProperties: false } as const
const session = Type.Object({ namespace: Type.String(), agent: Type.String(), session: Type.String() }, closed)

const keptEvent = Type.Object(
  {
    t: Type.Literal('kept'),
    route: Type.String(),
    /** Key of the endpoint among those of the route. */
    endpoint: Type.String(),
    tenant: Type.String(),
    ...session.properties,
    user: Type.Union([Type.String(), Type.Null()]),
    issuer: Type.String(),
    /** Tokens and sessions whose revocation revokes the session. */
    jti: Type.String(),
    ancestors: Type.Array(Type.String()),
    delegators: Type.Array(session),
    forkedFrom: Type.Array(session),
  },
  closed,
)
const droppedEvent = Type.Object({ t: Type.Literal('dropped') }, closed)

type KeptEvent = Static<typeof keptEvent>
type ContextEvent = KeptEvent | Static<typeof droppedEvent>

/** A context that an engine had when the gateway stopped. */
export interface KeptContext {
  readonly key: string
  readonly route: string
  readonly endpoint: string
  /** As far as revocations and the ID of the context need it. */
  readonly identity: Identity
}

export interface ContextJournalOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: Log
}

/** The contexts that engines have for this gateway, across restarts: those of sessions that are revoked later must be found. */
export class ContextJournal {
  readonly #options: ContextJournalOptions
  readonly #stored = new Map<string, { readonly version: number; readonly event: KeptEvent }>()
  /** Opened with the first context, unless the file exists. */
  #opened: Promise<{
    readonly journal: OpenJournal<ContextEvent>
    readonly follower: JournalFollower<ContextEvent>
  }> | null = null

  private constructor(options: ContextJournalOptions) {
    this.#options = options
  }

  /** Rejects if the file exists and cannot be read. */
  static async open(options: ContextJournalOptions): Promise<ContextJournal> {
    const contexts = new ContextJournal(options)
    if (existsSync(options.path)) await contexts.#open()
    return contexts
  }

  get all(): readonly KeptContext[] {
    return Array.from(this.#stored, ([key, { event }]) => ({ key, ...contextOf(event) }))
  }

  /** Resolves when it is durable. */
  async store(key: string, { route, key: endpoint }: { route: string; key: string }, of: Identity): Promise<void> {
    const { tenant, namespace, agent, session, user, issuer, jti, ancestors } = of
    await this.#append(key, {
      ...{ t: 'kept', route, endpoint, tenant, namespace, agent, session, user, issuer, jti },
      ancestors: [...ancestors],
      delegators: of.delegators.map(bare),
      forkedFrom: of.forkedFrom.map(bare),
    })
  }

  async dropped(key: string): Promise<void> {
    if (this.#stored.has(key)) await this.#append(key, { t: 'dropped' })
  }

  async close(): Promise<void> {
    const opened = await this.#opened
    opened?.follower.close()
    await opened?.journal.close()
  }

  async #append(key: string, event: ContextEvent): Promise<void> {
    const { journal, follower } = await this.#open()
    await journal.append(key, [event])
    if (follower.events >= COMPACT_AFTER_EVENTS)
      await follower.compact(() => Array.from(this.#stored, ([one, last]) => ({ key: one, ...last })))
  }

  #open() {
    this.#opened ??= this.#start()
    return this.#opened
  }

  async #start() {
    const { path, clock, log } = this.#options
    const journal = await openFileJournal<ContextEvent>({ path, clock, decode: decodeEvent })
    const follower = new JournalFollower<ContextEvent>({
      journal,
      apply: ({ key, version, event }) => {
        if (event.t === 'kept') this.#stored.set(key, { version, event })
        else this.#stored.delete(key)
      },
      onFault: (error) => log.error({ error: reasonOf(error) }, 'the journal of contexts failed'),
    })
    try {
      await follower.open()
    } catch (error) {
      await journal.close()
      throw error
    }
    return { journal, follower }
  }
}

function bare({ namespace, agent, session: name }: { namespace: string; agent: string; session: string }) {
  return { namespace, agent, session: name }
}

function decodeEvent(event: unknown): ContextEvent {
  if (Check(keptEvent, event) || Check(droppedEvent, event)) return event
  throw unknownEvent('an event of contexts', event)
}

function contextOf({ t: _, route, endpoint, ...owner }: KeptEvent): Omit<KeptContext, 'key'> {
  const unused = { trustDomain: '', groups: [], verified: null, tier: '', scopes: new Set<string>(), chain: [] }
  const identity = { ...owner, ...unused, expiresAt: 0, jkt: null, forkRoot: null, inheritedTaints: [] }
  return { route, endpoint, identity }
}
