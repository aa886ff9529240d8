import type { Clock } from '@plat/core'
import type { RouteEndpoint } from './endpoint.ts'

/** Identification of an endpoint for its circuit. */
type Named = Pick<RouteEndpoint, 'key' | 'route' | 'label'>

export interface CircuitOptions {
  readonly clock: Clock
  /** Consecutive failures that open a circuit. */
  readonly failureThreshold: number
  readonly cooldownMs: number
  /** `plat_gateway_model_circuits_open` */
  readonly open: (count: number) => void
  /** `plat_gateway_model_endpoint_failures_total` */
  readonly failed: (route: string, endpoint: string) => void
}

/** State of an endpoint that has failed. */
interface Circuit {
  failures: number
  /** Monotonic milliseconds, or null if the circuit is closed. */
  retryAt: number | null
}

/** Circuit breakers of endpoints. Only failing endpoints have an entry: otherwise a call costs one comparison. */
export class Circuits {
  readonly #options: CircuitOptions
  readonly #circuits = new Map<string, Circuit>()

  constructor(options: CircuitOptions) {
    this.#options = options
  }

  /** Returns whether calls must skip the endpoint: its circuit is open and the cooldown is not over. */
  isOpen({ key }: Named): boolean {
    const retryAt = this.#circuits.get(key)?.retryAt ?? null
    return retryAt !== null && this.#options.clock.monotonic() < retryAt
  }

  /** Returns consecutive failures, and the milliseconds until an open circuit admits a call; null: it is closed. */
  stateOf({ key }: Pick<Named, 'key'>): { readonly failures: number; readonly retryInMs: number | null } {
    const { failures = 0, retryAt = null } = this.#circuits.get(key) ?? {}
    const retryInMs = retryAt === null ? null : Math.max(0, Math.ceil(retryAt - this.#options.clock.monotonic()))
    return { failures, retryInMs }
  }

  /** Called before a call tries the endpoint. After a cooldown only one call does: others wait for another cooldown. */
  enter({ key }: Named): void {
    const circuit = this.#circuits.get(key)
    if (circuit === undefined || circuit.retryAt === null) return
    if (this.#options.clock.monotonic() >= circuit.retryAt) circuit.retryAt = this.#later()
  }

  /** Called after a complete response of the endpoint. */
  succeeded({ key }: Named): void {
    if (this.#circuits.size > 0 && this.#circuits.delete(key)) this.#reportOpen()
  }

  failed({ key, route, label }: Named): void {
    const { failureThreshold, failed } = this.#options
    failed(route, label)
    const circuit = this.#circuits.get(key) ?? { failures: 0, retryAt: null }
    circuit.failures++
    if (circuit.failures >= failureThreshold) circuit.retryAt ??= this.#later()
    this.#circuits.set(key, circuit)
    this.#reportOpen()
  }

  /** Called after a successful probe: ends the cooldown of an open circuit. */
  lives({ key }: Named): void {
    const circuit = this.#circuits.get(key)
    if (circuit !== undefined && circuit.retryAt !== null) circuit.retryAt = this.#options.clock.monotonic()
  }

  /** Forgets endpoints with other keys. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.#circuits.keys()) if (!keys.has(key)) this.#circuits.delete(key)
    this.#reportOpen()
  }

  #later(): number {
    return this.#options.clock.monotonic() + this.#options.cooldownMs
  }

  #reportOpen(): void {
    let count = 0
    for (const { retryAt } of this.#circuits.values()) if (retryAt !== null) count++
    this.#options.open(count)
  }
}
