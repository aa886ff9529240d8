import { type Clock, findSpan, isObject, isPromise, JsonError, member } from '@plat/core'
import { type Dialer, joinedBundles, type RequestHeaders, type TrustOptions } from '@plat/http'
import { type Call, callerOf, type Denial, deny, type Identity, type Reply, UpstreamError } from '../../call/index.ts'
import { EventFrames, type EventGate } from '../wire/events.ts'
import { AbandonedError, UpstreamExchange, type UpstreamHead, wholeBodyDenial } from '../wire/exchange.ts'
import { header, isJsonType, isStreamType, STREAM_HEADERS } from '../wire/message.ts'
import { failure, unusable, withoutForgedRefusal } from '../wire/refusal.ts'
import { A2aFrame } from './frame.ts'
import { type ListView, ownTasks } from './list.ts'
import type { A2aRequest } from './request.ts'
import { isResponseTo, isTask, lacksResult, namedIn, namedInSent, responseIn, StreamProgress } from './response.ts'
import { isConvertible } from './versions/members.ts'
import { downgradedRequest } from './versions/requests.ts'
import { isFinalEvent, upgradedResponse } from './versions/responses.ts'
import type { A2aVersion } from './versions/tables.ts'

/** Largest JSON response of an agent, in bytes. */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024

/** A2A "invalid agent response". */
const INVALID_AGENT_RESPONSE = -32006
/** JSON-RPC "invalid params". */
const INVALID_PARAMS = -32602

/** How to connect to an agent. */
export interface AgentPlace {
  /** `a2a/<ns>/<agent>`. */
  readonly server: string
  readonly endpoint: string
  /** Time limit for response heads; null: the gateway's default. */
  readonly timeoutSeconds: number | null
  /** Version that it speaks. */
  readonly protocolVersion: A2aVersion
}

/** Transaction tokens, which name the caller under the gateway's signature (docs/spec/gateway.md, `txnTokens`). */
export interface Transactions {
  /** True if the token replaces the `x-plat-*` headers. */
  readonly replaces: boolean
  /** Returns the value of the header `Txn-Token` for this call. */
  token(call: Call<'identity' | 'target'>): string | Denial | Promise<string | Denial>
}

/** Dependencies of forwarding. */
export interface Forwarder {
  readonly clock: Clock
  readonly dialer: Pick<Dialer, 'client'>
  readonly upstreamTimeoutMs: number
  /** CA bundle for every agent; null: none. */
  readonly extraCA: string | null
  /** Null: no transaction tokens are sent. */
  readonly transactions: Transactions | null
  /** `context`: the context of which tasks are listed, as it was sent. */
  viewOf(identity: Identity, server: string, context: unknown): ListView
}

/** Parts of an endpoint's URL for requests. */
interface EndpointAddress {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly trust: TrustOptions | undefined
}

const addresses = new WeakMap<AgentPlace, EndpointAddress>()

function wayTo(agent: AgentPlace, extraCA: string | null): EndpointAddress {
  const known = addresses.get(agent)
  if (known !== undefined) return known
  const { protocol, host, pathname, search } = new URL(agent.endpoint)
  const caPEM = joinedBundles([extraCA])
  // Every record contains the origin: `join` makes a flat string, whereas that of a URL is a rope, which is slower to serialize.
  const way = {
    origin: [protocol, host].join('//'),
    path: pathname + search,
    trust: caPEM === null ? undefined : { caPEM },
  }
  addresses.set(agent, way)
  return way
}

export interface A2aForward {
  readonly call: Call<'identity' | 'target' | 'hold'>
  readonly request: A2aRequest
  readonly agent: AgentPlace
  /** Its transaction token; null: none is sent. */
  readonly transaction: string | null
  /** A wait for an approval has already opened an event stream. */
  readonly sent: boolean
}

/**
 * Sends one request to an agent and returns its response in frames of A2A 1.0. Between two of that version unchanged bytes are forwarded as
 * received, in both directions. The agent gets the names of the caller in `x-plat-*` headers that the gateway writes, and never its token.
 */
