import { Backoff, type Clock, type Ids, reasonOf, rfc3339Micros } from '@plat/core'
import type { Rec, RecValue } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type DaemonClient, DaemonError } from './client.ts'

/** Decisions of one request. */
const MAX_BATCH = 100
/** Attempts for one batch. */
const MAX_ATTEMPTS = 5
/** Maximum time for deliveries at shutdown, in milliseconds. */
const CLOSING_MS = 2000

/** Outcomes of a mirrored decision. */
export const MIRROR_OUTCOMES = ['ok', 'error', 'dropped'] as const
export type MirrorOutcome = (typeof MIRROR_OUTCOMES)[number]

/** Members of a record that a daemon receives: names and the decision, no content. */
const MEMBERS = [
  ...['kind', 'call', 'tenant', 'namespace', 'agent', 'session', 'user', 'op', 'server', 'tool', 'method'],
  ...['argsSha256', 'action', 'policy', 'rule', 'reason', 'code', 'result', 'status'],
]

export interface MirrorOptions {
  readonly client: Pick<DaemonClient, 'request' | 'place'>
  readonly ledgerId: string
  readonly queueSize: number
  readonly onOutcome: (outcome: MirrorOutcome, count: number) => void
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
}

type Decision = Readonly<Record<string, RecValue | undefined>>

/** Sends decisions to the daemon, at most `queueSize` waiting. Calls never wait for it. */
export class Mirror {
  readonly #options: MirrorOptions
  readonly #queue: Decision[] = []
  readonly #backoff: Backoff
  #running: Promise<void> | null = null
  #isClosing = false
  #hasFailed = false
  #wake: () => void = () => {}

  constructor(options: MirrorOptions) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: 250, maxMs: 8000, ids: options.ids })
  }

  /** Called with the last record of each call. */
  readonly see = (record: Rec, at: number): void => {
    if (this.#queue.length >= this.#options.queueSize || this.#isClosing) {
      this.#options.onOutcome('dropped', 1)
      return
    }
    const known = MEMBERS.flatMap((name) => (record[name] === undefined ? [] : [[name, record[name]] as const]))
    this.#queue.push({ ...Object.fromEntries(known), at: rfc3339Micros(at) })
    this.#running ??= this.#run()
  }

  /** Sends what waits while the daemon accepts it, and stops. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#wake()
    const late = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(CLOSING_MS, late.resolve)
    await Promise.race([this.#running, late.promise])
    cancel()
    this.#count('dropped', this.#queue.splice(0).length)
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, MAX_BATCH)
      const outcome = await this.#deliver(batch)
      // Nothing but this loop and the end removes decisions.
      this.#queue.splice(0, batch.length)
      this.#count(outcome, batch.length)
    }
    this.#running = null
  }

  async #deliver(decisions: readonly Decision[]): Promise<MirrorOutcome> {
    const { client, ledgerId, log } = this.#options
    for (let failures = 0; ; failures++) {
      try {
        await client.request('POST', '/v1/decisions', { ledgerId, decisions })
        if (this.#hasFailed) log.info({ daemon: client.place }, 'decisions reach the sandbox daemon again')
        this.#hasFailed = false
        return 'ok'
      } catch (error) {
        if (!this.#hasFailed) log.error({ error: reasonOf(error) }, 'decisions do not reach the sandbox daemon')
        this.#hasFailed = true
        const isOver = failures + 1 >= MAX_ATTEMPTS || this.#isClosing
        if (isOver || (error instanceof DaemonError && !error.isTemporary)) return 'error'
        await this.#pause(failures)
      }
    }
  }

  #pause(failures: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(this.#backoff.pauseMs(failures), resolve)
    this.#wake = () => {
      cancel()
      resolve()
    }
    return promise
  }

  #count(outcome: MirrorOutcome, count: number): void {
    if (count > 0) this.#options.onOutcome(outcome, count)
  }
}
