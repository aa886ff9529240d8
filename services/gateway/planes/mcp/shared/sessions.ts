import { type Clock, type JsonObject, LinkedMap, type PoolObserver, poolTable } from '@plat/core'
import { callerOf, callingAgentOf, type Denial, type Identity, isDenial } from '../../../call/index.ts'
import type { SharedSession } from '../message.ts'
import type { Sealed } from '../seal/seal.ts'

/** Milliseconds after which a session that was not used is forgotten; it is opened again when the client needs it. */
const IDLE_MS = 3_600_000
/** Milliseconds between searches for idle sessions. */
const SWEEP_AFTER_MS = 600_000
const {
  total: MAX_OF_ALL,
  shares: [{ max: MAX_OF_AGENT }],
} = poolTable.mcp_sessions

/** A session at a server, which the gateway opened for a client. */
export interface UpstreamSession {
  /** Null: the server has no sessions. */
  readonly session: Sealed | null
  readonly revision: string
  readonly capabilities: JsonObject
}

type Opening = Promise<UpstreamSession | Denial>

/** The sessions at servers that this gateway opened for one client's session. */
export interface ClientSessions {
  readonly identity: Identity
  readonly agent: string
  readonly servers: Map<string, Opening>
  /** Lists that were sent without a server whose session was still being opened, as the notifications of their change. */
  readonly starting: Map<string, Set<string>>
  /** Such notifications that the client has not received, since the sessions are open. */
  readonly changed: Set<string>
  /** The client's `logging/setLevel`, for servers whose session is opened later; null: none. */
  level: string | null
  /** Milliseconds since the epoch. */
  usedAt: number
  readonly listeners: Set<(server: string, opened: UpstreamSession) => void>
  /** Calls that have not ended. */
  readonly calls: Set<object>
}

/**
 * Sessions at servers, by the client's session at the address of all servers. They can be forgotten at any time, and another gateway has none of
 * them: a session that is missing is opened again, with what the client's session says.
 */
export class UpstreamSessions {
  readonly #clock: Clock
  readonly #observer: PoolObserver | undefined
  readonly #all = new LinkedMap<string, ClientSessions>()
  readonly #agents = new Map<string, LinkedMap<string, null>>()
  /** Called with what was removed because it is idle or exceeds a limit, unless it is in use. */
  onForgotten: (client: ClientSessions) => void = () => {}
  #isSweeping = false

  constructor(clock: Clock, observer?: PoolObserver) {
    this.#clock = clock
    this.#observer = observer
    observer?.watch(() => this.#all.size)
  }

  of(caller: Identity, { id }: SharedSession): ClientSessions {
    const key = JSON.stringify([callerOf(caller), id])
    const known = this.#all.get(key)
    const agent = callingAgentOf(caller)
    const client = known ?? {
      identity: caller,
      agent,
      servers: new Map(),
      starting: new Map<string, Set<string>>(),
      changed: new Set<string>(),
      level: null,
      usedAt: 0,
      listeners: new Set(),
      calls: new Set<object>(),
    }
    client.usedAt = this.#clock.now()
    this.#all.set(key, client)
    this.#all.renew(key)
    const share = this.#agents.getOrInsertComputed(agent, () => new LinkedMap())
    share.set(key, null)
    share.renew(key)
    this.#trim(share)
    this.#sweepLater()
    return client
  }

  /** Returns the session at a server, opened with `open` if there is none. One that cannot be opened is not stored. */
  at(client: ClientSessions, server: string, open: () => Opening): Opening {
    const known = client.servers.get(server)
    if (known !== undefined) return known
    const late = new Set<string>()
    const opening = open().then((opened) => {
      if (client.starting.get(server) === late) client.starting.delete(server)
      if (isDenial(opened)) {
        if (client.servers.get(server) === opening) client.servers.delete(server)
      } else {
        for (const method of late) client.changed.add(method)
        for (const listener of client.listeners) listener(server, opened)
      }
      return opened
    })
    client.servers.set(server, opening)
    client.starting.set(server, late)
    return opening
  }

  /** Forgets a session that its server no longer has, unless it was opened again meanwhile. */
  async forget(client: ClientSessions, server: string, lost: UpstreamSession): Promise<void> {
    const opening = client.servers.get(server)
    const isLost = (await opening) === lost
    if (isLost && client.servers.get(server) === opening) client.servers.delete(server)
  }

  /** Removes a client's session, and returns what it had. */
  end(caller: Identity, { id }: SharedSession): ClientSessions | null {
    const key = JSON.stringify([callerOf(caller), id])
    const client = this.#all.get(key)
    if (client !== undefined) this.#remove(key, client)
    return client ?? null
  }

  /** Removes what is idle although no client comes. */
  #sweepLater(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    this.#clock.after(SWEEP_AFTER_MS, () => {
      this.#isSweeping = false
      this.#removeIdle()
      if (this.#all.size > 0) this.#sweepLater()
    })
  }

  #removeIdle(): void {
    const idle = this.#clock.now() - IDLE_MS
    for (let { oldest } = this.#all; oldest !== null && oldest[1].usedAt < idle; { oldest } = this.#all)
      this.#forget(...oldest)
  }

  /** Removes what is idle and what exceeds a limit, the least recently used first. */
  #trim(share: LinkedMap<string, null>): void {
    this.#removeIdle()
    if (share.size > MAX_OF_AGENT) this.#evict(share.oldest?.[0], 'share')
    if (this.#all.size > MAX_OF_ALL) this.#evict(this.#all.oldest?.[0], 'total')
  }

  #evict(key: string | undefined, bound: 'share' | 'total'): void {
    const client = key === undefined ? undefined : this.#all.get(key)
    if (key === undefined || client === undefined) return
    this.#observer?.refused(bound)
    this.#forget(key, client)
  }

  /** A session that is in use is only forgotten: its calls and streams go on. */
  #forget(key: string, client: ClientSessions): void {
    this.#remove(key, client)
    if (client.calls.size === 0 && client.listeners.size === 0) this.onForgotten(client)
  }

  #remove(key: string, { agent }: ClientSessions): void {
    this.#all.delete(key)
    const share = this.#agents.get(agent)
    share?.delete(key)
    if (share?.size === 0) this.#agents.delete(agent)
  }
}
