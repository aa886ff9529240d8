import type { Clock } from '@plat/core'
import type { ClientRequest } from '@plat/http'
import { type Call, callerOf, isBesideModels } from '../../../call/index.ts'
import { copyHeader } from '../../wire/message.ts'
import { BatchBody } from '../batches/body.ts'
import { files } from '../dialects/files.ts'
import { ModelBody, upstreamBody } from '../request.ts'
import type { Translated } from '../translate/translated.ts'
import { UploadBody } from '../uploads/body.ts'
import type { Address, Credentials, ModelEndpoint } from './endpoint.ts'

/** Longest pause in a response, in milliseconds: reasoning takes time, but money is held in the meantime. */
const MAX_PAUSE_MS = 600_000

/** Request headers that are forwarded unchanged. Other headers are not forwarded. */
const UP = ['accept', 'traceparent', 'tracestate'] as const

/** A call to send to an endpoint. */
export interface Outgoing {
  readonly call: Call<'identity' | 'target'>
  readonly endpoint: ModelEndpoint
  /** Address of the request. */
  readonly address: Address
  /** The model to request; null if the request names none. */
  readonly model: string | null
  /** The translated request for a provider with another API; null: no translation. */
  readonly translated: Translated | null
  /** The caller's context in the engine; absent for other providers. */
  readonly context?: string | undefined
}

interface Sender {
  readonly clock: Clock
  readonly credentials: Credentials
  readonly attemptTimeoutMs: number
}

/** Returns the request that an endpoint gets. The caller's credentials are not in it; those of the route are. */
export function outgoingRequest(sender: Sender, outgoing: Outgoing): ClientRequest {
  const { call, address } = outgoing
  const body = bodyOf(outgoing)
  return {
    method: call.wire.method,
    path: address.path,
    headers: headersOf(sender, outgoing, body instanceof Uint8Array ? body : null),
    body,
    headersTimeoutMs: sender.attemptTimeoutMs,
    pauseTimeoutMs: MAX_PAUSE_MS,
    caller: callerOf(call.facts.identity),
  }
}

function bodyOf({ call: { body, id }, model, translated }: Outgoing): ClientRequest['body'] {
  if (translated !== null) return translated.bytes
  if (body instanceof BatchBody) return body.sent
  if (body instanceof UploadBody) return body.encoded(model, boundaryOf(id))
  return body instanceof ModelBody ? upstreamBody(body, model) : null
}

/** No caller knows the id of its call while it sends its files. */
function boundaryOf(id: string): string {
  return `plat-${id}`
}

function headersOf(sender: Sender, outgoing: Outgoing, body: Uint8Array | null): Record<string, string> {
  const { call, endpoint, address, translated } = outgoing
  const { headers: own, defaults } = endpoint.wire
  const headers: Record<string, string> = { 'user-agent': 'plat-gateway', 'accept-encoding': 'identity' }
  if (call.body !== null) headers['content-type'] = 'application/json'
  if (call.body instanceof UploadBody) headers['content-type'] = `multipart/form-data; boundary=${boundaryOf(call.id)}`
  for (const name in defaults) headers[name] = defaults[name] ?? ''
  for (const name of UP) copyHeader(call.wire.headers, headers, name)
  if (translated !== null) headers.accept = translated.accept
  if ((translated === null || translated.sameHeaders) && call.body instanceof ModelBody)
    for (const name of call.body.dialect.headers) copyHeader(call.wire.headers, headers, name)
  if (isBesideModels(call.operation)) for (const name of files.headers) copyHeader(call.wire.headers, headers, name)
  if (outgoing.context !== undefined) headers['x-context-id'] = outgoing.context
  for (const name in own) headers[name] = own[name] ?? ''
  const { clock, credentials } = sender
  const { origin, path } = address
  const request = { method: call.wire.method, origin, path, body, at: clock.now() }
  const credentialHeaders = credentials.headers(endpoint, request)
  for (const name in credentialHeaders) headers[name] = credentialHeaders[name] ?? ''
  return headers
}
