import type { Failure, Reply } from '../http/reply.ts'
import { type Message, PROGRESS_PATH, replaced, SUBSCRIPTION_PATH, valueAt } from '../message.ts'

/** A call that waits for its response. */
export interface Open {
  /** The session that made it. */
  readonly owner: string
  readonly method: string
  /** Null for a request of the bridge itself. */
  readonly reply: Reply | null
  /** Its id as the client wrote it. */
  readonly id: Uint8Array
  /** The client's progress token; null: it wants no progress. */
  readonly token: Uint8Array | null
  /** Called instead of `reply.finish`. */
  readonly done?: (response: Message) => void
  /** Called instead of `reply.fail`. */
  readonly failed?: (failure: Failure) => void
}

/** The calls and streams of a process, as far as routing needs them. */
export interface Routing {
  readonly isShared: boolean
  readonly isModern: boolean
  readonly streams: Iterable<Reply>
  readonly latest: Reply | null
  /** Returns the open call with this id of the link; null if there is none. */
  callOf(id: unknown): Open | null
  deliver(reply: Reply, json: Uint8Array): void
  dropped(what: string): void
}

/** Notifications of a server that concern all of its clients, and say nothing of any of them. */
const FOR_ALL: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
])

/** Notifications that belong to a stream rather than to a call, if there is one. */
const FOR_STREAMS: ReadonlySet<string> = new Set([...FOR_ALL, 'notifications/resources/updated'])

/**
 * Routes a notification. Progress and events of a subscription go to the call that they name. Of a shared process nothing else is passed on
 * but changes of lists: a log line or an update could be about another session's work.
 */
export function routeNotification(message: Message, routing: Routing): void {
  const { method, value, bytes } = message
  if (method === 'notifications/progress') {
    const open = routing.callOf(valueAt(value, PROGRESS_PATH))
    if (open?.reply && open.token !== null) routing.deliver(open.reply, replaced(bytes, PROGRESS_PATH, open.token))
    return
  }
  const subscription = valueAt(value, SUBSCRIPTION_PATH)
  if (subscription !== undefined) {
    const open = routing.callOf(subscription)
    if (open?.reply) routing.deliver(open.reply, replaced(bytes, SUBSCRIPTION_PATH, open.id))
    else routing.dropped('an event of a subscription that is not open')
    return
  }
  if (routing.isShared) {
    if (FOR_ALL.has(method) && !routing.isModern) for (const stream of routing.streams) routing.deliver(stream, bytes)
    return
  }
  const [stream] = routing.streams
  const reply = FOR_STREAMS.has(method) ? (stream ?? routing.latest) : (routing.latest ?? stream)
  if (reply) routing.deliver(reply, bytes)
}
