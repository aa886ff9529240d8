import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Failure } from '../http/reply.ts'
import type { Message } from '../message.ts'
import type { BridgeEvent, ServerSpec } from '../protocol.ts'
import type { Failures } from './failures.ts'
import { shakeHands } from './handshake.ts'
import { type Link, startLink } from './link.ts'
import type { Caller, Holder, Processes } from './processes.ts'

/** How long a server may take for the handshake that the bridge makes, in milliseconds: it may have to install itself first. */
const HANDSHAKE_MS = 120_000

/** Parts that all servers share. */
export interface BridgeParts {
  readonly clock: Clock
  readonly log: Log
  readonly processes: Processes
  report(event: BridgeEvent): void
}

export interface RunOptions extends BridgeParts {
  readonly spec: ServerSpec
  readonly caller: Caller
  readonly failures: Failures
  readonly isModern: boolean
  /** The `initialize` that the bridge sends before anything else; null: the client does, or there is none. */
  readonly handshake: Uint8Array | null
  /** Whether `notifications/initialized` follows it. */
  readonly completesHandshake: boolean
  /** Called once when it is over, whether it was ever ready or not. */
  onOver(running: Running, failure: string | null): void
}

/** A process from the decision to start it until its end. */
export class Running implements Holder {
  /** Resolves when calls can be made, or with why they cannot. */
  readonly ready: Promise<Link | Failure>
  readonly #options: RunOptions
  #link: Link | null = null
  #handshake: Message | null = null
  #idleSince: number | null = null
  #cancelIdle: () => void = () => {}
  #startedAt = 0

  constructor(options: RunOptions) {
    this.#options = options
    this.ready = this.#start()
  }

  get caller(): Caller {
    return this.#options.caller
  }

  get idleSince(): number | null {
    return this.#idleSince
  }

  get link(): Link | null {
    return this.#link
  }

  /** Response to the handshake that the bridge made. */
  get handshake(): Message | null {
    return this.#handshake
  }

  async stop(): Promise<void> {
    if (this.#link === null) await this.ready
    await this.#link?.stop()
  }

  async #start(): Promise<Link | Failure> {
    const { spec, caller, failures, processes } = this.#options
    if (spec.problem !== null) return this.#refused({ status: 502, reason: spec.problem })
    const waitMs = failures.waitMs(caller.session)
    if (waitMs > 0)
      return this.#refused({ status: 503, reason: 'it failed and is started again later', retryAfterMs: waitMs })
    const reason = await processes.acquire(caller)
    if (reason !== null) return this.#refused({ status: 503, reason })
    return await this.#run()
  }

  #refused(failure: Failure): Failure {
    this.#options.onOver(this, null)
    return failure
  }

  async #run(): Promise<Link | Failure> {
    const { spec, isModern, clock, log, processes, report, handshake, completesHandshake } = this.#options
    this.#startedAt = clock.monotonic()
    const link = startLink({
      spec,
      isModern,
      clock,
      log,
      onEnd: (how) => this.#ended(how),
      onIdle: (isIdle) => this.#markIdle(isIdle),
    })
    if (typeof link === 'string') {
      this.#ended(link)
      return { status: 502, reason: `it could not be started: ${link}` }
    }
    this.#link = link
    processes.add(this)
    if (link.pid !== null) {
      log.info({ pid: link.pid }, 'server started')
      report({ event: 'started', server: spec.key, pid: link.pid })
    }
    if (handshake === null) return link
    const cancel = clock.after(HANDSHAKE_MS, () => void link.stop())
    const response = await shakeHands(link, handshake, completesHandshake)
    cancel()
    if ('status' in response) {
      void link.stop()
      return response
    }
    this.#handshake = response
    return link
  }

  #markIdle(isIdle: boolean): void {
    const { clock, spec } = this.#options
    this.#cancelIdle()
    this.#idleSince = isIdle ? clock.monotonic() : null
    if (isIdle) this.#cancelIdle = clock.after(spec.idleMs, () => void this.#link?.stop())
  }

  #ended(how: string): void {
    const { spec, caller, clock, log, processes, failures, report, onOver } = this.#options
    this.#cancelIdle()
    processes.remove(this)
    processes.release(caller)
    const pid = this.#link?.pid ?? 0
    const isExpected = this.#link?.isStopping === true
    const ranMs = clock.monotonic() - this.#startedAt
    const restartsAfterMs = isExpected ? 0 : failures.failed(caller.session, ranMs)
    if (isExpected) log.info({ pid, how }, 'server stopped')
    else log.error({ pid, how, restartsAfterMs }, 'server ended unexpectedly')
    if (pid === 0) report({ event: 'failed', server: spec.key, reason: how })
    else report({ event: 'ended', server: spec.key, pid, how, isExpected, restartsAfterMs })
    onOver(this, isExpected ? null : how)
  }
}
