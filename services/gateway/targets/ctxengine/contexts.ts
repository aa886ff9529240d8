import { createHash } from 'node:crypto'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { type Denial, deny, type Identity, isDenial, type SessionRef } from '../../call/index.ts'
import { type Engine, type EngineEndpoint, EngineError } from './engine.ts'
import type { ContextJournal, KeptContext } from './journal.ts'

/** Time between two sweeps, in milliseconds. */
const SWEEP_MS = 1000
/** Length of the id of a context, in hex digits. */
const ID_DIGITS = 32

/** Operations on contexts, as counted. */
export const CONTEXT_OPS = ['create', 'fork', 'drop', 'stale', 'busy', 'error'] as const
export type ContextOp = (typeof CONTEXT_OPS)[number]

export interface ContextsOptions<E extends EngineEndpoint> {
  readonly engine: Pick<Engine<E>, 'create' | 'drop' | 'move'>
  readonly idleMs: number
  readonly maxContexts: number
  /** Whether a caller is revoked, and not only suspended. */
  readonly isRevoked: (who: Identity) => boolean
  /** Saves the context of a revoked session before it is dropped; null: it is not saved. */
  readonly quarantine: ((context: Context<E>) => Promise<void>) | null
  readonly onOp: (op: ContextOp) => void
  readonly journal: Pick<ContextJournal, 'all' | 'store' | 'dropped'>
  /** Returns the endpoint of a context that an earlier run created; null: it is in no route. */
  readonly endpointOf: (route: string, key: string) => E | null
  readonly clock: Clock
  readonly log: Log
}

/** Context of a session in an engine. */
export interface Context<E> {
  readonly id: string
  readonly endpoint: E
  readonly identity: Identity
}

interface Entry<E> extends Context<E> {
  /** Resolves when the engine has it. */
  ready: Promise<Denial | null>
  /** Calls that use it. */
  readonly calls: Set<string>
  usedAt: number
  /** It is being saved or dropped. */
  isLeaving: boolean
}

/** Binds each session to a context in the engine: created at first use, forked with its session, dropped when idle or by LRU. */
export class Contexts<E extends EngineEndpoint> {
  readonly #options: ContextsOptions<E>
  /** By endpoint and session, the least recently used first. */
  readonly #entries = new Map<string, Entry<E>>()
  readonly #ofCall = new Map<string, Entry<E>>()
  /** Contexts of an earlier run whose routes are not known yet. */
  readonly #earlier: Map<string, KeptContext>
  readonly #sweeping: PeriodicTask

