import { isObject, parseLossless } from '@plat/core'
import { downgradedEvent, downgradedTask, downgradedTaskPush } from './downgrade.ts'
import { listAt, own, VersionError } from './members.ts'
import { upgradedEvent, upgradedTask, upgradedTaskPush } from './upgrade.ts'

/** The last error code that 0.3 defines, of the codes of A2A from -32001 down to -32099. */
const LAST_LEGACY_CODE = -32007
const LAST_CODE = -32099
const INTERNAL_ERROR = -32603

/**
 * Converts a strict, convertible JSON-RPC response of an agent from 0.3 to 1.0; `method` is named as in 1.0. Numbers keep their source text. Returns null
 * if the result is not one of this method in 0.3. An error is the same in both versions.
 */
export function upgradedResponse(json: Uint8Array, method: string): Uint8Array | null {
  const response = parseLossless(json)
  if (!isObject(response)) return null
  // The result of a deletion is null, which may be left out.
  const hasResult = Object.hasOwn(response, 'result') || method === 'DeleteTaskPushNotificationConfig'
  if (!hasResult || Object.hasOwn(response, 'error')) return json
  try {
    return Buffer.from(JSON.stringify({ ...response, result: upgradedResult(method, response.result) }))
  } catch (error) {
    if (error instanceof VersionError) return null
    throw error
  }
}

function upgradedResult(method: string, result: unknown): unknown {
  switch (method) {
    case 'GetTask':
    case 'CancelTask':
      return upgradedTask(result, 'result')
    case 'ListTaskPushNotificationConfigs':
      return { configs: listAt(result ?? [], 'result', upgradedTaskPush) }
    case 'DeleteTaskPushNotificationConfig':
      return {}
    case 'CreateTaskPushNotificationConfig':
    case 'GetTaskPushNotificationConfig':
      return upgradedTaskPush(result, 'result')
    default:
      return upgradedEvent(result, 'result')
  }
}

/** Returns true if an event of 0.3 says that its stream ends here. */
export function isFinalEvent(response: unknown): boolean {
  return own(own(response, 'result'), 'final') === true
}

/** Converts a valid and convertible response of 1.0 to 0.3. Numbers keep their source text. */
export function downgradedResponse(json: Uint8Array, method: string): Uint8Array {
  const response = parseLossless(json)
  if (!isObject(response)) return json
  const changed = Object.hasOwn(response, 'result')
    ? { ...response, result: downgradedResult(method, response.result) }
    : { ...response, error: downgradedError(response.error) }
  return Buffer.from(JSON.stringify(changed))
}

function downgradedResult(method: string, result: unknown): unknown {
  switch (method) {
    case 'GetTask':
    case 'CancelTask':
      return downgradedTask(result)
    case 'ListTaskPushNotificationConfigs': {
      const configs = own(result, 'configs')
      return Array.isArray(configs) ? configs.map(downgradedTaskPush) : []
    }
    case 'DeleteTaskPushNotificationConfig':
      return null
    case 'CreateTaskPushNotificationConfig':
    case 'GetTaskPushNotificationConfig':
      return downgradedTaskPush(result)
    default:
      return downgradedEvent(result)
  }
}

/** Error codes that only 1.0 has become an internal error, which every reader of 0.3 knows. */
function downgradedError(error: unknown): unknown {
  const code = own(error, 'code')
  const isNew = typeof code === 'number' && code < LAST_LEGACY_CODE && code >= LAST_CODE
  return isNew && isObject(error) ? { ...error, code: INTERNAL_ERROR } : error
}
