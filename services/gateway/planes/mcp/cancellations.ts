import { member } from '@plat/core'
import { ALL_SERVERS, type Call, type WireRequest } from '../../call/index.ts'
import { idOf, type McpRequest } from './message.ts'

/** Where a held request is found: by the session of its client, and its JSON-RPC id. */
interface HeldKey {
  readonly client: string
  readonly id: string
  readonly leave: () => void
}

/**
 * Requests that wait for an approval and that their client can cancel. Clients of revisions before 2026-07-28 cancel with a
 * notification, or end their session, and keep the connection open, so without this a cancelled call would still use an approval.
 */
export class Cancellations {
  /** Functions that end a held request, by client and id. Bounded by the number of live calls: no entry outlives the wait of its call. */
  readonly #held = new Map<string, Map<string, () => void>>()
  readonly #keys = new WeakMap<WireRequest, HeldKey>()

  /** Registers a call that now waits for an approval. */
  held(call: Call<'identity'>, request: McpRequest, leave: () => void): void {
    const literal = idOf(request)
    if (literal === null) return
    const id = JSON.stringify(JSON.parse(Buffer.from(literal).toString('utf8')))
    const client = clientOf(call, request)
    this.#keys.set(call.wire, { client, id, leave })
    this.#held.getOrInsertComputed(client, () => new Map()).set(id, leave)
    call.signal.addEventListener('abort', () => this.over(call.wire), { once: true })
  }

  /** Removes a call that no longer waits: later cancellations are forwarded upstream. */
  over(wire: WireRequest): void {
    const key = this.#held.size === 0 ? undefined : this.#keys.get(wire)
    if (key === undefined) return
    this.#keys.delete(wire)
    const requests = this.#held.get(key.client)
    // A client may have used the id again meanwhile.
    if (requests?.get(key.id) === key.leave) requests.delete(key.id)
    if (requests?.size === 0) this.#held.delete(key.client)
  }

  /** Handles `notifications/cancelled`: ends the call with that request id, if it waits for an approval. */
  cancelled(call: Call<'identity'>, notification: McpRequest): void {
    if (this.#held.size === 0) return
    const id = JSON.stringify(member(member(call.body?.value, 'params'), 'requestId'))
    this.#held.get(clientOf(call, notification))?.get(id)?.()
  }

  /** Handles the end of a session: ends its calls that wait for an approval. */
  ended(call: Call<'identity'>, request: McpRequest): void {
    if ((request.session ?? request.shared?.session ?? null) === null || this.#held.size === 0) return
    for (const leave of [...(this.#held.get(clientOf(call, request))?.values() ?? [])]) leave()
  }
}

/** Request ids are unique per client: the session of the token, the server, and the server's session if there is one. */
function clientOf({ facts, server }: Call<'identity'>, { session, shared }: McpRequest): string {
  const { tenant, namespace, agent, session: name } = facts.identity
  // At the address of all servers a cancellation does not name the server.
  const client = shared === null ? [server, session?.id ?? null] : [ALL_SERVERS, shared.session?.id ?? null]
  return JSON.stringify([tenant, namespace, agent, name, ...client])
}
