import { type PoolBound, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'

/** The callers on whose behalf a process runs. */
export interface Caller {
  /** Key of the agent; of a shared process that of its server. */
  readonly agent: string
  /** Key of the session; of a shared process that of its server. */
  readonly session: string
}

/** A process that counts. */
export interface Holder {
  readonly caller: Caller
  /** Monotonic milliseconds since when it is unused; null: it is in use. */
  readonly idleSince: number | null
  stop(): Promise<void>
}

/** Attempts to make room by stopping unused processes. */
const EVICTIONS_MAX = 3

/** Processes of all servers. A caller beyond its share gets room by stopping its own unused process. */
export class Processes {
  readonly #pool: SharedPool
  readonly #holders = new Set<Holder>()

  constructor(observer?: PoolObserver) {
    this.#pool = watchedPool({ name: 'stdio_processes', observer })
  }

  /** Counts a process. Returns null, or why it may not run. */
  async acquire(caller: Caller): Promise<string | null> {
    const names = [caller.agent, caller.session]
    for (let attempt = 0; attempt < EVICTIONS_MAX; attempt++) {
      const bound = this.#pool.boundFor(names)
      if (bound === null) break
      const unused = this.#unused(caller, bound)
      if (unused === null) break
      await unused.stop()
    }
    const bound = this.#pool.acquire(names)
    if (bound === null) return null
    const running = `${this.#pool.used} processes of servers run, ${this.#pool.usedBy(caller.session, 1)} of this session`
    return `${running}, and no more are allowed: end one of the MCP sessions, or repeat this later`
  }

  /** Gives back what `acquire` counted. */
  release({ agent, session }: Caller): void {
    this.#pool.release([agent, session])
  }

  /** From now on the unused process may be stopped to make room for another. */
  add(holder: Holder): void {
    this.#holders.add(holder)
  }

  remove(holder: Holder): void {
    this.#holders.delete(holder)
  }

  /** The process that has been unused for longest, of this session, else of this agent, else of all. */
  #unused({ agent, session }: Caller, bound: PoolBound): Holder | null {
    const idle = [...this.#holders]
      .filter(({ idleSince }) => idleSince !== null)
      .toSorted((a, b) => (a.idleSince ?? 0) - (b.idleSince ?? 0))
    const own =
      idle.find((one) => one.caller.session === session) ?? idle.find((one) => one.caller.agent === agent) ?? null
    return own ?? (bound === 'total' ? (idle[0] ?? null) : null)
  }
}
