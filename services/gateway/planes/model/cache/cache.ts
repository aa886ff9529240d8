import { type Clock, LruCache } from '@plat/core'
import { callerOf, callingAgentOf, type Denial, type Identity, isDenial, type Reply } from '../../../call/index.ts'
import type { GatewayMetrics } from '../../../metrics.ts'
import type { CacheResult } from '../methods.ts'
import { answeredBy, noteCached } from '../note.ts'
import { ModelBody } from '../request.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'
import { type CacheableCall, type CacheScope, digestOf, isSelfContained, useOf } from './key.ts'
import { captured, replayOf, type StoredResponse } from './replay.ts'

/** `cache` of a route. */
export interface CachePolicy {
  readonly ttlMs: number
  readonly scope: CacheScope
}

/** The endpoints whose stored responses a call may get, and how it is sent if there is none. */
export interface CacheMiss {
  readonly policy: CachePolicy
  /** Endpoints that the call may be sent to. */
  readonly endpoints: readonly ModelEndpoint[]
  /** The endpoint that responds where none is noted. */
  readonly first: ModelEndpoint
  send(): Denial | Promise<Reply | Denial>
}

export interface ResponseCacheOptions {
  /** Total of all stored responses. */
  readonly maxBytes: number
  readonly clock: Pick<Clock, 'monotonic' | 'every'>
  readonly metrics: GatewayMetrics
  /** Returns whether a caller is revoked: what it has stored is not sent to others. */
  readonly isRevoked: (caller: Identity) => boolean
}

/** Shares of an agent and of a session in the total. */
const AGENT_SHARE = 1 / 4
const SESSION_SHARE = 1 / 8
/** Most stored responses. */
const MAX_ENTRIES = 10_000
/** Largest stored response, in bytes. */
const MAX_RESPONSE_BYTES = 1024 * 1024
/** Weight of an entry beside its response, for keys and the identity of its caller. In bytes. */
const ENTRY_BYTES = 2048
const SWEEP_MS = 10_000

interface Entry extends StoredResponse {
  /** The caller for which it was generated. */
  readonly by: Identity
  /** Monotonic milliseconds. */
  readonly storedAt: number
  readonly ttlMs: number
}

/** Responses of models by everything that they depend on. Bounded in bytes, with a share for each agent and session. */
export class ResponseCache {
  readonly #options: ResponseCacheOptions
  readonly #entries: LruCache<string, Entry>
  /** Keys of the entries of each agent and session, with their weight. */
  readonly #shares = new Map<string, LruCache<string, number>>()
  readonly #count: (route: string, result: CacheResult) => void
  readonly #used: (bytes: number) => void
  #bytes = 0
  readonly close: () => void

