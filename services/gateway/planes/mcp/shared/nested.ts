import { Readable } from 'node:stream'
import { type Ids, member } from '@plat/core'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  type Identity,
  isDenial,
  type Parsed,
  type RequestContext,
  type WireRequest,
} from '../../../call/index.ts'
import { type NestedCall, type Plane, PlaneAround, type RunNested, type Sink } from '../../../pipeline/index.ts'
import type { SharedRequest } from '../message.ts'
import type { ServerPlane } from '../options.ts'
import { type Opened, parseMessage, readKnown, readStream } from '../read.ts'
import type { Sealed } from '../seal/seal.ts'
import { type CollectedMessage, CollectedResponse } from './collect.ts'

/** The request of a client. */
export interface Arrival extends Pick<RequestContext, 'wire' | 'signal' | 'retain'> {
  /** Its end does not end what was started for it; a drain does, at once. */
  readonly isDetached?: boolean
}

/** A request to one server that is part of a request at the address of all servers. */
export interface ServerRequest {
  /** The request that this one is part of, and ends with. */
  readonly arrival: Arrival
  readonly identity: Identity
  readonly server: string
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  /** The message of a POST. */
  readonly message: object | null
  /** The server's session; null: none. */
  readonly session: Sealed | null
  /** Null: the response is as at the server's address. */
  readonly shared: SharedRequest | null
}

/** A response that was collected. */
export interface ServerResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Null: there is no JSON-RPC response. */
  readonly message: CollectedMessage | null
}

/** Sends nested requests, each governed and recorded as a request to the address of its server. */
export class NestedRequests {
  readonly #plane: ServerPlane
  readonly #traced: (plane: Plane) => Plane
  readonly #run: RunNested
  readonly #ids: Ids

  constructor({ plane, traced, run, ids }: NestedOptions) {
    this.#plane = plane
    this.#traced = traced
    this.#run = run
    this.#ids = ids
  }

  /** Starts a request whose response goes to `sink`. `denialOf` returns why the call was refused, once it has ended; null: it was not. */
  start(request: ServerRequest, sink: Sink): NestedCall & { denialOf(): Denial | null } {
    const plane = new NestedPlane(this.#plane, request)
    const wire = wireOf(request)
    const { identity, arrival } = request
    const endsAtDrain = arrival.isDetached === true
    const call = this.#run({ id: this.#ids.uuid(), identity, wire, plane: this.#traced(plane), sink, endsAtDrain })
    return { ...call, denialOf: () => plane.denial }
  }

  /**
   * Resolves to the whole response, or to the denial with which the call was refused. The call ends with the request that it is part of, and after
   * `ms` at the latest. Never rejects.
   */
  async fetch(request: ServerRequest, { ms, maxBytes }: ResponseLimits): Promise<ServerResponse | Denial> {
    const { arrival, server } = request
    let bytes = 0
    const retain = (more: number) => {
      bytes += more
      return bytes <= maxBytes && arrival.retain(more)
    }
    const tooLarge = deny('upstream_error', `${server} sent more than the gateway can hold for this request`)
    const full = Promise.withResolvers<void>()
    const sink = new CollectedResponse(retain, full.resolve)
    const call = this.start(request, sink)
    void full.promise.then(() => call.stop('denied', tooLarge))
    const leave = () => call.stop('client', null)
    const late = deny('upstream_timeout', `${server} did not respond within ${ms} ms`)
    const cancel = this.#plane.clock.after(ms, () => call.stop('deadline', late))
    if (arrival.signal.aborted) leave()
    else arrival.signal.addEventListener('abort', leave)
    await call.ended
    cancel()
    arrival.signal.removeEventListener('abort', leave)
    const denial = call.denialOf()
    if (denial !== null) return denial
    if (sink.isFull) return tooLarge
    if (sink.head === null || !sink.complete) return deny('upstream_error', `${server} sent no complete response`)
    return { status: sink.head.status, headers: sink.head.headers, message: sink.message() }
  }
}

export interface ResponseLimits {
  readonly ms: number
  readonly maxBytes: number
}

export interface NestedOptions {
  readonly plane: ServerPlane
  readonly traced: (plane: Plane) => Plane
  readonly run: RunNested
  readonly ids: Ids
}

function wireOf({ arrival, server, method, headers, message }: ServerRequest): WireRequest {
  const { remote, trace } = arrival.wire
  const { traceparent = trace?.traceparent, tracestate } = arrival.wire.headers
  return {
    method,
    path: `/mcp/${server}`,
    query: '',
    headers: {
      accept: 'application/json, text/event-stream',
      ...(message !== null && { 'content-type': 'application/json' }),
      ...(typeof traceparent === 'string' && { traceparent }),
      ...(typeof tracestate === 'string' && { tracestate }),
      ...headers,
    },
    body: Readable.from([]),
    remote,
    note: undefined,
    trace: undefined,
  }
}

/** The plane of one nested request, whose message the gateway wrote. */
class NestedPlane extends PlaneAround {
  readonly #plane: ServerPlane
  readonly #request: ServerRequest
  denial: Denial | null = null

  constructor(plane: ServerPlane, request: ServerRequest) {
    super(plane)
    this.#plane = plane
    this.#request = request
  }

  override read(arrival: RequestContext, identity: Identity): Parsed | Denial {
    const { server, shared, session, method, message } = this.#request
    const opened: Opened = { reader: this.#plane, arrival, identity, server, shared, session }
    if (method !== 'POST') return readStream(opened, method)
    const bytes = Buffer.from(JSON.stringify(message))
    const parsed = parseMessage(bytes)
    return isDenial(parsed) ? parsed : readKnown(opened, bytes, parsed)
  }

  override endsWork(arrival: RequestContext, parsed: Parsed | null): boolean {
    if (parsed !== null) return super.endsWork(arrival, parsed)
    const { method, message } = this.#request
    return method === 'DELETE' || member(message, 'method') === 'notifications/cancelled'
  }

  override keepAlive(): null {
    return null
  }

  override refuse(arrival: RequestContext, parsed: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    this.denial = denial
    return super.refuse(arrival, parsed, denial)
  }

  override abort(call: Call, denial: Denial): readonly Frame[] | null {
    this.denial = denial
    return super.abort(call, denial)
  }
}
