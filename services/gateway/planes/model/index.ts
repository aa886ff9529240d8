import { Backoff, type Clock, type Ids, whenReady } from '@plat/core'
import type { Limits } from '@plat/state'
import {
  ALL_ROUTES,
  type Call,
  type Denial,
  deny,
  type Frame,
  type Identity,
  isBesideModels,
  isDenial,
  type Parsed,
  type PricedModel,
  type Reply,
  type RequestContext,
  type Snapshot,
  type Target,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { pendingStream, refusal, terminalError } from './answer.ts'
import type { CachePolicy, ResponseCache } from './cache/cache.ts'
import { pricedOf } from './demand.ts'
import { type CallersModels, type FileLists, listFiles, listModels, type ModelLists } from './directory/listing.ts'
import { TemplateCache } from './events/templates.ts'
import { createFailoverMetrics, type FailoverMetrics } from './metrics.ts'
import { noteForwarded } from './note.ts'
import { type BatchReader, createBatchReader, type JudgeOptions, type JudgingPlane, read } from './read.ts'
import { translatedFor } from './translate/translated.ts'
import type { UploadLimits } from './uploads/spool.ts'
import { Addresses, batchAddress, type Credentials, fileAddress, type ModelEndpoint } from './upstream/endpoint.ts'
import { type Failover, kindOf, type LatencyMeter, type Turn, tryInTurn } from './upstream/failover.ts'
import { type Circuits, type EndpointForward, type Forwarder, Forwarding } from './upstream/forward.ts'
import { EndpointRates } from './upstream/rates.ts'
import { Retries, RetryBudget, type RetryPolicy } from './upstream/retries.ts'

export { type BatchStore, createBatchReview } from './batches/reader.ts'
export { ResponseCache } from './cache/cache.ts'
export { createAnswered, createDemand } from './demand.ts'
export { createMeter } from './meter.ts'
export { createAnswerRedactReview } from './redact/review.ts'
export { modelTexts } from './redact/texts.ts'
export { createKeepReview } from './stored/keep.ts'
export { createModelWords } from './telemetry/words.ts'
export { Spool } from './uploads/spool.ts'

/** Endpoints of a route. */
export interface ModelRoute {
  /** In order of preference. */
  readonly endpoints: readonly [ModelEndpoint, ...ModelEndpoint[]]
  /** Calls are distributed by the latency of endpoints, which is measured. */
  readonly balancing: 'order' | 'weight' | 'latency'
  /** Null: failed requests are not repeated. */
  readonly retries: RetryPolicy | null
  /** Null: responses are not stored. */
  readonly cache: CachePolicy | null
}

/** A call for which the endpoints of a route are ordered. */
export interface OrderedCall {
  /** Tier of the session. */
  readonly tier: string
  /** Kind of call, by which latencies are compared. */
  readonly kind: string
  /** Returns true if the endpoint can serve the call now. */
  isUsable(endpoint: ModelEndpoint): boolean
}

/** Looks up routes. */
export interface ModelRoutes {
  /** Returns the route with this `target.key`; null when it is not in the snapshot. */
  route(snapshot: Snapshot, key: string): ModelRoute | null
  /** Returns the models that a caller may use, by name: with scopes of this prefix, or with any (null). */
  directory(snapshot: Snapshot, identity: Identity, scope: string | null): CallersModels
  readonly credentials: Credentials
  readonly circuits: Circuits
  /** Returns true if data of this class may be sent to a model. */
  allows(dataClass: Target['dataClass'], model: string): boolean
  /** Returns the endpoints in the order in which to try them for a call. */
  inOrder(snapshot: Snapshot, route: ModelRoute, call: OrderedCall): readonly ModelEndpoint[]
  readonly balancer: LatencyMeter
}

export interface ModelPlaneOptions extends UploadLimits, Omit<Forwarder, 'circuits' | 'credentials' | 'templates'> {
  readonly routes: ModelRoutes
  readonly ids: Pick<Ids, 'random'>
  readonly cache: ResponseCache
  readonly metrics: GatewayMetrics
  /** Counts the requests of endpoints. */
  readonly limits: Pick<Limits, 'take'>
  /** Returns why data must not be sent to a jurisdiction, or null when it may. */
  readonly residencyFault: (snapshot: Snapshot, place: Pick<Target, 'jurisdiction' | 'dataClass'>) => string | null
  /** Returns true if the hold of a call covers the price of an endpoint. */
  readonly affords: (call: Call<'target' | 'hold'>, priced: PricedModel) => boolean
  /** Files of callers. */
  readonly files: FileLists
}

/**
 * The plane of `/llm/v1`, `/llm/anthropic` and `/llm/<route>/v1`: the endpoints of OpenAI's and Anthropic's APIs. A request that the provider supports is forwarded
 * unchanged; a chat completion is translated for providers with another API.
 */
export function createModelPlane(options: ModelPlaneOptions): BatchingPlane {
  return new ModelPlane(options)
}

/** The plane, which judges requests of batches with the runner that runs it. */
export interface BatchingPlane extends Plane {
  /** Until it is called, batches are refused. */
  judgeWith(options: JudgeOptions): void
}

class ModelPlane implements BatchingPlane, JudgingPlane, UploadLimits, Forwarder, Failover, ModelLists {
  readonly clock: Clock
  readonly dialer: Forwarder['dialer']
  readonly attemptTimeoutMs: number
  readonly circuits: Circuits
  readonly credentials: Credentials
  readonly rates: EndpointRates
  readonly metrics: FailoverMetrics
  readonly balancer: LatencyMeter
  readonly extraCA: string | null
  readonly contexts: Forwarder['contexts']
  readonly maxBodyBytes: number
  readonly bodyReadTimeoutMs: number
  readonly maxUploadBytes: number
  readonly onSpoolFault: UploadLimits['onSpoolFault']
  readonly spool: UploadLimits['spool']
  readonly #routes: ModelRoutes
  readonly #affords: ModelPlaneOptions['affords']
  readonly #residencyFault: ModelPlaneOptions['residencyFault']
  readonly templates = new TemplateCache()
  readonly #addresses = new Addresses()
  readonly #budgets = new WeakMap<ModelRoute, RetryBudget>()
  readonly #backoff: Backoff
  readonly #cache: ResponseCache
  readonly #lists: FileLists
  #batches: BatchReader | null = null

  constructor(options: ModelPlaneOptions) {
    this.clock = options.clock
    this.dialer = options.dialer
    this.attemptTimeoutMs = options.attemptTimeoutMs
    this.circuits = options.routes.circuits
    this.credentials = options.routes.credentials
    this.rates = new EndpointRates(options.clock, options.limits)
    this.metrics = createFailoverMetrics(options.metrics)
    this.balancer = options.routes.balancer
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS, ids: options.ids })
    this.#affords = options.affords
    this.#cache = options.cache
    this.#lists = options.files
    this.extraCA = options.extraCA
    this.contexts = options.contexts
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyReadTimeoutMs = options.bodyReadTimeoutMs
    this.maxUploadBytes = options.maxUploadBytes
    this.onSpoolFault = options.onSpoolFault
    this.spool = options.spool
    this.#routes = options.routes
    this.#residencyFault = options.residencyFault
  }

  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    const models = (scope: string) => this.#routes.directory(arrival.snapshot, identity, scope)
    return read(arrival, identity, { limits: this, models, batches: this.#batches })
  }

  models({ snapshot, facts: { identity } }: Call<'identity'>): CallersModels {
    return this.#routes.directory(snapshot, identity, null)
  }

  endpoint(snapshot: Snapshot, route: string): ModelEndpoint | null {
    return this.#routes.route(snapshot, route)?.endpoints[0] ?? null
  }

  async request(call: Call<'identity' | 'target' | 'hold'>, endpoint: ModelEndpoint): Promise<Forwarding | null> {
    if (this.unfit(endpoint, call) !== null || this.circuits.isOpen(endpoint)) return null
    const limited = await this.rates.take(endpoint, call)
    const attempt = limited === null ? this.attempt({ call, endpoint, sent: false, movesOn: always }) : null
    return attempt === null || isDenial(attempt) ? null : attempt
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    if (call.server === ALL_ROUTES) return listModels(this, call)
    const route = this.#routes.route(call.snapshot, call.facts.target.key)
    if (route === null) return deny('unknown_route', `no model route named ${call.server}`)
    const sent = head === 'sent'
    noteForwarded(call.wire)
    if (isBesideModels(call.operation)) return this.#stored(call, route, sent)
    const { cache: policy } = route
    if (policy === null || call.body === null) return this.#send(call, route, sent)
    const [first] = route.endpoints
    const endpoints = route.endpoints.filter((one) => this.unfit(one, call) === null)
    return this.#cache.reply(call, { policy, endpoints, first, send: () => this.#send(call, route, sent) })
  }

  #send(
    call: Call<'identity' | 'target' | 'hold'>,
    route: ModelRoute,
    sent: boolean,
  ): Denial | Promise<Reply | Denial> {
    const [endpoint] = route.endpoints
    if (route.endpoints.length > 1 || route.retries !== null) return this.#inTurn(call, route, sent)
    if (!this.credentials.isReady(endpoint))
      return deny('upstream_credential', `the model route ${call.server} has no readable API key`)
    const model = isBesideModels(call.operation) ? null : call.facts.target.tool
    const context = this.#contextFor({ call, endpoint, sent, movesOn: never }, model)
    if (isDenial(context)) return context
    return whenReady(this.rates.take(endpoint, call), forwarded, this, context)
  }

  /** Files and batches are stored at one endpoint, and no other is tried. */
  #stored(
    call: Call<'identity' | 'target' | 'hold'>,
    route: ModelRoute,
    sent: boolean,
  ): Denial | Promise<Reply | Denial> {
    const endpoint = route.endpoints.find((one) => this.unfit(one, call) === null)
    if (endpoint === undefined)
      return deny('upstream_error', `the endpoint of ${call.server} that stores them cannot serve the call`)
    if (!call.method.endsWith('/list'))
      return this.#send(call, { ...route, endpoints: [endpoint], retries: null }, sent)
    const turn = { call, endpoint, sent, movesOn: never }
    const request = (id: string): Forwarding | Denial => {
      const context = this.#contextFor(turn, null)
      if (isDenial(context)) return context
      const addressOf = call.operation === 'model.batch' ? batchAddress : fileAddress
      return new Forwarding(this, { ...context, address: addressOf(endpoint.upstream, call.method, id) })
    }
    return listFiles(this.#lists, call, { endpoint, request })
  }

  #inTurn(call: Call<'identity' | 'target' | 'hold'>, route: ModelRoute, sent: boolean): Promise<Reply | Denial> {
    const { balancing } = route
    const kind = kindOf(call)
    const endpoints = this.#routes.inOrder(call.snapshot, route, {
      tier: call.facts.identity.tier,
      kind,
      isUsable: (one) => this.unfit(one, call) === null && !this.circuits.isOpen(one) && this.rates.wait(one) === 0,
    })
    const measured = balancing === 'latency' ? kind : null
    return tryInTurn(this, { call, endpoints, sent, measured, retries: this.#retriesOf(call, route) })
  }

  #retriesOf({ server }: Call, route: ModelRoute): Retries | null {
    const { retries: policy } = route
    if (policy === null) return null
    const budget = this.#budgets.getOrInsertComputed(route, () => new RetryBudget(this.clock))
    const { clock, metrics } = this
    return new Retries({ route: server, policy, budget, backoff: this.#backoff, clock, metrics })
  }

  batchEndpoint(
    call: Call<'identity' | 'target' | 'hold'>,
    { method, account }: Parameters<JudgingPlane['batchEndpoint']>[1],
  ): ModelEndpoint | Denial {
    const route = this.#routes.route(call.snapshot, call.facts.target.key)
    const endpoint = route?.endpoints.find(
      ({ wire, account: own }) => wire.native.has(method) && (account === null || own === account),
    )
    if (endpoint === undefined || !endpoint.wire.native.has(call.method))
      return deny('not_built', `${call.method} in batches is not built yet in this version for this provider`)
    const reason = this.unfit(endpoint, call)
    if (reason === null) return endpoint
    if (reason === 'model')
      return deny('model_not_allowed', `the model is not allowed for ${call.facts.target.dataClass} data`)
    return reason === 'residency'
      ? deny('residency_denied', 'data of this class may not go to the endpoint of the batch')
      : deny('upstream_error', `the endpoint of ${call.server} that executes batches cannot serve it: ${reason}`)
  }

  judgeWith(options: JudgeOptions): void {
    this.#batches = createBatchReader(this, options)
  }

  unfit(endpoint: ModelEndpoint, call: Call<'target' | 'hold'>): ReturnType<Failover['unfit']> {
    if (!endpoint.wire.methods.has(call.method)) return 'dialect'
    if (call.facts.target.accounts?.has(endpoint.account) === false) return 'account'
    if (!this.credentials.isReady(endpoint)) return 'credential'
    const jurisdiction = endpoint.jurisdictionFor(call.name)
    const { dataClass } = call.facts.target
    if (this.#residencyFault(call.snapshot, { jurisdiction, dataClass }) !== null) return 'residency'
    if (call.facts.target.tool === null || isBesideModels(call.operation)) return null
    const model = endpoint.modelFor(call.name)
    if (model === null || !this.#routes.allows(dataClass, model)) return 'model'
    return call.facts.hold === null || this.#affords(call, pricedOf(endpoint, call)) ? null : 'price'
  }

  attempt(turn: Turn): Forwarding | Denial {
    const { call, endpoint } = turn
    const namesModel = call.facts.target.tool !== null && !isBesideModels(call.operation)
    const context = this.#contextFor(turn, namesModel ? endpoint.modelFor(call.name) : null)
    return isDenial(context) ? context : new Forwarding(this, context)
  }

  /** Returns a denial when the request cannot be translated for the provider. */
  #contextFor({ call, endpoint, sent, movesOn }: Turn, model: string | null): EndpointForward | Denial {
    const translated = translatedFor(call, endpoint, model)
    if (isDenial(translated)) return translated
    const address = this.#addresses.of(endpoint, call, model)
    const clampedTo = call.body?.maxTokens ?? null
    return { call, endpoint, address, model, clampedTo, sent, movesOn, translated }
  }

  keepAlive(call: Call<'identity'>): ReturnType<Plane['keepAlive']> {
    return pendingStream(call.body)
  }

  refuse({ id, wire }: RequestContext, parsed: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    const call = { id, wire, name: parsed?.name ?? null }
    return refusal({ call, denial, now: this.clock.now() })
  }

  abort(call: Call, denial: Denial): readonly Frame[] | null {
    const last = terminalError(call, denial, this.clock.now())
    return last === null ? null : [last]
  }

  /** Frames of this plane have their bytes; a frame without bytes was created elsewhere and is a JSON body. */
  encode(frame: Frame): Uint8Array {
    return frame.raw ?? Buffer.from(JSON.stringify(frame.value))
  }
}

/** Pauses before retries, in milliseconds: the first, and the longest, which is that of `retries.maxWaitSeconds`. */
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = 60_000

const always = () => true
const never = () => false

function forwarded(
  limited: Denial | null,
  plane: Forwarder,
  context: EndpointForward,
): Denial | Promise<Reply | Denial> {
  return limited ?? new Forwarding(plane, context).run()
}