  constructor(options: ResponseCacheOptions) {
    this.#options = options
    const { maxBytes, metrics } = options
    this.#entries = new LruCache<string, Entry>({
      maxEntries: MAX_ENTRIES,
      maxWeight: maxBytes,
      weigh,
      onEvicted: (entry, key) => this.#forget(key, entry),
    })
    const counter = metrics.counter('plat_gateway_model_cache_total')
    const gauge = metrics.gauge('plat_gateway_model_cache_bytes')
    this.#count = (route, result) => counter.inc({ route, result })
    this.#used = (bytes) => gauge.set({}, bytes)
    this.close = options.clock.every(SWEEP_MS, () => this.#sweep())
  }

  /** Number of stored responses. */
  get size(): number {
    return this.#entries.size
  }

  /** Returns the stored response to a call, else sends the call and stores its response. */
  async reply(call: CacheableCall, miss: CacheMiss): Promise<Reply | Denial> {
    const { server } = call
    const use = useOf(call.wire)
    const body = call.body instanceof ModelBody && use.stores && isSelfContained(call, call.body) ? call.body : null
    const digest = body === null ? null : await digestOf(call, body, miss.policy.scope)
    if (body === null || digest === null) {
      this.#count(server, 'bypass')
      return miss.send()
    }
    const found = use.reads ? this.#find(call, digest, miss) : null
    if (found !== null) {
      this.#count(server, 'hit')
      noteCached(call.wire, found.endpoint)
      const age = Math.floor((this.#options.clock.monotonic() - found.entry.storedAt) / 1000)
      return replayOf(found.entry, body.dialect, { ...HIT, ...limitHeader(body), age: String(age) })
    }
    this.#count(server, 'miss')
    const reply = await miss.send()
    if (!use.stores || isDenial(reply) || reply.kind !== 'frames') return reply
    const key = keyOf(answeredBy(call) ?? miss.first, call.name, digest)
    let size = 0
    return captured(reply, {
      retain(bytes) {
        size += bytes
        return size <= MAX_RESPONSE_BYTES && call.retain(bytes)
      },
      store: (response) => this.#store(key, response, { by: call.facts.identity, ttlMs: miss.policy.ttlMs }),
    })
  }

  #find({ name }: CacheableCall, digest: string, { endpoints, policy }: CacheMiss) {
    for (const endpoint of endpoints) {
      const key = keyOf(endpoint, name, digest)
      const entry = this.#entries.get(key)
      if (entry === undefined) continue
      if (this.#isValid(entry, policy.ttlMs)) return { endpoint, entry }
      this.#delete(key, entry)
    }
    return null
  }

  /** `ttlMs`: the time that the route has now, which may be shorter than when the response was stored. */
  #isValid({ by, storedAt, ttlMs: storedFor }: Entry, ttlMs: number): boolean {
    const age = this.#options.clock.monotonic() - storedAt
    return age < Math.min(ttlMs, storedFor) && !this.#options.isRevoked(by)
  }

  #store(key: string, { bytes, isStream }: StoredResponse, { by, ttlMs }: Pick<Entry, 'by' | 'ttlMs'>): void {
    const known = this.#entries.peek(key)
    if (known !== undefined) this.#delete(key, known)
    const entry = { bytes, isStream, by, ttlMs, storedAt: this.#options.clock.monotonic() }
    const weight = weigh(entry)
    if (weight > this.#options.maxBytes * SESSION_SHARE) return
    this.#bytes += weight
    this.#entries.set(key, entry)
    for (const [name, share] of sharesOf(by)) this.#shareOf(name, share).set(key, weight)
    this.#used(this.#bytes)
  }

  #shareOf(name: string, share: number): LruCache<string, number> {
    return this.#shares.getOrInsertComputed(
      name,
      () =>
        new LruCache({
          maxEntries: MAX_ENTRIES,
          maxWeight: this.#options.maxBytes * share,
          weigh: (weight) => weight,
          onEvicted: (_, key) => {
            const entry = this.#entries.peek(key)
            if (entry !== undefined) this.#delete(key, entry)
          },
        }),
    )
  }

  #delete(key: string, entry: Entry): void {
    this.#entries.delete(key)
    this.#forget(key, entry)
  }

  /** Releases the shares of an entry that was removed. */
  #forget(key: string, entry: Entry): void {
    this.#bytes -= weigh(entry)
    for (const [name] of sharesOf(entry.by)) {
      const keys = this.#shares.get(name)
      keys?.delete(key)
      if (keys?.size === 0) this.#shares.delete(name)
    }
    this.#used(this.#bytes)
  }

  #sweep(): void {
    for (const [key, entry] of this.#entries) if (!this.#isValid(entry, entry.ttlMs)) this.#delete(key, entry)
  }
}

const HIT = { 'x-plat-cache': 'hit' } as const

function weigh({ bytes }: StoredResponse): number {
  return bytes.byteLength + ENTRY_BYTES
}

/** Names of the shares of a caller, which cannot be equal: sessions have one more slash. */
function sharesOf(caller: Identity): readonly (readonly [name: string, share: number])[] {
  return [
    [`agent ${callingAgentOf(caller)}`, AGENT_SHARE],
    [`session ${callerOf(caller)}`, SESSION_SHARE],
  ]
}

/** The key of an endpoint covers its address, provider, model and credential; the model is the one that it is requested for this name. */
function keyOf(endpoint: ModelEndpoint, name: string | null, digest: string): string {
  return [endpoint.key, endpoint.modelFor(name), digest].join(' ')
}

function limitHeader({ maxTokens }: ModelBody): Record<string, string> {
  return maxTokens === null ? {} : { 'x-plat-max-tokens': String(maxTokens) }
}
