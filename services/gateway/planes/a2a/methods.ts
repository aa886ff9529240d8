import type { Operation } from '../../call/index.ts'

/** A method of A2A 1.0 over JSON-RPC. */
export interface MethodRow {
  readonly operation: Operation
  /** The member of `params` with the task's id; null: none is required. */
  readonly task: 'id' | 'taskId' | null
  /** The response is an event stream. */
  readonly streams: boolean
  /** `params` has a message. */
  readonly sends: boolean
}

const plain = { operation: 'a2a.task', task: null, streams: false, sends: false } as const

/** Ends a task, so it is accepted while the gateway is overloaded. */
export const CANCEL_TASK = 'CancelTask'

/** The supported methods (A2A 1.0, section 9.4); others are refused. */
const table: Readonly<Record<string, MethodRow>> = {
  SendMessage: { ...plain, operation: 'a2a.send', sends: true },
  SendStreamingMessage: { ...plain, operation: 'a2a.send', sends: true, streams: true },
  SubscribeToTask: { ...plain, operation: 'a2a.follow', task: 'id', streams: true },
  GetTask: { ...plain, task: 'id' },
  [CANCEL_TASK]: { ...plain, task: 'id' },
  ListTasks: plain,
  CreateTaskPushNotificationConfig: { ...plain, task: 'taskId' },
  GetTaskPushNotificationConfig: { ...plain, task: 'taskId' },
  ListTaskPushNotificationConfigs: { ...plain, task: 'taskId' },
  DeleteTaskPushNotificationConfig: { ...plain, task: 'taskId' },
}

/** Method name in records and metrics for the request of a card, which is not a JSON-RPC method. */
export const GET_CARD = 'GetAgentCard'

/** Refused: the gateway's cards are the same for all callers. */
export const EXTENDED_CARD = 'GetExtendedAgentCard'

/** The label values of methods in metrics. */
export const A2A_METHODS: readonly string[] = [...Object.keys(table), GET_CARD]

export function methodRow(name: string): MethodRow | null {
  return Object.hasOwn(table, name) ? (table[name] ?? null) : null
}
