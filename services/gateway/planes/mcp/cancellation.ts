import type { Call, WireRequest } from '../../call/index.ts'
import { member } from '../wire/json.ts'
import { idOf, type McpRequest } from './message.ts'

/**
 * Held requests that their client can cancel. Clients of revisions before 2026-07-28 give up by a notification and keep
 * the connection open, so without this a call that nobody waits for any more would still use an approval.
 */
export class Cancellations {
  /** Entries live as long as the wait of a live call, so the cap on live calls is theirs. */
  readonly #leave = new Map<string, () => void>()
  readonly #keys = new WeakMap<WireRequest, string>()

  /** The call waits for a person from now on. */
  held(call: Call<'identity'>, request: McpRequest, leave: () => void): void {
    const id = idOf(request)
    if (id === null) return
    const key = keyOf(call, request, JSON.parse(Buffer.from(id).toString('utf8')))
    this.#keys.set(call.wire, key)
    this.#leave.set(key, leave)
    call.signal.addEventListener('abort', () => this.over(call.wire), { once: true })
  }

  /** The call does not wait any more: from now on a cancellation is for the upstream. */
  over(wire: WireRequest): void {
    const key = this.#leave.size === 0 ? undefined : this.#keys.get(wire)
    if (key === undefined) return
    this.#keys.delete(wire)
    this.#leave.delete(key)
  }

  /** `notifications/cancelled`: ends the wait of the request that it names, if it is held. */
  cancelled(call: Call<'identity'>, notification: McpRequest): void {
    if (this.#leave.size === 0) return
    const id = member(member(call.body?.value, 'params'), 'requestId')
    this.#leave.get(keyOf(call, notification, id))?.()
  }
}

/** Request ids count within one client: the session here, the server, and the server's session where there is one. */
function keyOf({ facts, server }: Call<'identity'>, { session }: McpRequest, id: unknown): string {
  const { tenant, namespace, agent, session: name } = facts.identity
  return JSON.stringify([tenant, namespace, agent, name, server, session?.id ?? null, id])
}
