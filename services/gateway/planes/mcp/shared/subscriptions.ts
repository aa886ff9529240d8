import { type Clock, isObject, type JsonObject, member } from '@plat/core'
import { type Denial, deny } from '../../../call/index.ts'
import type { NestedCall, Sink } from '../../../pipeline/index.ts'
import { parsedOrUndefined } from '../../wire/message.ts'
import { eventData, messageEvent, SseSplitter } from '../../wire/sse.ts'
import { idOf, type McpRequest } from '../message.ts'
import { serverOfSealed, sharedUri, splitUri } from './naming.ts'
import type { Subscribed } from './requests.ts'
import type { NamedServer } from './servers.ts'
import { EventSink, MergedStream } from './stream.ts'

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
/** Changes of lists, of which every server may have some. */
const CHANGES = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const

/** Dependencies of subscriptions. */
export interface SubscriptionParts {
  readonly clock: Clock
  /** Milliseconds after which the client gets its acknowledgement without the servers that did not send theirs. */
  readonly listWaitMs: number
  readonly servers: readonly NamedServer[]
  start(at: Subscribed, sink: Sink): NestedCall
}

/**
 * Returns the subscriptions that one `subscriptions/listen` requests at the client's servers, as one stream: an acknowledgement of what the
 * servers agreed to, and then their notifications. Returns a denial if the message does not state what to subscribe to.
 */
export function subscriptions(parts: SubscriptionParts, request: McpRequest, message: unknown): MergedStream | Denial {
  const params = member(message, 'params')
  const wanted = member(params, 'notifications')
  if (!isObject(wanted)) return deny('invalid_request', 'params.notifications must be an object')
  const filters = new Map<string, Subscribed>()
  for (const { name, prefix } of parts.servers) {
    const notifications = prefix === null ? null : filterOf(wanted, prefix)
    if (prefix === null || notifications === null) continue
    const own = {
      jsonrpc: '2.0',
      id: request.id,
      method: request.method,
      params: { ...paramsOf(params), notifications },
    }
    filters.set(name, { server: name, prefix, message: own })
  }
  return new Subscriptions(parts, request, filters).stream
}

function paramsOf(params: unknown): JsonObject {
  return isObject(params) ? params : {}
}

/** Returns what a client wants of the server with this prefix; null: nothing. */
function filterOf(wanted: JsonObject, prefix: string): JsonObject | null {
  const filter: Record<string, unknown> = {}
  for (const name of CHANGES) if (wanted[name] === true) filter[name] = true
  const uris = textsIn(wanted.resourceSubscriptions).flatMap((uri) => {
    const split = splitUri(uri)
    return split?.prefix === prefix ? [split.name] : []
  })
  if (uris.length > 0) filter.resourceSubscriptions = uris
  const ids = textsIn(wanted.taskIds).filter((id) => serverOfSealed(id) === prefix)
  if (ids.length > 0) filter.taskIds = ids
  return Object.keys(filter).length === 0 ? null : filter
}

function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
}

class Subscriptions {
  readonly stream: MergedStream
  readonly #request: McpRequest
  readonly #agreed: Record<string, unknown> = {}
  /** Servers that have not acknowledged. */
  readonly #pending: Set<string>
  readonly #acknowledged = Promise.withResolvers<void>()
  #isAcknowledged = false

  constructor(
    { clock, listWaitMs, start }: SubscriptionParts,
    request: McpRequest,
    filters: ReadonlyMap<string, Subscribed>,
  ) {
    this.#request = request
    this.#pending = new Set(filters.keys())
    const startAt = (server: string, sink: Sink) => {
      const at = filters.get(server)
      return at === undefined ? null : start(at, sink)
    }
    this.stream = new MergedStream(clock, startAt, (server, push) => {
      const prefix = filters.get(server)?.prefix ?? ''
      return new SubscriptionSink(
        (message) => this.#agree(server, prefix, message),
        // Notifications follow the acknowledgement.
        (bytes) => (this.#isAcknowledged ? push(bytes) : this.#acknowledged.promise.then(() => push(bytes))),
      )
    })
    const cancel = clock.after(listWaitMs, () => this.#acknowledge())
    this.stream.whenOver(() => {
      cancel()
      this.#acknowledged.resolve()
    })
    for (const server of filters.keys()) this.stream.add(server)
    if (filters.size === 0) this.#acknowledge()
  }

  /** Adds what a server agreed to; `message` is null if its stream ended. */
  #agree(server: string, prefix: string, message: unknown): void {
    if (!this.#pending.delete(server)) return
    const agreed = member(member(message, 'params'), 'notifications')
    for (const name of CHANGES) if (member(agreed, name) === true) this.#agreed[name] = true
    const uris = textsIn(member(agreed, 'resourceSubscriptions')).map((uri) => sharedUri(prefix, uri))
    this.#add('resourceSubscriptions', uris)
    this.#add('taskIds', textsIn(member(agreed, 'taskIds')))
    if (this.#pending.size === 0) this.#acknowledge()
  }

  #add(name: string, texts: readonly string[]): void {
    if (texts.length > 0) this.#agreed[name] = [...textsIn(this.#agreed[name]), ...texts]
  }

  #acknowledge(): void {
    if (this.#isAcknowledged) return
    this.#isAcknowledged = true
    const id = Buffer.from(idOf(this.#request) ?? 'null').toString('utf8')
    const notifications = JSON.stringify(this.#agreed)
    const params = `{"notifications":${notifications},"_meta":{"${SUBSCRIPTION_ID}":${id}}}`
    void this.stream.send(messageEvent(Buffer.from(`{"jsonrpc":"2.0","method":"${ACKNOWLEDGED}","params":${params}}`)))
    this.#acknowledged.resolve()
  }
}

/** Reads the subscription at one server: its acknowledgement is reported, and its result is not passed on. */
class SubscriptionSink extends EventSink {
  readonly #splitter = new SseSplitter()
  readonly #report: (acknowledgement: unknown) => void
  readonly #push: (bytes: Uint8Array) => void | Promise<void>

  /** Calls `report` with the acknowledgement, and with null when the stream has ended. */
  constructor(report: (acknowledgement: unknown) => void, push: (bytes: Uint8Array) => void | Promise<void>) {
    super(push)
    this.#report = report
    this.#push = push
  }

  override write(bytes: Uint8Array): void | Promise<void> {
    if (!this.isStream) return
    const passed = [...this.#splitter.push(bytes)].filter((event) => this.#passes(event))
    return passed.length === 0 ? undefined : this.#push(Buffer.concat(passed))
  }

  over(): void {
    this.#report(null)
  }

  #passes(event: Uint8Array): boolean {
    const data = eventData(event)
    const message = data === null || data.length === 0 ? undefined : parsedOrUndefined(data)
    if (member(message, 'method') !== ACKNOWLEDGED) return member(message, 'method') !== undefined
    this.#report(message)
    return false
  }
}