export class Forwarding implements EventListenerObject, EventGate<A2aFrame> {
  readonly #forwarder: Forwarder
  readonly #context: A2aForward
  readonly #progress = new StreamProgress()
  #exchange: UpstreamExchange | null = null
  #late = false

  constructor(forwarder: Forwarder, context: A2aForward) {
    this.#forwarder = forwarder
    this.#context = context
  }

  async run(): Promise<Reply | Denial> {
    const { agent, call, request, sent } = this.#context
    const { clock } = this.#forwarder
    if (agent.protocolVersion === '0.3' && !isConvertible(call.body?.value))
      return deny('invalid_request', 'params has too many parts', { data: { rpc: INVALID_PARAMS } })
    const started = clock.monotonic()
    const { origin, exchange } = this.#send()
    try {
      const head = await exchange.head
      const attempts = [{ endpoint: origin, status: head.status, ms: clock.monotonic() - started }]
      const refusal = unusable(agent.server, head)
      if (refusal !== null) return this.#giveUp(refusal)
      if (head.status < 300 && isStreamType(head.headers)) {
        if (request.row?.streams !== true) return this.#giveUp(this.#invalid('a stream that was not requested'))
        const replyHead = { status: head.status, headers: { ...STREAM_HEADERS } }
        return { kind: 'frames', head: replyHead, attempts, frames: new EventFrames(exchange, this) }
      }
      const all = exchange.readAll({ maxBytes: MAX_RESPONSE_BYTES, account: call })
      const bytes = isPromise(all) ? await this.#inTime(all, started) : all
      this.#done()
      if (bytes === 'memory') return wholeBodyDenial(agent.server, bytes)
      if (bytes === 'too_large') return this.#invalid('an answer that is too large')
      const frame = this.#whole(head, bytes)
      if (!(frame instanceof A2aFrame)) return frame
      const relayed = genuine(frame)
      const frames = [sent && relayed.json !== null ? relayed.event(relayed.json) : relayed]
      return { kind: 'frames', head: { status: head.status, headers: JSON_HEADERS }, attempts, frames }
    } catch (error) {
      if (this.#late) return this.#giveUp(deny('upstream_timeout', `${agent.server} did not answer in time`))
      if (error instanceof JsonError) return this.#giveUp(this.#invalid('a body that is not strict JSON'))
      if (error instanceof UpstreamError) return this.#giveUp(failure(agent.server, error))
      // A bug of the gateway, which the runner logs with the decision id.
      this.stop()
      throw error
    }
  }

  get #timeoutMs(): number {
    const { timeoutSeconds } = this.#context.agent
    return timeoutSeconds === null ? this.#forwarder.upstreamTimeoutMs : timeoutSeconds * 1000
  }

