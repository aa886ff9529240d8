import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Ids, Slices } from '@plat/core'
import type { HoldItem } from '@plat/state'
import {
  type BatchRequests,
  type Call,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
  type WireRequest,
} from '../../../call/index.ts'
import { type Plane, PlaneAround, type RunNested, type Sink } from '../../../pipeline/index.ts'
import { pricedOf } from '../demand.ts'
import { ModelBody, upstreamBody } from '../request.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'
import { type BatchRequest, requestDenial } from './requests.ts'

type JudgedCall = Call<'identity' | 'target' | 'hold'>

/** The plane whose requests are judged. */
export interface JudgingPlane extends Plane {
  /** Returns the endpoint that would execute a request in a batch: of this account; null: of any. */
  batchEndpoint(
    call: JudgedCall,
    batch: { readonly method: string; readonly account: string | null },
  ): ModelEndpoint | Denial
}

export interface JudgeOptions {
  readonly run: RunNested
  readonly ids: Pick<Ids, 'uuid'>
  /** Adds up what requests would hold. */
  sum(): { add(items: readonly HoldItem[]): void; readonly items: readonly HoldItem[] }
}

/** The requests to judge. */
export interface Judging {
  readonly arrival: RequestContext
  readonly identity: Identity
  readonly server: string
  /** `batches` or `messages/batches`. */
  readonly method: string
  /** The account that stores the file of the requests; null: none does yet. */
  readonly account: string | null
  readonly requests: AsyncIterable<BatchRequest | Denial>
  /** Called with each request as its provider is to get it, which may differ from what the caller sent. A denial ends the judgement. */
  judged(bytes: Uint8Array, isChanged: boolean): null | Denial | Promise<Denial | null>
}

/**
 * Judges each request of a batch as a call, without sending it: scope, route, model, residency, class of data, policies, redaction, guards and budgets.
 * The first one that would be denied is the only one with a record.
 */
export class BatchJudge {
  readonly #plane: JudgingPlane
  readonly #options: JudgeOptions

  constructor(plane: JudgingPlane, options: JudgeOptions) {
    this.#plane = plane
    this.#options = options
  }

  async judge(judging: Judging): Promise<BatchRequests | Denial> {
    const { arrival, requests, judged } = judging
    const slices = new Slices()
    const digest = createHash('sha256')
    const batch = new Sum(this.#options.sum())
    for await (const request of requests) {
      if (isDenial(request)) return request
      if (arrival.signal.aborted) return deny('invalid_request', 'the request was cancelled')
      if (slices.isOver) await slices.next()
      const passed = await this.#judgeOne(judging, request, batch.account)
      if (isDenial(passed)) return requestDenial(request.number, passed)
      const fault = batch.add(passed)
      if (fault !== null) return requestDenial(request.number, fault)
      const bytes = passed.isChanged ? request.written(passed.bytes) : request.written(request.body.bytes)
      digest.update(bytes).update('\n')
      const refused = await judged(bytes, passed.isChanged)
      if (refused !== null) return requestDenial(request.number, refused)
    }
    return batch.result(digest.digest('hex'), arrival)
  }

  async #judgeOne(judging: Judging, request: BatchRequest, account: string | null): Promise<Passed | Denial> {
    const { arrival, identity, server } = judging
    const plane = new RequestPlane(this.#plane, { ...judging, account: account ?? judging.account }, request)
    const wire = wireOf(arrival.wire, `/llm/${server}/v1/${request.body.dialect.method}`)
    const id = this.#options.ids.uuid()
    await this.#options.run({ id, identity, wire, plane, sink: new NoSink(), endsAtDrain: false }).ended
    return plane.denial ?? plane.passed ?? deny('internal', 'the request was not judged')
  }
}

/** A request that would be allowed. */
interface Passed {
  readonly endpoint: ModelEndpoint
  readonly model: string
  readonly body: ModelBody
  readonly bytes: Uint8Array
  readonly isChanged: boolean
  readonly call: JudgedCall
}

/** Properties that the requests of a batch share, and the sum of what they hold. */
class Sum {
  readonly #holds: ReturnType<JudgeOptions['sum']>
  readonly #labels = new Set<string>()
  readonly #options = new Set<string>()
  #first: Passed | null = null
  #last: Passed | null = null
  #count = 0

