import type { JsonObject } from '@plat/core'
import { listAt, objectAt, optional, own, picked, VersionError } from './members.ts'
import { PART_MARK, ROLES, STATES } from './tables.ts'

/** Converts a Message of A2A 0.3 to 1.0. Throws VersionError if it is not one. */
export function upgradedMessage(value: unknown, path: string): JsonObject {
  const message = objectAt(value, path)
  const { kind = 'message', role, parts } = message
  if (kind !== 'message') throw new VersionError(`${path}.kind`, 'must be message')
  const upgraded = ROLES.find(([legacy]) => legacy === role)?.[1]
  if (upgraded === undefined) throw new VersionError(`${path}.role`, 'must be user or agent')
  return {
    ...picked(message, ['messageId', 'contextId', 'taskId']),
    role: upgraded,
    parts: listAt(parts, `${path}.parts`, upgradedPart),
    ...picked(message, ['metadata', 'extensions', 'referenceTaskIds']),
  }
}

function upgradedPart(value: unknown, path: string): JsonObject {
  const part = objectAt(value, path)
  switch (part.kind) {
    case 'text':
      if (typeof part.text !== 'string') throw new VersionError(`${path}.text`, 'must be a string')
      return picked(part, ['text', 'metadata'])
    case 'data':
      return upgradedData(part, path)
    case 'file':
      return { ...upgradedFile(objectAt(part.file, `${path}.file`), `${path}.file`), ...picked(part, ['metadata']) }
    default:
      throw new VersionError(`${path}.kind`, 'must be text, file or data')
  }
}

/** `data` of 1.0 can be any value; in 0.3 a value that is not an object is the member `value` of one, and marked. */
function upgradedData(part: JsonObject, path: string): JsonObject {
  const data = objectAt(part.data, `${path}.data`)
  const metadata = own(part, 'metadata')
  if (own(metadata, PART_MARK) !== true) return { data, ...optional('metadata', metadata) }
  const { [PART_MARK]: _, ...rest } = objectAt(metadata, `${path}.metadata`)
  return {
    data: Object.hasOwn(data, 'value') ? data.value : null,
    ...(Object.keys(rest).length > 0 && { metadata: rest }),
  }
}

function upgradedFile(file: JsonObject, path: string): JsonObject {
  const bytes = own(file, 'bytes')
  const uri = own(file, 'uri')
  const content = bytes ?? uri
  if ((bytes === undefined) === (uri === undefined) || typeof content !== 'string')
    throw new VersionError(path, 'must have either bytes or uri')
  return {
    ...(bytes === undefined ? { url: content } : { raw: content }),
    ...optional('mediaType', own(file, 'mimeType')),
    ...optional('filename', own(file, 'name')),
  }
}

/** Converts a Task. */
export function upgradedTask(value: unknown, path: string): JsonObject {
  const task = objectAt(value, path)
  const { kind = 'task' } = task
  if (kind !== 'task') throw new VersionError(`${path}.kind`, 'must be task')
  const artifacts = own(task, 'artifacts')
  const history = own(task, 'history')
  return {
    ...picked(task, ['id', 'contextId']),
    status: upgradedStatus(task.status, `${path}.status`),
    ...(artifacts !== undefined && { artifacts: listAt(artifacts, `${path}.artifacts`, upgradedArtifact) }),
    ...(history !== undefined && { history: listAt(history, `${path}.history`, upgradedMessage) }),
    ...picked(task, ['metadata']),
  }
}

function upgradedStatus(value: unknown, path: string): JsonObject {
  const status = objectAt(value, path)
  const state = STATES.find(([legacy]) => legacy === status.state)?.[1]
  if (state === undefined) throw new VersionError(`${path}.state`, 'is not a state of a task')
  const message = own(status, 'message')
  return {
    state,
    ...(message !== undefined && { message: upgradedMessage(message, `${path}.message`) }),
    ...picked(status, ['timestamp']),
  }
}

function upgradedArtifact(value: unknown, path: string): JsonObject {
  const artifact = objectAt(value, path)
  return {
    ...picked(artifact, ['artifactId', 'name', 'description']),
    parts: listAt(artifact.parts, `${path}.parts`, upgradedPart),
    ...picked(artifact, ['metadata', 'extensions']),
  }
}

/** Converts a result of a send or an event of a stream to the member that 1.0 has for its kind. */
export function upgradedEvent(value: unknown, path: string): JsonObject {
  const event = objectAt(value, path)
  const update = () => picked(event, ['taskId', 'contextId'])
  switch (event.kind) {
    case 'task':
      return { task: upgradedTask(event, path) }
    case 'message':
      return { message: upgradedMessage(event, path) }
    case 'status-update':
      return {
        statusUpdate: {
          ...update(),
          status: upgradedStatus(event.status, `${path}.status`),
          ...picked(event, ['metadata']),
        },
      }
    case 'artifact-update':
      return {
        artifactUpdate: {
          ...update(),
          artifact: upgradedArtifact(event.artifact, `${path}.artifact`),
          ...picked(event, ['append', 'lastChunk', 'metadata']),
        },
      }
    default:
      throw new VersionError(`${path}.kind`, 'is not a kind of A2A 0.3')
  }
}

/** Converts a PushNotificationConfig. 1.0 has one authentication scheme: the first. */
export function upgradedPush(value: unknown, path: string): JsonObject {
  const config = objectAt(value, path)
  const authentication = own(config, 'authentication')
  const schemes = own(authentication, 'schemes')
  const scheme = Array.isArray(schemes) && schemes.length > 0 ? schemes[0] : undefined
  return {
    ...picked(config, ['id', 'url', 'token']),
    ...(authentication !== undefined && {
      authentication: { ...optional('scheme', scheme), ...picked(authentication, ['credentials']) },
    }),
  }
}

/** Converts a TaskPushNotificationConfig, whose configuration is a separate object in 0.3. */
export function upgradedTaskPush(value: unknown, path: string): JsonObject {
  const config = objectAt(value, path)
  return {
    ...picked(config, ['taskId']),
    ...upgradedPush(config.pushNotificationConfig, `${path}.pushNotificationConfig`),
  }
}
