import type { Clock } from '@plat/core'
import type { RouteEndpoint } from './endpoint.ts'

/** What of an endpoint its circuit is about. */
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

/** What is known of an endpoint that has failed. */
interface Circuit {
  failures: number
  /** Monotonic milliseconds; null: the circuit is closed. */
  retryAt: number | null
}

/** The circuits of endpoints. Only endpoints that failed last are remembered: as long as all is well, a call costs one comparison. */
export class Circuits {
  readonly #options: CircuitOptions
  readonly #circuits = new Map<string, Circuit>()

  constructor(options: CircuitOptions) {
    this.#options = options
  }

  /** Whether calls stay away: it has failed too often, and the time to try it again has not come. */
  isOpen({ key }: Named): boolean {
    const retryAt = this.#circuits.get(key)?.retryAt ?? null
    return retryAt !== null && this.#options.clock.monotonic() < retryAt
  }

  /** A call is about to try the endpoint. Of an open circuit whose time has come it is the only one: others wait for another cooldown. */
  enter({ key }: Named): void {
    const circuit = this.#circuits.get(key)
    if (circuit === undefined || circuit.retryAt === null) return
    if (this.#options.clock.monotonic() >= circuit.retryAt) circuit.retryAt = this.#later()
  }

  /** The endpoint has answered a call to its end. */
  succeeded({ key }: Named): void {
    if (this.#circuits.size > 0 && this.#circuits.delete(key)) this.#tell()
  }

  failed({ key, route, label }: Named): void {
    const { failureThreshold, failed } = this.#options
    failed(route, label)
    const circuit = this.#circuits.get(key) ?? { failures: 0, retryAt: null }
    circuit.failures++
    if (circuit.failures >= failureThreshold) circuit.retryAt ??= this.#later()
    this.#circuits.set(key, circuit)
    this.#tell()
  }

  /** A probe was answered: the next call tries an endpoint whose circuit is open, whatever is left of its cooldown. */
  lives({ key }: Named): void {
    const circuit = this.#circuits.get(key)
    if (circuit !== undefined && circuit.retryAt !== null) circuit.retryAt = this.#options.clock.monotonic()
  }

  /** Forgets every endpoint that is not served any more. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.#circuits.keys()) if (!keys.has(key)) this.#circuits.delete(key)
    this.#tell()
  }

  #later(): number {
    return this.#options.clock.monotonic() + this.#options.cooldownMs
  }

  #tell(): void {
    let count = 0
    for (const { retryAt } of this.#circuits.values()) if (retryAt !== null) count++
    this.#options.open(count)
  }
}
