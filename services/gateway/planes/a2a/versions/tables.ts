/** Versions of A2A that callers and agents may speak. Everything between them sees 1.0. */
export type A2aVersion = '1.0' | '0.3'

/** States of a task: 0.3, 1.0. */
export const STATES: readonly (readonly [legacy: string, name: string])[] = [
  ['submitted', 'TASK_STATE_SUBMITTED'],
  ['working', 'TASK_STATE_WORKING'],
  ['input-required', 'TASK_STATE_INPUT_REQUIRED'],
  ['completed', 'TASK_STATE_COMPLETED'],
  ['canceled', 'TASK_STATE_CANCELED'],
  ['failed', 'TASK_STATE_FAILED'],
  ['rejected', 'TASK_STATE_REJECTED'],
  ['auth-required', 'TASK_STATE_AUTH_REQUIRED'],
  ['unknown', 'TASK_STATE_UNSPECIFIED'],
]

/** States whose update is `final` in 0.3: readers of it stop there. An agent may go on after other states. */
export const ENDING_STATES: ReadonlySet<unknown> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_FAILED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_INPUT_REQUIRED',
])

/** Roles of messages: 0.3, 1.0. */
export const ROLES: readonly (readonly [legacy: string, name: string])[] = [
  ['user', 'ROLE_USER'],
  ['agent', 'ROLE_AGENT'],
]

/** Member of the metadata of a data part of 0.3 whose value of 1.0 is not an object. The official SDKs write it too. */
export const PART_MARK = 'data_part_compat'

/** Methods of 0.3 with their names in 1.0. */
export const LEGACY_METHODS: Readonly<Record<string, string>> = {
  'message/send': 'SendMessage',
  'message/stream': 'SendStreamingMessage',
  'tasks/get': 'GetTask',
  'tasks/cancel': 'CancelTask',
  'tasks/resubscribe': 'SubscribeToTask',
  'tasks/pushNotificationConfig/set': 'CreateTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/get': 'GetTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/list': 'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/delete': 'DeleteTaskPushNotificationConfig',
  'agent/getAuthenticatedExtendedCard': 'GetExtendedAgentCard',
}

/** Method names of version 0.3 by those of 1.0. Version 0.3 has no list of tasks. */
export const LEGACY_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(LEGACY_METHODS).map(([legacy, name]) => [name, legacy]),
)
