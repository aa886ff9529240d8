import type { Clock } from '@plat/core'
import type { Limits } from '@plat/state'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
  type Snapshot,
  type Target,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Plane } from '../../pipeline/plane.ts'
import type { BodyLimits } from '../wire/body.ts'
import { pendingStream, refusal, terminalError } from './answer.ts'
import { type PricedModel, pricedOf } from './demand.ts'
import { dialectOfPath } from './dialects/all.ts'
import { TemplateCache } from './events/templates.ts'
import type { SkipReason } from './methods.ts'
import { createFailoverMetrics, type FailoverMetrics } from './metrics.ts'
import { read } from './read.ts'
import { translatedFor } from './translate/translated.ts'
import { Addresses, type Credentials, type ModelEndpoint } from './upstream/endpoint.ts'
import { type Failover, type Turn, tryInTurn } from './upstream/failover.ts'
import { type Circuits, type EndpointForward, type Forwarder, Forwarding } from './upstream/forward.ts'
import { EndpointRates } from './upstream/rates.ts'

export { createAnswered, createDemand } from './demand.ts'
export { createMeter } from './meter.ts'
export { createAnswerRedactReview } from './redact/review.ts'
export { modelTexts } from './redact/texts.ts'
export { createModelWords } from './telemetry/words.ts'

/** A route as the plane needs it. */
export interface ModelRoute {
  /** In the order in which they are asked. */
  readonly endpoints: readonly [ModelEndpoint, ...ModelEndpoint[]]
}

/** Where the plane finds routes. */
export interface ModelRoutes {
  /** By `target.key`; null: it is gone from the snapshot. */
  route(snapshot: Snapshot, key: string): ModelRoute | null
  readonly credentials: Credentials
  readonly circuits: Circuits
  /** Whether data of this class may go to a model. */
  allows(dataClass: Target['dataClass'], model: string): boolean
  /** The endpoints in the order in which a session of this tier asks them. */
  inOrder(snapshot: Snapshot, route: ModelRoute, tier: string): readonly ModelEndpoint[]
}

export interface ModelPlaneOptions extends BodyLimits, Omit<Forwarder, 'circuits' | 'credentials' | 'templates'> {
  readonly routes: ModelRoutes
  readonly metrics: GatewayMetrics
  /** Counts the requests of endpoints. */
  readonly limits: Pick<Limits, 'take'>
  /** Why the data of a call must not go to a place; null: it may. */
  readonly residencyFault: (snapshot: Snapshot, place: Pick<Target, 'jurisdiction' | 'dataClass'>) => string | null
  /** Whether what is held for a call covers it at the price of an endpoint. */
  readonly affords: (call: Call<'target' | 'hold'>, priced: PricedModel) => boolean
}

/**
 * The plane of `/llm/<route>/v1`: the endpoints of OpenAI's and Anthropic's APIs. What the provider of a route speaks as well is relayed
 * as it is; a chat completion is translated for one that only speaks its own dialect.
 */
export function createModelPlane(options: ModelPlaneOptions): Plane {
  return new ModelPlane(options)
}

class ModelPlane implements Plane, BodyLimits, Forwarder, Failover {
  readonly clock: Clock
  readonly dialer: Forwarder['dialer']
  readonly attemptTimeoutMs: number
  readonly circuits: Circuits
  readonly credentials: Credentials
  readonly rates: EndpointRates
  readonly metrics: FailoverMetrics
  readonly extraCA: string | null
  readonly maxBodyBytes: number
  readonly bodyReadTimeoutMs: number
  readonly #routes: ModelRoutes
  readonly #affords: ModelPlaneOptions['affords']
  readonly #residencyFault: ModelPlaneOptions['residencyFault']
  readonly templates = new TemplateCache()
  readonly #addresses = new Addresses()

  constructor(options: ModelPlaneOptions) {
    this.clock = options.clock
    this.dialer = options.dialer
    this.attemptTimeoutMs = options.attemptTimeoutMs
    this.circuits = options.routes.circuits
    this.credentials = options.routes.credentials
    this.rates = new EndpointRates(options.clock, options.limits)
    this.metrics = createFailoverMetrics(options.metrics)
    this.#affords = options.affords
    this.extraCA = options.extraCA
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyReadTimeoutMs = options.bodyReadTimeoutMs
    this.#routes = options.routes
    this.#residencyFault = options.residencyFault
  }

  read(arrival: RequestContext): Parsed | Denial | Promise<Parsed | Denial> {
    return read(arrival, this)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    const route = this.#routes.route(call.snapshot, call.facts.target.key)
    if (route === null) return deny('unknown_route', `no model route named ${call.server}`)
    const sent = head === 'sent'
    const [endpoint] = route.endpoints
    if (route.endpoints.length > 1) {
      const endpoints = this.#routes.inOrder(call.snapshot, route, call.facts.identity.tier)
      return tryInTurn(this, { call, endpoints, sent })
    }
    if (!this.credentials.isReady(endpoint))
      return deny('upstream_credential', `the model route ${call.server} has no readable API key`)
    const passage = this.#passage({ call, endpoint, sent, spare: false }, call.facts.target.tool)
    if (isDenial(passage)) return passage
    const limited = this.rates.take(endpoint, call.id)
    if (limited instanceof Promise) return limited.then((denial) => denial ?? new Forwarding(this, passage).run())
    return limited ?? new Forwarding(this, passage).run()
  }

  unfit(endpoint: ModelEndpoint, call: Call<'target' | 'hold'>): SkipReason | null {
    if (!endpoint.wire.methods.has(call.method)) return 'dialect'
    if (!this.credentials.isReady(endpoint)) return 'credential'
    const jurisdiction = endpoint.jurisdictionFor(call.name)
    const { dataClass } = call.facts.target
    if (this.#residencyFault(call.snapshot, { jurisdiction, dataClass }) !== null) return 'residency'
    if (call.facts.target.tool === null) return null
    const model = endpoint.modelFor(call.name)
    if (model === null || !this.#routes.allows(dataClass, model)) return 'model'
    return call.facts.hold === null || this.#affords(call, pricedOf(endpoint, call)) ? null : 'price'
  }

  attempt(turn: Turn): Forwarding | Denial {
    const { call, endpoint } = turn
    const passage = this.#passage(turn, call.facts.target.tool === null ? null : endpoint.modelFor(call.name))
    return isDenial(passage) ? passage : new Forwarding(this, passage)
  }

  /** A denial: the provider has no word for something in the request. */
  #passage({ call, endpoint, sent, spare }: Turn, model: string | null): EndpointForward | Denial {
    const translated = endpoint.wire.speaks === 'openai' ? null : translatedFor(call, endpoint, model)
    if (isDenial(translated)) return translated
    const address = this.#addresses.of(endpoint, call, model)
    const clampedTo = call.body?.maxTokens ?? null
    return { call, endpoint, address, model, clampedTo, sent, spare, translated }
  }

  keepAlive(call: Call<'identity'>): ReturnType<Plane['keepAlive']> {
    return pendingStream(call.body)
  }

  refuse({ wire }: RequestContext, _: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return refusal(denial, dialectOfPath(wire.path))
  }

  abort({ body }: Call, denial: Denial): readonly Frame[] {
    return [terminalError(denial, body)]
  }

  /** Frames of this plane carry their bytes; only what others made has none, and stands for a JSON body. */
  encode(frame: Frame): Uint8Array {
    return frame.raw ?? Buffer.from(JSON.stringify(frame.value))
  }
}
