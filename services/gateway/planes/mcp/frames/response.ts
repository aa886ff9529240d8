import {
  canonicalJson,
  isObject,
  JsonError,
  type JsonObject,
  MESSAGE_LIMITS,
  parseLossless,
  readStrict,
  type StrictJson,
} from '@plat/core'
import { UpstreamError } from '../../../call/index.ts'
import { eventData } from '../../wire/sse.ts'
import type { Era } from '../classify.ts'
import { type AwaitedId, slice } from '../message.ts'
import { isTask } from '../tasks/status.ts'
import { McpFrame } from './frame.ts'

/** An invalid message of a server. The error message names the violated rule and does not quote the server's message. */
export class InvalidResponseError extends UpstreamError {
  constructor(problem: string) {
    super(`the server sent ${problem}`)
    this.name = 'InvalidResponseError'
  }
}

export interface Expected {
  /** The request's id; null: no response is permitted, as to a notification or on a plain GET. */
  readonly id: AwaitedId | null
  /** Method of the request, which determines the shape of its result. */
  readonly method: string
  readonly era: Era
}

/**
 * Validates everything that a server sends for one request, as JSON body or as events: strict UTF-8 and JSON, JSON-RPC 2.0, and
 * exactly one response, with the id of the request. Each message is parsed once, and its frame has the value. Throws
 * `InvalidResponseError` for an invalid message, which is then not relayed.
 */
export class McpResponse {
  readonly #expected: Expected
  #complete = false

  constructor(expected: Expected) {
    this.#expected = expected
  }

  /** True when the response was received, or none is expected. */
  get complete(): boolean {
    return this.#complete || this.#expected.id === null
  }

  /** Returns the frame of a body with a success status, which must be the response. */
  body(json: Uint8Array): McpFrame {
    const { message, text } = parsed(json)
    if (kindOf(message) !== 'response') throw new InvalidResponseError('a request or a notification as a JSON response')
    this.#checkResponse(json, message)
    return McpFrame.body('final', json, { value: message, text })
  }