  constructor(holds: ReturnType<JudgeOptions['sum']>) {
    this.#holds = holds
  }

  get account(): string | null {
    return this.#first?.endpoint.account ?? null
  }

  add(passed: Passed): Denial | null {
    this.#first ??= passed
    this.#last = passed
    const { model } = this.#first
    if (passed.model !== model)
      return deny(
        'invalid_request',
        `the model ${passed.model.slice(0, 128)} is not that of the first request: a batch has one model`,
      )
    this.#count++
    const { hold, target } = passed.call.facts
    this.#holds.add(hold?.items ?? [])
    for (const label of target.labels.taints) this.#labels.add(label)
    for (const option of passed.body.request.options) this.#options.add(option)
    return null
  }

  result(sha256: string, { snapshot }: RequestContext): BatchRequests | Denial {
    if (this.#first === null || this.#last === null) return deny('invalid_request', 'the batch has no requests')
    const { endpoint, call, model } = this.#first
    // The class of data rises while labels are added.
    const { dataClass } = this.#last.call.facts.target
    return {
      ...{ count: this.#count, sha256, model, priced: pricedOf(endpoint, call), options: [...this.#options] },
      ...{ holds: this.#holds.items, labels: [...this.#labels], dataClass, snapshot },
      ...{ account: endpoint.account, jurisdiction: endpoint.jurisdictionFor(call.name) },
    }
  }
}

/** The plane of one request of a batch, which is judged but not sent. */
class RequestPlane extends PlaneAround {
  readonly #plane: JudgingPlane
  readonly #judging: Judging
  readonly #request: BatchRequest
  denial: Denial | null = null
  passed: Passed | null = null

  constructor(plane: JudgingPlane, judging: Judging, request: BatchRequest) {
    super(plane)
    this.#plane = plane
    this.#judging = judging
    this.#request = request
  }

  override read(): Parsed {
    const { body } = this.#request
    const { server, arrival } = this.#judging
    const { method } = body.dialect
    return { operation: 'model.line', method, server, name: body.request.model, body, parent: arrival.id }
  }

  override forward(call: JudgedCall): Denial | Promise<Reply> {
    const endpoint = this.#plane.batchEndpoint(call, this.#judging)
    if (isDenial(endpoint)) return endpoint
    const model = endpoint.modelFor(call.name)
    if (model === null) return deny('invalid_request', 'model is required', { data: { param: 'model' } })
    const { body: received } = this.#request
    const body = call.body instanceof ModelBody ? call.body : received
    const bytes = upstreamBody(body, model)
    this.passed = { endpoint, model, body, bytes, call, isChanged: Buffer.compare(bytes, received.bytes) !== 0 }
    return Promise.resolve({ kind: 'frames', head: { status: 200, headers: {} }, frames: [], attempts: [] })
  }

  override keepAlive(): null {
    return null
  }

  override refuse(arrival: RequestContext, parsed: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    this.denial = denial
    return super.refuse(arrival, parsed, denial)
  }

  override abort(): null {
    return null
  }
}

function wireOf({ headers, remote, trace }: WireRequest, path: string): WireRequest {
  return {
    method: 'POST',
    path,
    query: '',
    headers: { ...headers },
    body: Readable.from([]),
    remote,
    note: undefined,
    trace,
  }
}

/** Receives the response to a request that is only judged. */
class NoSink implements Sink {
  headSent = false

  reply(): void {
    this.headSent = true
  }

  open(): void {
    this.headSent = true
  }

  write(): void {}

  end(): void {}

  tunnel(): null {
    return null
  }

  destroy(): void {}
}
