import { isObject, type JsonObject, parseLossless } from '@plat/core'
import { downgradedMessage, downgradedPush, downgradedTaskPush } from './downgrade.ts'
import { objectAt, optional, own, picked } from './members.ts'
import { LEGACY_NAMES } from './tables.ts'
import { upgradedMessage, upgradedPush, upgradedTaskPush } from './upgrade.ts'

/** Converts the parameters of a method, named as in 1.0, from 0.3 to 1.0. Throws VersionError if they are not of 0.3. */
export function upgradedParams(method: string, value: unknown): JsonObject {
  const params = objectAt(value ?? {}, 'params')
  switch (method) {
    case 'SendMessage':
    case 'SendStreamingMessage': {
      const configuration = own(params, 'configuration')
      return {
        message: upgradedMessage(params.message, 'params.message'),
        ...(configuration !== undefined && { configuration: upgradedConfiguration(configuration) }),
        ...picked(params, ['metadata', 'tenant']),
      }
    }
    case 'GetTask':
      return { ...picked(params, ['id', 'tenant']), ...history(params) }
    case 'CancelTask':
      return picked(params, ['id', 'metadata', 'tenant'])
    case 'SubscribeToTask':
      return picked(params, ['id', 'tenant'])
    case 'CreateTaskPushNotificationConfig':
      return { ...upgradedTaskPush(params, 'params'), ...picked(params, ['tenant']) }
    default:
      return {
        ...optional('taskId', own(params, 'id')),
        ...optional('id', own(params, 'pushNotificationConfigId')),
        ...picked(params, ['tenant']),
      }
  }
}

/** 0 means "all" in 0.3 and "none" in 1.0. */
function history(object: unknown): JsonObject {
  const length = own(object, 'historyLength')
  return length === 0 ? {} : optional('historyLength', length)
}

function upgradedConfiguration(value: unknown): JsonObject {
  const path = 'params.configuration'
  const configuration = objectAt(value, path)
  const blocking = own(configuration, 'blocking')
  const push = own(configuration, 'pushNotificationConfig')
  return {
    ...picked(configuration, ['acceptedOutputModes']),
    ...history(configuration),
    ...(typeof blocking === 'boolean' && { returnImmediately: !blocking }),
    ...(push !== undefined && {
      taskPushNotificationConfig: upgradedPush(push, `${path}.pushNotificationConfig`),
    }),
  }
}

/** Converts a request of 1.0, which the plane has validated, to 0.3. Numbers keep their source text. */
export function downgradedRequest(json: Uint8Array, method: string): Uint8Array {
  const request = parseLossless(json)
  const name = LEGACY_NAMES.get(method)
  if (!isObject(request) || name === undefined) throw new Error(`${method} is not a method of A2A 0.3`)
  const { jsonrpc, id } = request
  return Buffer.from(JSON.stringify({ jsonrpc, id, method: name, params: downgradedParams(method, request.params) }))
}

function downgradedParams(method: string, params: unknown): JsonObject {
  switch (method) {
    case 'SendMessage':
    case 'SendStreamingMessage': {
      const configuration = own(params, 'configuration')
      return {
        message: downgradedMessage(own(params, 'message')),
        ...(configuration !== undefined && { configuration: downgradedConfiguration(configuration) }),
        ...picked(params, ['metadata']),
      }
    }
    case 'GetTask':
      return picked(params, ['id', 'historyLength'])
    case 'CancelTask':
      return picked(params, ['id', 'metadata'])
    case 'SubscribeToTask':
      return picked(params, ['id'])
    case 'CreateTaskPushNotificationConfig':
      return downgradedTaskPush(params)
    default:
      return {
        ...optional('id', own(params, 'taskId')),
        ...optional('pushNotificationConfigId', own(params, 'id')),
      }
  }
}

function downgradedConfiguration(configuration: unknown): JsonObject {
  const immediately = own(configuration, 'returnImmediately')
  const push = own(configuration, 'taskPushNotificationConfig')
  return {
    ...picked(configuration, ['acceptedOutputModes', 'historyLength']),
    ...(typeof immediately === 'boolean' && { blocking: !immediately }),
    ...(push !== undefined && { pushNotificationConfig: downgradedPush(push) }),
  }
}