  constructor(options: ContextsOptions<E>) {
    this.#options = options
    this.#earlier = new Map(options.journal.all.map((context) => [context.key, context]))
    const onFault = (error: unknown) => options.log.error({ error: reasonOf(error) }, 'contexts could not be dropped')
    this.#sweeping = new PeriodicTask({ clock: options.clock, everyMs: SWEEP_MS, job: () => this.sweep(), onFault })
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns the id of the caller's context in the engine, which then exists. `isStale`: the engine did not know it. */
  async bind(
    call: { readonly id: string },
    identity: Identity,
    endpoint: E,
    isStale: boolean,
  ): Promise<string | Denial> {
    const key = keyOf(endpoint, identity)
    const known = this.#entries.get(key)
    if (isStale) this.#options.onOp('stale')
    const entry = known ?? this.#add(key, identity, endpoint)
    if (isDenial(entry)) return entry
    if (known !== undefined && isStale) entry.ready = this.#create(entry)
    this.#touch(key, entry)
    entry.calls.add(call.id)
    this.#ofCall.set(call.id, entry)
    const denial = (await entry.ready) ?? (known === undefined ? await this.#keep(key, entry) : null)
    if (denial === null) return entry.id
    this.release(call.id)
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
    return denial
  }

  /** Called when a call has ended. */
  release(call: string): void {
    const entry = this.#ofCall.get(call)
    if (entry === undefined) return
    this.#ofCall.delete(call)
    entry.calls.delete(call)
    entry.usedAt = this.#options.clock.monotonic()
  }

  /** The engine uses the context for another request. */
  busy(): void {
    this.#options.onOp('busy')
  }

  /** Returns the contexts of a session. */
  of({ namespace, agent, session }: SessionRef): readonly Context<E>[] {
    return [...this.#entries.values()].filter(
      ({ identity: one }) => one.namespace === namespace && one.agent === agent && one.session === session,
    )
  }

  /** Drops idle contexts, and those of revoked sessions once they are saved. */
  async sweep(): Promise<void> {
    const { idleMs, isRevoked, clock } = this.#options
    this.#takeEarlier()
    const now = clock.monotonic()
    for (const [key, entry] of [...this.#entries]) {
      if (entry.isLeaving) continue
      const isIdle = entry.calls.size === 0 && now - entry.usedAt >= idleMs
      if (isRevoked(entry.identity)) await this.#quarantine(key, entry)
      else if (isIdle) await this.#drop(key, entry)
    }
  }

  close(): Promise<void> {
    return this.#sweeping.close()
  }

  /** Continues with contexts of an earlier run, once their routes are known. */
  #takeEarlier(): void {
    const { endpointOf, clock } = this.#options
    for (const [key, { route, endpoint: name, identity }] of this.#earlier) {
      const endpoint = endpointOf(route, name)
      if (endpoint === null) continue
      this.#earlier.delete(key)
      if (this.#entries.has(key)) continue
      const unused = { calls: new Set<string>(), usedAt: clock.monotonic(), isLeaving: false, ready: NOTHING }
      this.#entries.set(key, { id: idOf(endpoint, identity), endpoint, identity, ...unused })
    }
  }

  /** Returns null when the context is durably known. */
  async #keep(key: string, { endpoint, identity }: Context<E>): Promise<Denial | null> {
    try {
      await this.#options.journal.store(key, endpoint, identity)
      return null
    } catch (error) {
      this.#options.log.error({ error: reasonOf(error) }, 'a context could not be stored in the journal of contexts')
      return deny('state_unavailable', 'the gateway could not store that the session has a context')
    }
  }

  #touch(key: string, entry: Entry<E>): void {
    entry.usedAt = this.#options.clock.monotonic()
    this.#entries.delete(key)
    this.#entries.set(key, entry)
  }

  #add(key: string, identity: Identity, endpoint: E): Entry<E> | Denial {
    const { maxContexts, clock } = this.#options
    if (this.#entries.size >= maxContexts) {
      const oldest = [...this.#entries].find(([, { calls }]) => calls.size === 0)
      if (oldest === undefined) return deny('backlog_full', 'all contexts of ctxengine.maxContexts are in use')
      void this.#drop(...oldest)
    }
    const id = idOf(endpoint, identity)
    const entry: Entry<E> = {
      id,
      endpoint,
      identity,
      calls: new Set<string>(),
      usedAt: clock.monotonic(),
      isLeaving: false,
      ready: NOTHING,
    }
    entry.ready = this.#create(entry)
    this.#entries.set(key, entry)
    return entry
  }

  /** A fork begins as a copy of its parent's context, if the engine still has that. */
  async #create({ id, endpoint, identity }: Context<E>): Promise<Denial | null> {
    const { engine, onOp } = this.#options
    const [parent] = identity.forkedFrom
    try {
      if (parent !== undefined && (await this.#fork(endpoint, id, idOf(endpoint, { ...identity, ...parent }))))
        return null
      if ((await engine.create(endpoint, id, null)) === 'created') onOp('create')
      return null
    } catch (error) {
      const isBusy = error instanceof EngineError && error.status === 429
      onOp(isBusy ? 'busy' : 'error')
      this.#options.log.warn({ error: reasonOf(error) }, 'the context engine could not provide a context')
      return isBusy
        ? deny('rate_limited', 'the context engine is busy')
        : deny('upstream_error', 'the context engine could not provide a context')
    }
  }

  async #fork(endpoint: E, id: string, from: string): Promise<boolean> {
    try {
      if ((await this.#options.engine.create(endpoint, id, from)) === 'created') this.#options.onOp('fork')
      return true
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return false
      throw error
    }
  }

  async #drop(key: string, entry: Entry<E>): Promise<void> {
    const { engine, onOp, log } = this.#options
    this.#entries.delete(key)
    try {
      await entry.ready
      await engine.drop(entry.endpoint, entry.id)
      await this.#options.journal.dropped(key)
      onOp('drop')
    } catch (error) {
      onOp('error')
      log.warn({ error: reasonOf(error) }, 'a context could not be dropped; the engine keeps it')
    }
  }

  /** A context that cannot be saved stays in the engine, and is tried again. */
  async #quarantine(key: string, entry: Entry<E>): Promise<void> {
    const { quarantine, onOp, log } = this.#options
    entry.isLeaving = true
    try {
      await quarantine?.(entry)
    } catch (error) {
      // Another replica has saved and dropped it, or the engine has lost it.
      if (error instanceof EngineError && error.status === 404) return await this.#drop(key, entry)
      entry.isLeaving = false
      onOp('error')
      log.error({ context: entry.id, error: reasonOf(error) }, 'the context of a revoked session could not be saved')
      return
    }
    await this.#drop(key, entry)
  }
}

const NOTHING = Promise.resolve(null)

function keyOf(endpoint: EngineEndpoint, identity: Identity): string {
  return `${endpoint.key}/${idOf(endpoint, identity)}`
}

/** The same in every replica and after a restart; the engine learns no names. */
function idOf(
  { key }: EngineEndpoint,
  { tenant, namespace, agent, session }: SessionRef & { readonly tenant: string },
): string {
  const name = JSON.stringify([key, tenant, namespace, agent, session])
  return createHash('sha256').update(name).digest('hex').slice(0, ID_DIGITS)
}
