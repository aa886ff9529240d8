import { isObject, type JsonObject } from '@plat/core'

/** A member that a version requires is missing or has another type. */
export class VersionError extends Error {
  constructor(path: string, problem: string) {
    super(`${path} ${problem}`)
    this.name = 'VersionError'
  }
}

/** Returns an own member; undefined if it is absent or null, which ProtoJSON treats alike. */
export function own(object: unknown, name: string): unknown {
  const value = isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined
  return value === null ? undefined : value
}

/** Returns the named members that are set. Members that neither version defines are left out. */
export function picked(object: unknown, names: readonly string[]): JsonObject {
  const out: Record<string, unknown> = {}
  for (const name of names) {
    const value = own(object, name)
    if (value !== undefined) out[name] = value
  }
  return out
}

/** Returns an object with the value as its only member, or none if the value is undefined. */
export function optional(name: string, value: unknown): JsonObject {
  return value === undefined ? {} : { [name]: value }
}

/** Throws VersionError if the value is not an object. */
export function objectAt(value: unknown, path: string): JsonObject {
  if (!isObject(value) || JSON.isRawJSON(value)) throw new VersionError(path, 'must be an object')
  return value
}

/** Maps the elements of a list with their paths. Throws VersionError if the value is not a list. */
export function listAt<T>(value: unknown, path: string, map: (element: unknown, path: string) => T): T[] {
  if (!Array.isArray(value)) throw new VersionError(path, 'must be an array')
  return value.map((element, at) => map(element, `${path}[${at}]`))
}

/** Maximum number of parts, messages, artifacts and the like in what is converted: each is processed while all other calls wait. */
export const MAX_CONVERTED = 10_000

/** Members of both versions that contain what is converted. */
const HOLDERS = [
  ...['params', 'result', 'message', 'task', 'statusUpdate', 'artifactUpdate', 'status', 'artifact'],
  ...['artifacts', 'history', 'parts', 'configs'],
]

/** Returns true if a message has at most `MAX_CONVERTED` elements to convert. */
export function isConvertible(message: unknown): boolean {
  return elementsIn(message, 0) <= MAX_CONVERTED
}

/** Adds the elements of lists to `before`; stops above the maximum. */
function elementsIn(value: unknown, before: number): number {
  let count = before
  if (Array.isArray(value)) {
    count += value.length
    for (let at = 0; at < value.length && count <= MAX_CONVERTED; at++) count = elementsIn(value[at], count)
    return count
  }
  if (!isObject(value)) return count
  for (const name of HOLDERS) if (Object.hasOwn(value, name)) count = elementsIn(value[name], count)
  return count
}

/** The members of a message of the protocol, and the shapes of those that are objects or lists of objects. */
interface Shape {
  readonly leaves: readonly string[]
  readonly within: Readonly<Record<string, () => Shape>>
}

const file: Shape = { leaves: ['bytes', 'uri', 'mimeType', 'name'], within: {} }
const part: Shape = {
  leaves: ['kind', 'text', 'raw', 'url', 'data', 'metadata', 'filename', 'mediaType'],
  within: { file: () => file },
}
const message: Shape = {
  leaves: ['kind', 'messageId', 'contextId', 'taskId', 'role', 'metadata', 'extensions', 'referenceTaskIds'],
  within: { parts: () => part },
}
const authentication: Shape = { leaves: ['scheme', 'schemes', 'credentials'], within: {} }
const push: Shape = {
  leaves: ['tenant', 'id', 'taskId', 'url', 'token', 'metadata', 'pushNotificationConfigId'],
  within: { authentication: () => authentication },
}
const configuration: Shape = {
  leaves: ['acceptedOutputModes', 'historyLength', 'returnImmediately', 'blocking'],
  within: { taskPushNotificationConfig: () => push, pushNotificationConfig: () => push },
}

/** Parameters of every method of both versions. */
const params: Shape = {
  leaves: [
    ...push.leaves,
    ...['contextId', 'status', 'historyLength', 'pageSize', 'pageToken', 'statusTimestampAfter', 'includeArtifacts'],
  ],
  within: {
    ...push.within,
    pushNotificationConfig: () => push,
    message: () => message,
    configuration: () => configuration,
  },
}

/** Names of all parameters, in lower case. */
export const NAMES: ReadonlySet<string> = new Set(
  [params, message, part, file, configuration, push, authentication].flatMap(({ leaves, within }) =>
    [...leaves, ...Object.keys(within)].map((name) => name.toLowerCase()),
  ),
)

/**
 * Returns parameters with members of the protocol in lowerCamelCase, of which ProtoJSON and the SDKs read both spellings; the value itself if
 * nothing changes. Other names are left. Throws VersionError if a member has both spellings.
 */
export function inCamelCase(value: unknown): unknown {
  return respelled(value, params, 'params')
}

function respelled(value: unknown, shape: Shape, path: string): unknown {
  if (Array.isArray(value)) return changed(value, (element, at) => respelled(element, shape, `${path}[${at}]`))
  if (!isObject(value) || JSON.isRawJSON(value)) return value
  const members = Object.entries(value)
  let isChanged = false
  for (const member of members) {
    const [name, content] = member
    const known = knownName(name, shape)
    if (known !== name) {
      if (Object.hasOwn(value, known)) throw new VersionError(`${path}.${known}`, 'is written twice, in two spellings')
      isChanged = true
    }
    const within = Object.hasOwn(shape.within, known) ? shape.within[known]?.() : undefined
    const inner = within === undefined ? content : respelled(content, within, `${path}.${known}`)
    isChanged ||= inner !== content
    member[0] = known
    member[1] = inner
  }
  return isChanged ? Object.fromEntries(members) : value
}

function knownName(name: string, { leaves, within }: Shape): string {
  if (!name.includes('_')) return name
  const known = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return leaves.includes(known) || Object.hasOwn(within, known) ? known : name
}

function changed(list: readonly unknown[], change: (element: unknown, at: number) => unknown): unknown {
  const out = list.map(change)
  return out.some((element, at) => element !== list[at]) ? out : list
}