  /** Returns the frame of a body with an error status. Its error has no id if the server could not read it (JSON-RPC 2.0, section 5). */
  errorBody(json: Uint8Array): McpFrame {
    const { message, text } = parsed(json)
    if (kindOf(message) !== 'response' || message.error === undefined)
      throw new InvalidResponseError('an error status without a JSON-RPC error')
    checkError(message.error)
    const { id } = message
    if (id !== undefined && id !== null && !this.#isExpectedId(json, id)) throw new InvalidResponseError(OTHER_ID)
    return McpFrame.body('error', json, { value: message, text })
  }

  /** Returns the frame of one event of a stream; its role is that of its message. */
  event(raw: Uint8Array): McpFrame {
    const data = eventData(raw)
    // An event with empty data has an id from which to resume, and no message.
    if (data === null || data.length === 0) return McpFrame.event('progress', { raw, json: null }, undefined)
    const value = parsed(data).message
    const kind = kindOf(value)
    if (kind === 'response') this.#checkResponse(data, value)
    // Since revision 2026-07-28 a server requests input in its result, and streams contain no requests.
    if (kind === 'request' && this.#expected.era === 'modern')
      throw new InvalidResponseError('a request, which streams of this revision must not contain')
    const role = kind === 'response' ? 'final' : kind === 'request' ? 'request' : 'progress'
    return McpFrame.event(role, { raw, json: data }, value)
  }

  #checkResponse(json: Uint8Array, { id, result, error }: JsonObject): void {
    if (this.#complete) throw new InvalidResponseError('a second response')
    if (!this.#isExpectedId(json, id)) throw new InvalidResponseError(OTHER_ID)
    if (error !== undefined) checkError(error)
    else {
      const { method, era } = this.#expected
      const problem = shapeProblem(method, era, result)
      if (problem !== null) throw new InvalidResponseError(`a result of ${method} ${problem}`)
    }
    this.#complete = true
  }

  /** Returns true if the ids have the same JSON type and value. Numbers beyond double precision are compared as written. */
  #isExpectedId(json: Uint8Array, id: unknown): boolean {
    const own = this.#expected.id
    if (own === null || id !== own.value) return false
    if (typeof id === 'string' || Number.isSafeInteger(id)) return true
    const literal = slice(json, ['id'])
    return literal !== null && canonicalNumber(own.literal()) === canonicalNumber(literal)
  }
}

const OTHER_ID = 'a response that is not for this request'

interface ParsedMessage {
  readonly message: JsonObject
  readonly text: string
}

function parsed(json: Uint8Array): ParsedMessage {
  const { value, text } = strictJson(json)
  // Arrays are batches, which no supported revision has.
  if (!isObject(value)) throw new InvalidResponseError('a message that is not a JSON object')
  if (value.jsonrpc !== '2.0') throw new InvalidResponseError('a message that is not JSON-RPC 2.0')
  return { message: value, text }
}

function strictJson(json: Uint8Array): StrictJson {
  try {
    return readStrict(json, MESSAGE_LIMITS)
  } catch (error) {
    if (error instanceof JsonError)
      throw new InvalidResponseError(`a message that is not strict JSON: ${error.message}`)
    throw error
  }
}

/** Returns the kind of a message. Throws InvalidResponseError if it is none or more than one. */
function kindOf({ id, method, params, result, error }: JsonObject): 'request' | 'notification' | 'response' {
  const answers = result !== undefined || error !== undefined
  if (typeof method === 'string') {
    if (answers) throw new InvalidResponseError('a message with a method and a result or an error')
    if (params !== undefined && !isObject(params))
      throw new InvalidResponseError('a message whose params are not an object')
    if (id === undefined) return 'notification'
    if (typeof id === 'string' || typeof id === 'number') return 'request'
    throw new InvalidResponseError('a request whose id is neither a string nor a number')
  }
  if (method !== undefined) throw new InvalidResponseError('a message whose method is not a string')
  if ((result !== undefined) === (error !== undefined))
    throw new InvalidResponseError('a response without exactly one of result and error')
  return 'response'
}

function checkError(error: unknown): void {
  const isError = isObject(error) && Number.isInteger(error.code) && typeof error.message === 'string'
  if (!isError) throw new InvalidResponseError('an error without an integer code and a message')
}

function canonicalNumber(literal: Uint8Array): string {
  return literal.length === 0 ? '' : canonicalJson(parseLossless(literal))
}

/** Returns what is wrong with a result, or null when it is valid. */
type Check = (result: JsonObject) => string | null

/**
 * Checks of the parts of results on which the gateway depends: lists that are filtered, pinned and sealed, texts that guards read, and
 * server capabilities. In addition, every result must be an object.
 */
const checks: Readonly<Record<string, Check>> = {
  initialize: (result) =>
    textProblem(result, 'protocolVersion') ??
    objectProblem(result, 'capabilities') ??
    optionalText(result, 'instructions'),
  'server/discover': (result) =>
    textsProblem(result, 'supportedVersions') ??
    objectProblem(result, 'capabilities') ??
    optionalText(result, 'instructions'),
  'tools/list': (result) => listProblem(result, 'tools', 'name'),
  'prompts/list': (result) => listProblem(result, 'prompts', 'name'),
  'resources/list': (result) => listProblem(result, 'resources', 'uri'),
  'resources/templates/list': (result) => listProblem(result, 'resourceTemplates', 'uriTemplate'),
  'tools/call': (result) => optionalObjects(result, 'content') ?? optionalBoolean(result, 'isError'),
  'tasks/result': (result) => optionalObjects(result, 'content') ?? optionalBoolean(result, 'isError'),
  'tasks/list': (result) => listProblem(result, 'tasks', 'taskId'),
  'tasks/get': (result) => taskProblem(result),
  'prompts/get': (result) => roundProblem(result, 'messages'),
  'resources/read': (result) => roundProblem(result, 'contents'),
}

/** Returns what is wrong with the result of a method, as the end of a sentence, or null when it is valid. */
export function shapeProblem(method: string, era: Era, result: unknown): string | null {
  if (!isObject(result)) return 'that is not an object'
  const check = Object.hasOwn(checks, method) ? checks[method] : undefined
  const problem = check?.(result) ?? null
  return problem ?? (era === 'modern' ? modernProblem(result) : null)
}

/** Checks the members that revision 2026-07-28 adds to results, for rounds and tasks. */
function modernProblem(result: JsonObject): string | null {
  const { inputRequests } = result
  if (inputRequests !== undefined && !isObject(inputRequests)) return 'whose inputRequests are not an object'
  return optionalText(result, 'resultType') ?? optionalText(result, 'requestState')
}

function listProblem(result: JsonObject, name: string, key: string): string | null {
  const list = result[name]
  if (!Array.isArray(list)) return `whose ${name} are not an array`
  if (!list.every((entry) => isObject(entry) && typeof entry[key] === 'string'))
    return `whose ${name} are not all objects with a ${key}`
  return optionalText(result, 'nextCursor')
}

/** Checks content that is required unless the result requests another round. */
function roundProblem(result: JsonObject, name: string): string | null {
  if (result[name] === undefined && result.inputRequests === undefined && result.requestState === undefined)
    return `without ${name}`
  return optionalObjects(result, name)
}

function optionalObjects(result: JsonObject, name: string): string | null {
  const list = result[name]
  if (list === undefined) return null
  return Array.isArray(list) && list.every(isObject) ? null : `whose ${name} is not an array of objects`
}

/** Checks a task, and the result of its call. */
function taskProblem(task: JsonObject): string | null {
  if (!isTask(task)) return 'without a valid taskId and status'
  const { result } = task
  if (result === undefined) return null
  if (!isObject(result)) return 'whose result is not an object'
  return optionalObjects(result, 'content') ?? optionalBoolean(result, 'isError')
}

function textProblem(result: JsonObject, name: string): string | null {
  return typeof result[name] === 'string' ? null : `whose ${name} is not a string`
}

function textsProblem(result: JsonObject, name: string): string | null {
  const list = result[name]
  return Array.isArray(list) && list.every((one) => typeof one === 'string')
    ? null
    : `whose ${name} is not a list of strings`
}

function objectProblem(result: JsonObject, name: string): string | null {
  return isObject(result[name]) ? null : `whose ${name} is not an object`
}

function optionalText(result: JsonObject, name: string): string | null {
  const value = result[name]
  return value === undefined || typeof value === 'string' ? null : `whose ${name} is not a string`
}

function optionalBoolean(result: JsonObject, name: string): string | null {
  const value = result[name]
  return value === undefined || typeof value === 'boolean' ? null : `whose ${name} is not a boolean`
}
