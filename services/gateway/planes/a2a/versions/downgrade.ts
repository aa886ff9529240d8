import { isObject, type JsonObject } from '@plat/core'
import { optional, own, picked } from './members.ts'
import { ENDING_STATES, PART_MARK, ROLES, STATES } from './tables.ts'

/** Converts a Message of A2A 1.0 to 0.3. Like all conversions to 0.3 it accepts any value: the plane validates the form of 1.0. */
export function downgradedMessage(message: unknown): JsonObject {
  const role = own(message, 'role')
  return {
    kind: 'message',
    ...picked(message, ['messageId', 'contextId', 'taskId']),
    role: ROLES.find(([, name]) => name === role)?.[0] ?? 'agent',
    parts: listOf(own(message, 'parts'), downgradedPart),
    ...picked(message, ['metadata', 'extensions', 'referenceTaskIds']),
  }
}

function listOf(value: unknown, map: (element: unknown) => JsonObject): JsonObject[] {
  return Array.isArray(value) ? value.map(map) : []
}

function downgradedPart(part: unknown): JsonObject {
  const metadata = picked(part, ['metadata'])
  if (own(part, 'text') !== undefined) return { kind: 'text', ...picked(part, ['text']), ...metadata }
  const bytes = own(part, 'raw')
  const uri = own(part, 'url')
  if (bytes !== undefined || uri !== undefined) {
    const content = bytes === undefined ? { uri } : { bytes }
    const described = { ...optional('mimeType', own(part, 'mediaType')), ...optional('name', own(part, 'filename')) }
    return { kind: 'file', file: { ...content, ...described }, ...metadata }
  }
  const data = isObject(part) && Object.hasOwn(part, 'data') ? part.data : null
  if (isObject(data) && !JSON.isRawJSON(data)) return { kind: 'data', data, ...metadata }
  const marked = isObject(metadata.metadata) ? metadata.metadata : {}
  return { kind: 'data', data: { value: data }, metadata: { ...marked, [PART_MARK]: true } }
}

/** Converts a Task. */
export function downgradedTask(task: unknown): JsonObject {
  const artifacts = own(task, 'artifacts')
  const history = own(task, 'history')
  return {
    kind: 'task',
    id: own(task, 'id') ?? '',
    contextId: own(task, 'contextId') ?? '',
    status: downgradedStatus(own(task, 'status')),
    ...(Array.isArray(artifacts) && { artifacts: artifacts.map(downgradedArtifact) }),
    ...(Array.isArray(history) && { history: history.map(downgradedMessage) }),
    ...picked(task, ['metadata']),
  }
}

function downgradedStatus(status: unknown): JsonObject {
  const state = own(status, 'state')
  const message = own(status, 'message')
  return {
    state: STATES.find(([, name]) => name === state)?.[0] ?? 'unknown',
    ...(message !== undefined && { message: downgradedMessage(message) }),
    ...picked(status, ['timestamp']),
  }
}

function downgradedArtifact(artifact: unknown): JsonObject {
  return {
    artifactId: own(artifact, 'artifactId') ?? '',
    ...picked(artifact, ['name', 'description']),
    parts: listOf(own(artifact, 'parts'), downgradedPart),
    ...picked(artifact, ['metadata', 'extensions']),
  }
}

/** Converts a result of a send or an event of a stream: the member that names its kind becomes `kind`. */
export function downgradedEvent(result: unknown): JsonObject {
  const task = own(result, 'task')
  if (task !== undefined) return downgradedTask(task)
  const update = own(result, 'statusUpdate')
  if (update !== undefined) {
    const status = own(update, 'status')
    return {
      kind: 'status-update',
      ...names(update),
      status: downgradedStatus(status),
      final: ENDING_STATES.has(own(status, 'state')),
      ...picked(update, ['metadata']),
    }
  }
  const piece = own(result, 'artifactUpdate')
  if (piece === undefined) return downgradedMessage(own(result, 'message'))
  return {
    kind: 'artifact-update',
    ...names(piece),
    artifact: downgradedArtifact(own(piece, 'artifact')),
    ...picked(piece, ['append', 'lastChunk', 'metadata']),
  }
}

/** 0.3 requires both ids. */
function names(update: unknown): JsonObject {
  return { taskId: own(update, 'taskId') ?? '', contextId: own(update, 'contextId') ?? '' }
}

/** Converts a TaskPushNotificationConfig to the PushNotificationConfig in it. */
export function downgradedPush(config: unknown): JsonObject {
  const authentication = own(config, 'authentication')
  const scheme = own(authentication, 'scheme')
  return {
    ...picked(config, ['id', 'url', 'token']),
    ...(authentication !== undefined && {
      authentication: { schemes: scheme === undefined ? [] : [scheme], ...picked(authentication, ['credentials']) },
    }),
  }
}

export function downgradedTaskPush(config: unknown): JsonObject {
  return { ...picked(config, ['taskId']), pushNotificationConfig: downgradedPush(config) }
}
