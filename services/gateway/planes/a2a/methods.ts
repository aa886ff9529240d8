import type { Operation } from '../../call/index.ts'

/** A method of A2A 1.0 over JSON-RPC, and where its parameters name the task that it is about. */
export interface MethodRow {
  readonly operation: Operation
  /** Member of `params` with a task's id; null: none has to be there. */
  readonly task: 'id' | 'taskId' | null
  /** Answered by an event stream. */
  readonly streams: boolean
  /** Carries a message. */
  readonly sends: boolean
}

const plain = { operation: 'a2a.task', task: null, streams: false, sends: false } as const

/** Ends a task: accepted while the gateway is overloaded. */
export const CANCEL_TASK = 'CancelTask'

/** Every method that is let through (A2A 1.0, section 9.4); what has no row is refused. */
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

/** What asking for a card is called in records and metrics: it is no method of JSON-RPC. */
export const GET_CARD = 'GetAgentCard'

/** A card that says more to some callers: the gateway's cards say the same to all. */
export const EXTENDED_CARD = 'GetExtendedAgentCard'

/** Names of all methods, for metrics. */
export const A2A_METHODS: readonly string[] = [...Object.keys(table), GET_CARD]

export function methodRow(name: string): MethodRow | null {
  return Object.hasOwn(table, name) ? (table[name] ?? null) : null
}
