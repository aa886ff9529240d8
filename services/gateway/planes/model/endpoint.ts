import type { Call } from '../../call/index.ts'

/** One endpoint of a route, as the plane needs it. */
export interface ModelEndpoint {
  /** Tells it from all others. */
  readonly key: string
  /** How metrics and records name it. */
  readonly label: string
  /** Name of the route. */
  readonly route: string
  readonly provider: string
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /** Null: it takes no key. */
  readonly apiKeyFile: string | null
  /** Where it runs; null: nobody says. */
  readonly jurisdiction: string | null
  /** The model that it is asked for where the caller asked for this one; null: nobody names one. */
  modelFor(asked: string | null): string | null
}

/** Where a request goes. */
export interface Address {
  readonly origin: string
  /** Path and query. */
  readonly path: string
}

/** Upstreams that are remembered; a gateway has fewer routes. Beyond it all are forgotten. */
const MAX_KNOWN = 1000
const COMPLETIONS = 'chat/completions'

/** The addresses of upstreams. That of completions is parsed once for each. */
export class Addresses {
  readonly #completions = new Map<string, Address>()

  /** For a base URL without a slash at its end. Throws on what is no URL. */
  of(upstream: string, { method, name, operation }: Pick<Call, 'method' | 'name' | 'operation'>): Address {
    if (method !== COMPLETIONS) {
      const isModel = operation === 'model.info' && name !== null
      return addressAt(`${upstream}/${method}${isModel ? `/${name}` : ''}`)
    }
    const known = this.#completions.get(upstream)
    if (known !== undefined) return known
    const address = addressAt(`${upstream}/${COMPLETIONS}`)
    if (this.#completions.size >= MAX_KNOWN) this.#completions.clear()
    this.#completions.set(upstream, address)
    return address
  }
}

function addressAt(url: string): Address {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}
