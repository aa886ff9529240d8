import { dialFault } from '@plat/http'
import type { Log } from '@plat/process'
import { UpstreamError } from '../../../call/index.ts'

/** Faults before a request is sent, which no caller causes. */
const REASONS = {
  refused: 'it does not accept connections',
  name: 'its address cannot be resolved',
  blocked: 'its address must not be connected to',
  residency: 'its address is where data must not go',
  tls: 'its certificate is not accepted',
} as const

/** Logs that a server cannot be reached, and that it can be again: one line for each change, however many calls are made. */
export class ReachabilityLog {
  readonly #log: Log
  /** Reasons by the key of the server: as many as are configured. */
  readonly #unreachable = new Map<string, string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Called for every response of a server. */
  reached(server: string): void {
    if (this.#unreachable.size === 0 || !this.#unreachable.delete(server)) return
    this.#log.info({ server }, 'the server can be reached again')
  }

  /** Called for every request that failed; other failures than those to reach the server change nothing. */
  failed(server: string, error: unknown): void {
    const fault = dialFault(error instanceof UpstreamError ? error.cause : error)
    if (!isReason(fault) || this.#unreachable.get(server) === fault) return
    this.#unreachable.set(server, fault)
    this.#log.warn({ server, reason: REASONS[fault] }, 'the server cannot be reached: its calls fail')
  }
}

function isReason(fault: string): fault is keyof typeof REASONS {
  return Object.hasOwn(REASONS, fault)
}
