import { type Clock, isObject, parseLossless } from '@plat/core'
import { type Dialer, dialFault, type Fetched, isDialError, joinedBundles } from '@plat/http'
import type { ApiTool } from '@plat/resources/rendered'
import {
  type BuiltinTool,
  type Credential,
  callerOf,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type ToolCall,
  type ToolResult,
  toolFailure,
  type UpstreamAuth,
} from '../../call/index.ts'
import { resultOf } from './answer.ts'
import { schemaProblem } from './check.ts'
import { type ApiRequest, requestOf } from './request.ts'

/** Largest answer of an API, in bytes: a model reads all of it. */
const ANSWER_MAX_BYTES = 1024 * 1024

const UNAUTHORIZED = 401

/** The server of an API, as far as its tools need it. */
export interface ApiUpstream {
  readonly key: string
  readonly url: string
  readonly timeoutSeconds: number | null
  readonly caPEM: string | null
  readonly auth: UpstreamAuth
}

/** Credentials for servers, as calls of other servers use them. */
export interface ApiCredentials {
  of(server: ApiUpstream, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  renewed(server: ApiUpstream, identity: Identity, refused: Credential): Promise<Credential | Denial | null>
}

export interface ApiParts {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly credentials: ApiCredentials
  readonly clock: Clock
  readonly upstreamTimeoutMs: number
  /** CA bundle for every server; null: none. */
  readonly extraCA: string | null
}

/** Creates the tool of one operation. */
export function apiTool(parts: ApiParts, upstream: ApiUpstream, tool: ApiTool): BuiltinTool {
  const calls = new ApiCalls(parts, upstream, tool)
  const { name, title, description, inputSchema, outputSchema, method } = tool
  return {
    ...{ name, title, description, inputSchema },
    ...(outputSchema !== undefined && { outputSchema }),
    annotations: {
      readOnlyHint: method === 'GET',
      destructiveHint: method !== 'GET' && method !== 'POST',
      idempotentHint: method !== 'POST' && method !== 'PATCH',
      openWorldHint: true,
    },
    judge: () => null,
    requirements: () => null,
    run: (_, call) => calls.run(call),
  }
}

class ApiCalls {
  readonly #parts: ApiParts
  readonly #upstream: ApiUpstream
  readonly #tool: ApiTool
  readonly #origin: string
  readonly #caPEM: string | null

  constructor(parts: ApiParts, upstream: ApiUpstream, tool: ApiTool) {
    this.#parts = parts
    this.#upstream = upstream
    this.#tool = tool
    this.#origin = new URL(upstream.url).origin
    this.#caPEM = joinedBundles([upstream.caPEM, parts.extraCA])
  }

  async run(call: ToolCall): Promise<ToolResult | Denial> {
    // Numbers keep their text: identifiers may have more digits than a double holds.
    const values = call.argsJson === null ? {} : parseLossless(call.argsJson)
    const problem = schemaProblem(this.#tool.inputSchema, values)
    if (problem !== null) return toolFailure(`arguments${problem.path}: ${problem.message}`)
    const request = requestOf(this.#upstream.url, this.#tool, isObject(values) ? values : {})
    if (typeof request === 'string') return toolFailure(request)
    const { credentials } = this.#parts
    const credential = await credentials.of(this.#upstream, call.identity)
    if (isDenial(credential)) return credential
    const attempts: ToolResult['attempts'][number][] = []
    const answer = await this.#send(request, credential, call, attempts)
    if (isDenial(answer) || answer.status !== UNAUTHORIZED) return this.#result(answer, call, attempts)
    // A server that answers 401 has not processed the request.
    const next = await credentials.renewed(this.#upstream, call.identity, credential)
    if (next === null) return this.#result(answer, call, attempts)
    if (isDenial(next)) return { ...next, attempts }
    return this.#result(await this.#send(request, next, call, attempts), call, attempts)
  }

  async #result(
    answer: Fetched | Denial,
    call: ToolCall,
    attempts: ToolResult['attempts'],
  ): Promise<ToolResult | Denial> {
    if (isDenial(answer)) return { ...answer, attempts }
    if (!call.retain(answer.bytes.length))
      return { ...deny('upstream_error', 'the API sent an answer for which there is no memory now'), attempts }
    return resultOf(this.#tool, answer, attempts)
  }

  async #send(
    { url, headers, body }: ApiRequest,
    credential: Credential,
    { signal, identity }: ToolCall,
    attempts: ToolResult['attempts'][number][],
  ): Promise<Fetched | Denial> {
    const { dialer, clock, upstreamTimeoutMs } = this.#parts
    const { timeoutSeconds } = this.#upstream
    const started = clock.monotonic()
    const record = (status: number) =>
      attempts.push({ endpoint: this.#origin, status, ms: clock.monotonic() - started })
    try {
      const answer = await dialer.fetchBytes(url, 'mcp', {
        method: this.#tool.method,
        maxBytes: ANSWER_MAX_BYTES,
        timeoutMs: timeoutSeconds === null ? upstreamTimeoutMs : timeoutSeconds * 1000,
        headers: {
          accept: 'application/json, text/*;q=0.9, */*;q=0.1',
          'user-agent': 'plat-gateway',
          ...headers,
          ...credential.headers,
        },
        ...(body !== null && { body }),
        caller: callerOf(identity),
        signal,
        ...(this.#caPEM !== null && { caPEM: this.#caPEM }),
        ...(credential.clientCert !== null && { clientCert: credential.clientCert }),
      })
      record(answer.status)
      return answer
    } catch (error) {
      if (!isDialError(error)) throw error
      record(0)
      return faultOf(this.#upstream.key, dialFault(error))
    }
  }
}

function faultOf(server: string, fault: ReturnType<typeof dialFault>): Denial {
  switch (fault) {
    case 'timeout':
      return deny('upstream_timeout', `${server} did not answer in time`)
    case 'residency':
      return deny('residency_denied', `${server} leads to where data must not go`)
    case 'blocked':
      return deny('upstream_error', `${server} leads to an address that must not be connected to`)
    case 'too_large':
      return deny('upstream_error', `${server} sent an answer of more than ${ANSWER_MAX_BYTES} bytes`)
    default:
      return deny('upstream_error', `${server} cannot be reached (${fault})`)
  }
}
