import { isObject, type JsonObject } from '@plat/core'
import { type Denial, deny } from '../../call/index.ts'
import type { MethodRow } from './methods.ts'
import type { NamedInRequest } from './request.ts'
import { NAMES } from './versions/members.ts'

/** JSON-RPC "invalid params". */
const INVALID_PARAMS = -32602

/** docs/spec/crds.md, `a2a.skills[].id`. */
const SKILL_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

/** The parameters of a request that determine whether it is permitted. */
export interface ReadParams extends Omit<NamedInRequest, 'version'> {
  readonly skill: string | null
  /** The sealed token, as sent to the caller. */
  readonly pageToken: string | null
}

/**
 * Reads the parameters of a request as in ProtoJSON: `null` and the empty string count as absent. Names of the protocol are in lowerCamelCase
 * already. Returns a denial for members that another parser could read as one of these parameters, since they would not be checked: other
 * spellings, other types, another tenant. Other members are forwarded, since clients of later versions send them.
 */
export function readParams(params: unknown, row: MethodRow, method: string): ReadParams | Denial {
  try {
    if (!isObject(params)) throw new InvalidMessageError('params', 'must be an object')
    plainly(params, 'params')
    if (textIn(params, 'tenant', 'params') !== null)
      throw new InvalidMessageError('params.tenant', 'is not supported: leave it out')
    return row.sends ? sent(params, row) : readQuery(params, row, method)
  } catch (error) {
    if (error instanceof InvalidMessageError) return invalidParams(error)
    throw error
  }
}

export function invalidParams({ message }: Error): Denial {
  return deny('invalid_request', message, { data: { rpc: INVALID_PARAMS } })
}

class InvalidMessageError extends Error {
  constructor(path: string, problem: string) {
    super(`${path} ${problem}`)
  }
}

/** Throws InvalidMessageError for other spellings of the protocol's names, which are in lowerCamelCase already. */
function plainly(object: JsonObject, path: string): void {
  for (const name of Object.keys(object))
    if (name.includes('_') && NAMES.has(name.replaceAll('_', '').toLowerCase()))
      throw new InvalidMessageError(`${path}.${name.slice(0, 64)}`, 'is not written in lowerCamelCase')
}

function textIn(object: JsonObject, name: string, path: string): string | null {
  const value = Object.hasOwn(object, name) ? object[name] : undefined
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') throw new InvalidMessageError(`${path}.${name}`, 'must be a string')
  return value
}

function objectIn(object: JsonObject, name: string, path: string): JsonObject | null {
  const value = Object.hasOwn(object, name) ? object[name] : undefined
  if (value === undefined || value === null) return null
  if (!isObject(value)) throw new InvalidMessageError(`${path}.${name}`, 'must be an object')
  return value
}

function textsIn(object: JsonObject, name: string, path: string): readonly string[] {
  const value = Object.hasOwn(object, name) ? object[name] : undefined
  if (value === undefined || value === null) return []
  const texts = Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
  if (!Array.isArray(value) || texts.length !== value.length)
    throw new InvalidMessageError(`${path}.${name}`, 'must be an array of strings')
  return texts
}

function sent(params: JsonObject, { streams }: MethodRow): ReadParams {
  const message = objectIn(params, 'message', 'params')
  if (message === null) throw new InvalidMessageError('params.message', 'is required')
  plainly(message, 'params.message')
  const at = 'params.message'
  const task = textIn(message, 'taskId', at)
  const context = textIn(message, 'contextId', at)
  const metadata = objectIn(message, 'metadata', at)
  const skill = metadata === null ? null : textIn(metadata, 'skillId', `${at}.metadata`)
  if (skill !== null && !SKILL_ID.test(skill))
    throw new InvalidMessageError(`${at}.metadata.skillId`, 'is not a skill id')
  return {
    skill,
    tasks: [...(task === null ? [] : [task]), ...textsIn(message, 'referenceTaskIds', at)],
    contexts: context === null ? [] : [context],
    pushURLs: pushedTo(params),
    streams,
    begins: task === null,
    pageToken: null,
  }
}

/** Returns the webhooks in a message, which can configure one for its task. */
function pushedTo(params: JsonObject): readonly string[] {
  const configuration = objectIn(params, 'configuration', 'params')
  if (configuration === null) return []
  const at = 'params.configuration'
  plainly(configuration, at)
  const name = 'taskPushNotificationConfig'
  for (const other of Object.keys(configuration))
    if (other !== name && other.toLowerCase().includes('push'))
      throw new InvalidMessageError(`${at}.${other.slice(0, 64)}`, `is written ${name}`)
  const push = objectIn(configuration, name, at)
  return push === null ? [] : [urlIn(push, `${at}.${name}`)]
}

function urlIn(push: JsonObject, path: string): string {
  plainly(push, path)
  if (textIn(push, 'tenant', path) !== null)
    throw new InvalidMessageError(`${path}.tenant`, 'is not supported: leave it out')
  const url = textIn(push, 'url', path)
  if (url === null) throw new InvalidMessageError(`${path}.url`, 'is required')
  return url
}

function readQuery(params: JsonObject, row: MethodRow, method: string): ReadParams {
  const task = row.task === null ? null : textIn(params, row.task, 'params')
  if (row.task !== null && task === null) throw new InvalidMessageError(`params.${row.task}`, 'is required')
  // Tasks of others are left out of lists, so the context need not be the caller's.
  if (method === 'ListTasks') textIn(params, 'contextId', 'params')
  return {
    skill: null,
    tasks: task === null ? [] : [task],
    contexts: [],
    streams: row.streams,
    begins: false,
    pushURLs: method === 'CreateTaskPushNotificationConfig' ? [urlIn(params, 'params')] : [],
    pageToken: method === 'ListTasks' ? textIn(params, 'pageToken', 'params') : null,
  }
}