  /** Applies the time limit of the response head to the whole JSON body. */
  async #inTime<T>(body: Promise<T>, started: number): Promise<T> {
    const { clock } = this.#forwarder
    const cancel = clock.after(Math.max(0, started + this.#timeoutMs - clock.monotonic()), () => {
      this.#late = true
      this.#exchange?.abort('its time is up')
    })
    try {
      return await body
    } finally {
      cancel()
    }
  }

  /** Returns the frame to relay for an event. Throws to end the stream with an error. */
  pass(event: Uint8Array): A2aFrame {
    const received = A2aFrame.event(event)
    if (received.json === null) return received
    const frame = this.#inOneForm(received)
    if (frame === null) throw new AbandonedError('the agent sent an event that cannot be converted')
    const response = responseIn(frame)
    const named = response === null || !isResponseTo(this.#context.request, frame) ? null : namedIn(response)
    if (response === null || named === null || this.#progress.isOver)
      throw new AbandonedError('the agent sent an event that is not valid in A2A')
    this.#checkTask(named.tasks)
    this.#progress.took(response, frame !== received && isFinalEvent(received.value))
    return genuine(frame)
  }

  /** Called when the call is aborted. */
  handleEvent(): void {
    this.stop()
  }

  /** Aborts the request. The task continues at its agent, and its owner can query it later. */
  stop(): void {
    this.#done()
    this.#exchange?.abort(String(this.#context.call.signal.reason ?? 'the answer is not wanted'))
  }

  /** Throws AbandonedError if the response is incomplete: its task has neither ended nor waits for its caller. */
  ended(): void {
    this.#done()
    if (!this.#progress.mayEnd) throw new AbandonedError('the agent ended its stream before its task')
  }

  #done(): void {
    this.#context.call.signal.removeEventListener('abort', this)
  }

  #giveUp(denial: Denial): Denial {
    this.#done()
    this.#exchange?.abort(denial.reason)
    return denial
  }

  #invalid(what: string): Denial {
    const reason = `${this.#context.agent.server} sent ${what}`
    return deny('upstream_error', reason, { data: { rpc: INVALID_AGENT_RESPONSE } })
  }

  #send() {
    const { call, agent, transaction } = this.#context
    const { dialer, extraCA, transactions } = this.#forwarder
    const { origin, path, trust } = wayTo(agent, extraCA)
    const exchange = new UpstreamExchange(dialer.client(origin, 'a2a', trust), {
      method: 'POST',
      path,
      headers: agentHeaders(call, agent.protocolVersion, {
        transaction,
        hasNames: transactions?.replaces !== true,
      }),
      body: call.body === null ? null : this.#bodyOf(call.body.bytes),
      headersTimeoutMs: this.#timeoutMs,
      pauseTimeoutMs: 0,
      caller: callerOf(call.facts.identity),
    })
    this.#exchange = exchange
    if (call.signal.aborted) this.stop()
    else call.signal.addEventListener('abort', this)
    return { origin, exchange }
  }

  /** Returns the request in the version of the agent. */
  #bodyOf(bytes: Uint8Array): Uint8Array {
    const { agent, request } = this.#context
    return agent.protocolVersion === '1.0'
      ? withPage(bytes, request.pageToken)
      : downgradedRequest(bytes, request.method)
  }

  /** Returns a response in A2A 1.0 for this caller, or null if it cannot be converted. Throws JsonError. */
  #inOneForm(received: A2aFrame): A2aFrame | null {
    const { agent, request } = this.#context
    const isLegacy = agent.protocolVersion === '0.3'
    if ((isLegacy || request.legacy !== null) && !isConvertible(received.value)) return null
    if (!isLegacy) return received.forCaller(request.legacy)
    // Parses it strictly first: the conversion does not.
    const isResponse = responseIn(received) !== null || lacksResult(received, request.method)
    const upgraded = isResponse && received.json !== null ? upgradedResponse(received.json, request.method) : null
    return upgraded === null ? null : received.withJson(upgraded).forCaller(request.legacy)
  }

  /** Returns the frame to relay for a JSON body. */
  #whole({ status, headers }: UpstreamHead, bytes: Uint8Array): A2aFrame | Denial {
    const { call, request } = this.#context
    if (!isJsonType(headers)) return this.#invalid('a response that is not JSON')
    const frame = this.#inOneForm(A2aFrame.body(status >= 400 ? 'error' : 'final', bytes))
    if (frame === null) return this.#invalid('what cannot be converted to a response to the request')
    const response = responseIn(frame)
    if (response === null || !isResponseTo(request, frame))
      return this.#invalid('what is not a response to the request')
    if (Object.hasOwn(response, 'error')) return frame
    if (status >= 400) return this.#invalid(`a result with the status ${status}`)
    if (request.row?.streams === true) return this.#invalid('a response that is not a stream')
    if (request.row?.sends === true)
      return namedInSent(response) === null ? this.#invalid('a result of another method') : frame
    if (request.method !== 'ListTasks')
      return this.#isAboutTask(response.result) ? frame : this.#invalid('a result of another task or method')
    const context = member(member(call.body?.value, 'params'), 'contextId')
    const view = this.#forwarder.viewOf(call.facts.identity, call.facts.target.server, context)
    const own = ownTasks({ json: frame.json ?? bytes, value: response }, view)
    return own === null ? this.#invalid('a result of another method') : frame.withJson(own)
  }

  /** Returns true if the result of a method about one task is that task, or webhooks of it. */
  #isAboutTask(result: unknown): boolean {
    const { method, named } = this.#context.request
    const isOf = (config: unknown) =>
      isObject(config) && (!isSet(config.taskId) || named.tasks.includes(String(config.taskId)))
    switch (method) {
      case 'GetTask':
      case 'CancelTask':
        return isTask(result) && named.tasks.includes(result.id)
      case 'ListTaskPushNotificationConfigs': {
        const configs = member(result, 'configs') ?? []
        return isObject(result) && Array.isArray(configs) && configs.every(isOf)
      }
      case 'DeleteTaskPushNotificationConfig':
        return true
      default:
        return isOf(result)
    }
  }

  /** Throws AbandonedError if an event in a stream about one task names another. */
  #checkTask(tasks: readonly string[]): void {
    const { row, named } = this.#context.request
    if (row?.task === null || row?.task === undefined) return
    if (!tasks.every((task) => named.tasks.includes(task)))
      throw new AbandonedError('the agent sent an event of another task')
  }
}

