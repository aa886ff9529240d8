import type { Clock } from '@plat/core'
import {
  type Arrival,
  type Call,
  type Denial,
  deny,
  type Frame,
  type Parsed,
  type Reply,
  type Snapshot,
} from '../../call/index.ts'
import type { Plane } from '../../pipeline/plane.ts'
import type { BodyLimits } from '../wire/body.ts'
import { STREAM_HEADERS } from '../wire/headers.ts'
import { commentEvent } from '../wire/sse.ts'
import { refusal, terminalError } from './answer.ts'
import { Endpoints } from './endpoint.ts'
import { type Forwarder, Forwarding } from './forward.ts'
import { ModelFrame } from './frame.ts'
import { read } from './read.ts'
import { ModelBody } from './request.ts'

export { createDemand } from './demand.ts'
export { createMeter, type Price } from './meter.ts'
export { ModelBody, type ModelRequest, withMaxTokens } from './request.ts'

/** A route as the plane needs it. */
export interface ModelRoute {
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /** Null: the upstream takes no key. */
  readonly apiKeyFile: string | null
}

/** Where the plane finds routes. */
export interface ModelRoutes {
  /** By `target.key`; null: it is gone from the snapshot. */
  route(snapshot: Snapshot, key: string): ModelRoute | null
  /** The key in a file; null: it holds none that can be read. */
  apiKey(path: string): string | null
}

export interface ModelPlaneOptions extends BodyLimits, Forwarder {
  readonly routes: ModelRoutes
}

/** The plane of `/llm/<route>/v1`: OpenAI's chat completions and models, relayed and never translated. */
export function createModelPlane(options: ModelPlaneOptions): Plane {
  return new ModelPlane(options)
}

class ModelPlane implements Plane, BodyLimits, Forwarder {
  readonly clock: Clock
  readonly dialer: Forwarder['dialer']
  readonly upstreamTimeoutMs: number
  readonly extraCA: string | null
  readonly maxBodyBytes: number
  readonly bodyReadTimeoutMs: number
  readonly #routes: ModelRoutes
  readonly #endpoints = new Endpoints()

  constructor(options: ModelPlaneOptions) {
    this.clock = options.clock
    this.dialer = options.dialer
    this.upstreamTimeoutMs = options.upstreamTimeoutMs
    this.extraCA = options.extraCA
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyReadTimeoutMs = options.bodyReadTimeoutMs
    this.#routes = options.routes
  }

  read(arrival: Arrival): Parsed | Denial | Promise<Parsed | Denial> {
    return read(arrival, this)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    const route = this.#routes.route(call.snapshot, call.facts.target.key)
    if (route === null) return deny('unknown_route', `no model route named ${call.server}`)
    const apiKey = route.apiKeyFile === null ? null : this.#routes.apiKey(route.apiKeyFile)
    if (route.apiKeyFile !== null && apiKey === null)
      return deny('upstream_credential', `the model route ${call.server} has no readable API key`)
    const clampedTo = call.body?.maxTokens ?? null
    const endpoint = this.#endpoints.of(route.upstream, call)
    return new Forwarding(this, { call, endpoint, apiKey, clampedTo, sent: head === 'sent' }).run()
  }

  held(call: Call<'identity'>): ReturnType<Plane['held']> {
    if (!(call.body instanceof ModelBody) || !call.body.request.stream) return null
    const beat = () => ModelFrame.event(commentEvent('waiting for approval'))
    return { head: { status: 200, headers: STREAM_HEADERS }, beat }
  }

  refuse(_: Arrival, __: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return refusal(denial)
  }

  abort(_: Call, denial: Denial): readonly Frame[] {
    return [terminalError(denial)]
  }

  /** Frames of this plane carry their bytes; only what others made has none, and stands for a JSON body. */
  encode(frame: Frame): Uint8Array {
    return frame.raw ?? Buffer.from(JSON.stringify(frame.value))
  }
}
