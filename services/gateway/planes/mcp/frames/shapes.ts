import { isObject, type JsonObject } from '../../wire/json.ts'
import type { Era } from '../classify.ts'

/** What is wrong with a result; null: nothing. */
type Check = (result: JsonObject) => string | null

/**
 * What the gateway depends on in a result of a method: lists that are filtered, pinned and sealed, texts that guards read, what a
 * server announces. Every result of every method is an object beside that. Methods that are not here have nothing more to check.
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
  'prompts/get': (result) => roundProblem(result, 'messages'),
  'resources/read': (result) => roundProblem(result, 'contents'),
}

/** What is wrong with the result of a method, as the end of a sentence; null: nothing. */
export function shapeProblem(method: string, era: Era, result: unknown): string | null {
  if (!isObject(result)) return 'that is no object'
  const check = Object.hasOwn(checks, method) ? checks[method] : undefined
  const problem = check?.(result) ?? null
  return problem ?? (era === 'modern' ? modernProblem(result) : null)
}

/** What revision 2026-07-28 adds to results: rounds and tasks. */
function modernProblem(result: JsonObject): string | null {
  const { inputRequests } = result
  if (inputRequests !== undefined && !isObject(inputRequests)) return 'whose inputRequests are no object'
  return optionalText(result, 'resultType') ?? optionalText(result, 'requestState')
}

function listProblem(result: JsonObject, name: string, key: string): string | null {
  const list = result[name]
  if (!Array.isArray(list)) return `whose ${name} are no array`
  if (!list.every((entry) => isObject(entry) && typeof entry[key] === 'string'))
    return `whose ${name} are not all objects with a ${key}`
  return optionalText(result, 'nextCursor')
}

/** Content that must be there unless the result asks for another round. */
function roundProblem(result: JsonObject, name: string): string | null {
  if (result[name] === undefined && result.inputRequests === undefined && result.requestState === undefined)
    return `without ${name}`
  return optionalObjects(result, name)
}

function optionalObjects(result: JsonObject, name: string): string | null {
  const list = result[name]
  if (list === undefined) return null
  return Array.isArray(list) && list.every(isObject) ? null : `whose ${name} is no array of objects`
}

function textProblem(result: JsonObject, name: string): string | null {
  return typeof result[name] === 'string' ? null : `whose ${name} is no string`
}

function textsProblem(result: JsonObject, name: string): string | null {
  const list = result[name]
  return Array.isArray(list) && list.every((one) => typeof one === 'string')
    ? null
    : `whose ${name} is no list of strings`
}

function objectProblem(result: JsonObject, name: string): string | null {
  return isObject(result[name]) ? null : `whose ${name} is no object`
}

function optionalText(result: JsonObject, name: string): string | null {
  const value = result[name]
  return value === undefined || typeof value === 'string' ? null : `whose ${name} is no string`
}

function optionalBoolean(result: JsonObject, name: string): string | null {
  const value = result[name]
  return value === undefined || typeof value === 'boolean' ? null : `whose ${name} is no boolean`
}
