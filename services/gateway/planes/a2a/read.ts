import { isObject, type JsonObject } from '@plat/core'
import { type Denial, deny, type Identity, isDenial, type Parsed, type RequestContext } from '../../call/index.ts'
import { type BodyLimits, useJsonBytes } from '../wire/body.ts'
import { header } from '../wire/headers.ts'
import { strictMessage } from '../wire/json.ts'
import { readParams } from './message.ts'
import { EXTENDED_CARD, GET_CARD, methodRow } from './methods.ts'
import { A2aBody, A2aRequest } from './request.ts'

/** `/a2a/<ns>/<agent>`, and the path of its card. */
const PATH =
  /^\/(a2a\/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)(\/\.well-known\/agent-card\.json)?$/

/** The supported version. A request without a version has version 0.3 (A2A 1.0, section 3.6). */
export const VERSION = '1.0'

/** Errors of JSON-RPC and of A2A. */
const UNSUPPORTED_OPERATION = -32004
const VERSION_NOT_SUPPORTED = -32009
const INVALID_PARAMS = -32602

/** Dependencies of `read`. */
export interface Reader extends BodyLimits {
  /** Opens a sealed page token of this caller; null when it is invalid. */
  openPage(identity: Identity, server: string, text: string): string | null
  /** Returns the id of the call that created a task; null if it is unknown. */
  callOf(server: string, task: string): string | null
}

/** Determines the agent, operation, method and skill of a request. */
export function read(
  reader: Reader,
  arrival: RequestContext,
  identity: Identity,
): Parsed | Denial | Promise<Parsed | Denial> {
  const { wire } = arrival
  const [, server, card] = PATH.exec(wire.path) ?? []
  if (server === undefined) return deny('unknown_agent', 'the path is /a2a/<namespace>/<agent>')
  if (card !== undefined) {
    if (wire.method !== 'GET') return only('GET', wire.method)
    wire.note = new A2aRequest({ method: GET_CARD })
    return { operation: 'a2a.card', method: GET_CARD, server, name: null, body: null, parent: null }
  }
  if (wire.method !== 'POST') return only('POST', wire.method)
  return useJsonBytes(arrival, reader, (bytes) => new Post(reader, arrival, { identity, server }).parsed(bytes))
}

function only(allow: string, method: string): Denial {
  return deny('method_not_allowed', `${method} is not a method of this address`, { data: { allow } })
}

/** Reads a posted message. */
class Post {
  readonly #reader: Reader
  readonly #arrival: RequestContext
  readonly #identity: Identity
  readonly #server: string

  constructor(reader: Reader, arrival: RequestContext, to: { readonly identity: Identity; readonly server: string }) {
    this.#reader = reader
    this.#arrival = arrival
    this.#identity = to.identity
    this.#server = to.server
  }

  parsed(bytes: Uint8Array): Parsed | Denial {
    const { wire } = this.#arrival
    const message = requestIn(bytes)
    if (isDenial(message)) return message
    const method = String(message.method)
    // From here on, a refusal has the request's id.
    wire.note = new A2aRequest({ method, bytes })
    return versionFault(this.#arrival) ?? this.#classified(bytes, message, method)
  }

  #classified(bytes: Uint8Array, message: JsonObject, method: string): Parsed | Denial {
    const row = methodRow(method)
    if (row === null) return unknown(method)
    const named = readParams(message.params, row, method)
    if (isDenial(named)) return named
    const pageToken = named.pageToken === null ? null : this.#page(named.pageToken)
    if (isDenial(pageToken)) return pageToken
    const idValue = idIn(message)
    this.#arrival.wire.note = new A2aRequest({ row, method, bytes, named, pageToken, idValue })
    const [task] = row.task === null ? [] : named.tasks
    return {
      operation: row.operation,
      method,
      server: this.#server,
      name: named.skill,
      body: new A2aBody(bytes, message),
      parent: task === undefined ? null : this.#reader.callOf(this.#server, task),
    }
  }

  #page(text: string): string | Denial {
    const token = this.#reader.openPage(this.#identity, this.#server, text)
    return token ?? deny('invalid_request', 'params.pageToken is not valid', { data: { rpc: INVALID_PARAMS } })
  }
}

/** Returns the JSON-RPC 2.0 request, or a denial when the bytes are not a strict JSON object, which every parser reads alike. */
export function requestIn(bytes: Uint8Array): JsonObject | Denial {
  const read = strictMessage(bytes)
  if (isDenial(read)) return read
  const message = read.value
  if (!isObject(message) || message.jsonrpc !== '2.0')
    return deny('invalid_request', 'the body is not a JSON-RPC 2.0 request')
  const { method } = message
  if (idIn(message) === null)
    return deny('invalid_request', 'id must be a string or a whole number: notifications are not accepted')
  return typeof method === 'string' ? message : deny('invalid_request', 'method must be a string')
}

function idIn({ id }: JsonObject): string | number | null {
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id)) ? id : null
}

function versionFault({ wire }: RequestContext): Denial | null {
  const requested = header(wire.headers, 'a2a-version') || new URLSearchParams(wire.query).get('A2A-Version') || '0.3'
  if (requested === VERSION) return null
  return deny(
    'unsupported_version',
    `A2A-Version ${JSON.stringify(requested.slice(0, 64))} is not supported: send ${VERSION}`,
    {
      data: { rpc: VERSION_NOT_SUPPORTED },
    },
  )
}

function unknown(method: string): Denial {
  if (method !== EXTENDED_CARD)
    return deny('unknown_method', `A2A ${VERSION} has no method ${JSON.stringify(method.slice(0, 128))}`)
  return deny('unknown_method', 'there is no extended card', { data: { rpc: UNSUPPORTED_OPERATION } })
}
