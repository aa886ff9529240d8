import { hasPlainNumbers, isObject, type JsonObject, member, parseLossless } from '@plat/core'
import { type Denial, deny, type Identity, isDenial, type Parsed, type RequestContext } from '../../call/index.ts'
import { type BodyLimits, header, strictMessage, useJsonBytes } from '../wire/message.ts'
import { invalidParams, readParams } from './message.ts'
import { EXTENDED_CARD, GET_CARD, type MethodRow, methodRow } from './methods.ts'
import { A2aBody, A2aRequest, NOTHING_NAMED } from './request.ts'
import { inCamelCase, isConvertible, VersionError } from './versions/members.ts'
import { upgradedParams } from './versions/requests.ts'
import { type A2aVersion, LEGACY_METHODS } from './versions/tables.ts'

/** `/a2a/<ns>/<agent>`, and the path of its card. */
const PATH =
  /^\/(a2a\/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)(\/\.well-known\/agent-card\.json)?$/

/** Errors of JSON-RPC and of A2A. */
const UNSUPPORTED_OPERATION = -32004
const NO_EXTENDED_CARD = -32007
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
    const read = strictMessage(bytes)
    if (isDenial(read)) return read
    // From here on, a refusal has the request's id.
    if (isObject(read.value) && idIn(read.value) !== null) wire.note = new A2aRequest({ method: '', bytes })
    const message = requestOf(read.value)
    if (isDenial(message)) return message
    const method = String(message.method)
    const version = versionOf(this.#arrival, method)
    if (isDenial(version)) return version
    wire.note = new A2aRequest({ method, bytes, named: { ...NOTHING_NAMED, version } })
    const known = version === '1.0' ? method : nameOf(method)
    if (known === EXTENDED_CARD) return noExtendedCard(version)
    const row = known === null ? null : methodRow(known)
    if (known === null || row === null) return unknown(method, version)
    try {
      const body = inOneForm(bytes, message, { method: known, version })
      return this.#classified(body, { row, method: known, version, idValue: idIn(message) })
    } catch (error) {
      if (error instanceof VersionError) return invalidParams(error)
      throw error
    }
  }

  /** Reads a request in the form of 1.0. */
  #classified(body: A2aBody, { row, method, version, idValue }: Called & Classified): Parsed | Denial {
    const read = readParams(member(body.value, 'params'), row, method)
    if (isDenial(read)) return read
    const named = { ...read, version }
    const pageToken = named.pageToken === null ? null : this.#page(named.pageToken)
    if (isDenial(pageToken)) return pageToken
    this.#arrival.wire.note = new A2aRequest({ row, method, bytes: body.bytes, named, pageToken, idValue })
    const [task] = row.task === null ? [] : named.tasks
    return {
      operation: row.operation,
      method,
      server: this.#server,
      name: named.skill,
      body,
      parent: task === undefined ? null : this.#reader.callOf(this.#server, task),
    }
  }

  #page(text: string): string | Denial {
    const token = this.#reader.openPage(this.#identity, this.#server, text)
    return token ?? deny('invalid_request', 'params.pageToken is not valid', { data: { rpc: INVALID_PARAMS } })
  }
}

/** Returns the JSON-RPC 2.0 request, or a denial when the message is none. */
export function requestOf(message: unknown): JsonObject | Denial {
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

/** Header of the version that a request is written in. */
const VERSION_HEADER = 'a2a-version'

/** Returns the version named by a request; empty if it names none, which means 0.3 (A2A 1.0, section 3.6). */
export function namedVersion({ headers, query }: Pick<RequestContext['wire'], 'headers' | 'query'>): string {
  return header(headers, VERSION_HEADER) || new URLSearchParams(query).get('A2A-Version') || ''
}

function versionOf(arrival: RequestContext, method: string): A2aVersion | Denial {
  const named = namedVersion(arrival.wire)
  if (named === '1.0') return named
  // A client of 1.0 that leaves the version out would otherwise read only that its method is unknown.
  const isForgotten = named === '' && methodRow(method) !== null
  if (!isForgotten && (named === '' || isLegacyVersion(named))) return '0.3'
  const version = JSON.stringify(named.slice(0, 64) || '0.3')
  return deny('unsupported_version', `A2A-Version ${version} is not supported for this method: send 1.0`, {
    data: { rpc: VERSION_NOT_SUPPORTED },
  })
}

/** Returns true for 0.3 and its patch versions. */
export function isLegacyVersion(version: string): boolean {
  return /^0\.3(?:\.\d{1,4})?$/.test(version)
}

function nameOf(legacy: string): string | null {
  return Object.hasOwn(LEGACY_METHODS, legacy) ? (LEGACY_METHODS[legacy] ?? null) : null
}

/** A method, named as in 1.0, and the version in which it was called. */
interface Called {
  readonly method: string
  readonly version: A2aVersion
}

/** Where a request leads, and the id by which its response is known. */
interface Classified {
  readonly row: MethodRow
  readonly idValue: string | number | null
}

/**
 * Returns the body of a request in A2A 1.0 with names in lowerCamelCase: with the bytes themselves if it is written so. `received` is the
 * parsed request. Numbers keep their source text. Throws VersionError.
 */
export function inOneForm(bytes: Uint8Array, received: JsonObject, { method, version }: Called): A2aBody {
  if (version === '1.0' && inCamelCase(received.params) === received.params) return new A2aBody(bytes, received)
  if (version === '0.3' && !isConvertible(received)) throw new VersionError('params', 'has too many parts')
  const isExact = hasPlainNumbers(bytes)
  const request = isExact ? received : parseLossless(bytes)
  if (!isObject(request)) throw new VersionError('params', 'must be an object')
  const spelled = inCamelCase(request.params)
  const params = version === '1.0' ? spelled : upgradedParams(method, spelled)
  const converted = { ...request, method, params }
  const json = Buffer.from(JSON.stringify(converted))
  return isExact ? new A2aBody(json, converted) : new A2aBody(json)
}

function unknown(method: string, version: A2aVersion): Denial {
  return deny('unknown_method', `A2A ${version} has no method ${JSON.stringify(method.slice(0, 128))}`)
}

function noExtendedCard(version: A2aVersion): Denial {
  const rpc = version === '1.0' ? UNSUPPORTED_OPERATION : NO_EXTENDED_CARD
  return deny('unknown_method', 'there is no extended card', { data: { rpc } })
}