/** Returns a response without refusals that only the gateway may state. */
function genuine(frame: A2aFrame): A2aFrame {
  if (frame.json === null) return frame
  const own = withoutForgedRefusal(frame.json, frame.value)
  return own === frame.json ? frame : frame.withJson(own)
}

const JSON_HEADERS = { 'content-type': 'application/json' }

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Header of 0.3. */
const LEGACY_EXTENSIONS = 'x-a2a-extensions'

/** Returns the body with the agent's page token. */
function withPage(bytes: Uint8Array, token: string | null): Uint8Array {
  const span = token === null ? null : findSpan(bytes, ['params', 'pageToken'])
  if (span === null) return bytes
  return Buffer.concat([bytes.subarray(0, span[0]), Buffer.from(JSON.stringify(token)), bytes.subarray(span[1])])
}

/** Percent-encodes characters of a name that are not valid in a header. */
function headerText(text: string): string {
  return text.replace(/[^\x21-\x24\x26-\x7e]/gu, (char) => encodeURIComponent(char.toWellFormed()))
}

/**
 * Returns the headers of the request to the agent. Other headers of the caller are not forwarded. If `hasNames`, the caller and its user are
 * sent in plain headers, which an agent may trust only if the gateway alone can reach it; any agent can verify a transaction token.
 */
function agentHeaders(
  { id, wire: { headers }, facts: { identity } }: Call<'identity'>,
  version: A2aVersion,
  { transaction, hasNames: names }: { readonly transaction: string | null; readonly hasNames: boolean },
): RequestHeaders {
  const { namespace, agent, session, user } = identity
  const extensions = header(headers, 'a2a-extensions') ?? header(headers, LEGACY_EXTENSIONS) ?? undefined
  return {
    'user-agent': 'plat-gateway',
    'accept-encoding': 'identity',
    accept: header(headers, 'accept') ?? undefined,
    traceparent: header(headers, 'traceparent') ?? undefined,
    tracestate: header(headers, 'tracestate') ?? undefined,
    'content-type': 'application/json',
    'a2a-version': version,
    [version === '1.0' ? 'a2a-extensions' : LEGACY_EXTENSIONS]: extensions,
    'txn-token': transaction ?? undefined,
    'x-plat-decision-id': names ? id : undefined,
    'x-plat-namespace': names ? namespace : undefined,
    'x-plat-agent': names ? agent : undefined,
    'x-plat-session': names ? session : undefined,
    'x-plat-user': names && user !== null ? headerText(user) : undefined,
  }
}
