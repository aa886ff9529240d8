import type { Clock } from '@plat/core'
import { plain } from '../../shared/output.ts'
import type { BridgeEvent, ServerSpec } from '../protocol.ts'

/** Lines in one interval; a server that fails for every session must not fill the terminal. */
const LINES_MAX = 10
const INTERVAL_MS = 10_000
/** How problems of the isolation begin, which depend on this machine. */
const ISOLATION = 'stdio.isolation'

/** Reports to the terminal of `plat up` when a server starts, fails, and starts again. Each session's own process is not reported. */
export class Announcements {
  readonly #announce: (line: string) => void
  readonly #clock: Clock
  /** Servers that have started, and not failed since. */
  readonly #running = new Set<string>()
  readonly #problems = new Map<string, string | null>()
  #interval = Number.NEGATIVE_INFINITY
  #lines = 0

  constructor(announce: (line: string) => void, clock: Clock) {
    this.#announce = announce
    this.#clock = clock
  }

  /** Reports servers that cannot be started for a reason that is not among the warnings of `plat validate`. */
  configured(specs: readonly ServerSpec[]): void {
    for (const { key, problem: any } of specs) {
      const problem = any?.startsWith(ISOLATION) ? any : null
      const before = this.#problems.get(key) ?? null
      if (problem !== null && problem !== before) this.#line(`server ${key} cannot be started: ${problem}`)
      if (problem === null && before !== null) this.#line(`server ${key} can be started now`)
      this.#problems.set(key, problem)
    }
    const keys = new Set(specs.map(({ key }) => key))
    for (const key of this.#problems.keys()) if (!keys.has(key)) this.#problems.delete(key)
  }

  happened(event: BridgeEvent): void {
    if (event.event === 'started') {
      if (this.#running.has(event.server)) return
      this.#running.add(event.server)
      this.#line(`server ${event.server} started`)
    } else if (event.event === 'failed') {
      this.#line(`server ${event.server} could not be started: ${event.reason}`)
    } else if (event.event === 'ended' && !event.isExpected) {
      this.#running.delete(event.server)
      const seconds = Math.ceil(event.restartsAfterMs / 1000)
      this.#line(
        `server ${event.server} ended: ${event.how}; the next call starts it again, in ${seconds} s at the earliest (.plat/logs/stdio.jsonl)`,
      )
    }
  }

  #line(text: string): void {
    const now = this.#clock.monotonic()
    if (now - this.#interval >= INTERVAL_MS) {
      this.#interval = now
      this.#lines = 0
    }
    this.#lines++
    if (this.#lines <= LINES_MAX) this.#announce(plain(text))
    if (this.#lines === LINES_MAX) this.#announce('further lines about stdio servers are in .plat/logs/stdio.jsonl')
  }
}
