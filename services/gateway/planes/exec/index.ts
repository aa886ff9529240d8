import { type Clock, checkJson, JsonError } from '@plat/core'
import { type Dialer, dialFault, type Fetched } from '@plat/http'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  type Identity,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
} from '../../call/index.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { wholeBodyDenial } from '../wire/exchange.ts'
import { type BodyLimits, isJsonType, useJsonBytes } from '../wire/message.ts'
import { failure, plainRefusal, unusable } from '../wire/refusal.ts'
import { ExecFrame } from './frame.ts'
import { type ExecBody, execBody, sessionIn } from './request.ts'

export { createExecRedactReview } from './frame.ts'
export { execTexts, isExec } from './request.ts'

/** Name of the sandbox in errors. */
const SANDBOX = 'the sandbox'
/** Milliseconds after the timeout of the code in which the sandbox must respond. */
const LAST_WORDS_MS = 1_000

export interface ExecPlaneOptions extends BodyLimits {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  /** docs/spec/gateway.md: `exec.maxTimeoutSeconds`. */
  readonly maxTimeoutSeconds: number
  /** docs/spec/gateway.md: `exec.maxOutputBytes`. */
  readonly maxOutputBytes: number
  /** Returns the sandbox of the caller's session. */
  readonly sandbox: (identity: Identity) => { readonly url: URL; readonly key: string | null } | Denial
}

/**
 * The plane of `POST /v1/sessions/{id}/exec` (docs/spec/gateway.md, `exec`): forwards one JSON object to the sandbox of the caller's session
 * and relays its response. Of the request, the gateway interprets only `timeoutSeconds`.
 */
export function createExecPlane(options: ExecPlaneOptions): Plane {
  return new ExecPlane(options)
}

class ExecPlane implements Plane {
  readonly #options: ExecPlaneOptions

  constructor(options: ExecPlaneOptions) {
    this.#options = options
  }

  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    if (!isOwn(sessionIn(arrival.wire.path), identity))
      return deny('unknown_session', 'this caller has no such session')
    return useJsonBytes(arrival, this.#options, (bytes) => this.#parsed(bytes))
  }

  #parsed(bytes: Uint8Array): Parsed | Denial {
    const body = execBody(bytes, this.#options.maxTimeoutSeconds)
    if (typeof body === 'string') return deny('invalid_request', body)
    return { operation: 'exec', method: 'exec', server: 'plat-exec', name: 'exec', body, parent: null }
  }

  async forward(call: Call<'identity' | 'target' | 'hold'>): Promise<Reply | Denial> {
    const { body, facts } = call
    const sandbox = this.#options.sandbox(facts.identity)
    if (isDenial(sandbox)) return sandbox
    if (body === null) return deny('internal', 'the request was not read')
    const seconds = timeoutIn(body, this.#options.maxTimeoutSeconds)
    const started = this.#options.clock.monotonic()
    const attempt = (status: number) => [
      { endpoint: sandbox.url.origin, status, ms: this.#options.clock.monotonic() - started },
    ]
    try {
      const answer = await this.#options.dialer.fetchBytes(sandbox.url, 'sandbox', {
        method: 'POST',
        headers: headersFor(call.id, sandbox.key, seconds),
        body: body.bytes,
        maxBytes: this.#options.maxOutputBytes,
        timeoutMs: seconds * 1000 + LAST_WORDS_MS,
        signal: call.signal,
      })
      if (!call.retain(answer.bytes.byteLength))
        return { ...wholeBodyDenial(SANDBOX, 'memory'), attempts: attempt(answer.status) }
      const frame = frameOf(answer)
      if (isDenial(frame)) return { ...frame, attempts: attempt(answer.status) }
      const head = {
        status: answer.status,
        headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
      }
      return { kind: 'frames', head, attempts: attempt(answer.status), frames: [frame] }
    } catch (error) {
      return { ...this.#failed(error, seconds), attempts: attempt(0) }
    }
  }

  #failed(error: unknown, seconds: number): Denial {
    const { maxOutputBytes } = this.#options
    switch (dialFault(error)) {
      case 'too_large':
        return deny(
          'upstream_error',
          `the output is larger than ${maxOutputBytes} bytes (exec.maxOutputBytes): print less of it`,
        )
      case 'timeout':
        return deny('upstream_timeout', `the code did not end within ${seconds} s`)
      default:
        return failure(SANDBOX, error)
    }
  }

  /** Returns null: the response is one JSON object, which is sent when the call has ended. */
  keepAlive(): null {
    return null
  }

  refuse(arrival: RequestContext, _: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return plainRefusal(arrival, denial)
  }

  /** Returns no frames: the response is written at once, so it cannot be aborted. */
  abort(): readonly Frame[] {
    return []
  }

  encode({ raw, value }: Frame): Uint8Array {
    return raw ?? Buffer.from(JSON.stringify(value))
  }
}

/** Returns true if `requested` is the caller's session, by its name or its id in the admin API. */
function isOwn(requested: string | null, { namespace, agent, session }: Identity): boolean {
  return requested === session || requested === `${namespace}/${agent}/${session}`
}

function headersFor(id: string, key: string | null, seconds: number): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept: 'application/json',
    'x-plat-decision-id': id,
    'x-plat-exec-timeout': String(seconds),
    ...(key !== null && { 'x-plat-exec-key': key }),
  }
}

/** Returns the timeout in seconds. Redaction does not remove the member, since numbers are never replaced. */
function timeoutIn({ value }: Pick<ExecBody, 'value'>, most: number): number {
  const wanted =
    typeof value === 'object' && value !== null && 'timeoutSeconds' in value ? value.timeoutSeconds : undefined
  return typeof wanted === 'number' ? wanted : most
}

function frameOf({ status, headers, bytes }: Fetched): ExecFrame | Denial {
  const refusal = unusable(SANDBOX, { status, headers })
  if (refusal !== null) return refusal
  if (!isJsonType(headers)) return deny('upstream_error', `${SANDBOX} sent a response that is not JSON`)
  try {
    checkJson(bytes)
  } catch (error) {
    if (error instanceof JsonError) return deny('upstream_error', `${SANDBOX} sent a response that is not strict JSON`)
    throw error
  }
  return new ExecFrame(status < 400 ? 'final' : 'error', bytes)
}
