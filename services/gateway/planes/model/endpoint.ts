import type { Call } from '../../call/index.ts'

/** Where a request goes. */
export interface Endpoint {
  readonly origin: string
  /** Path and query. */
  readonly path: string
}

/** Upstreams that are remembered; a gateway has fewer routes. Beyond it all are forgotten. */
const MAX_KNOWN = 1000
const COMPLETIONS = 'chat/completions'

/** The endpoints of upstreams. That of completions is parsed once for each. */
export class Endpoints {
  readonly #completions = new Map<string, Endpoint>()

  /** For a base URL without a slash at its end. Throws on what is no URL. */
  of(upstream: string, { method, name, operation }: Pick<Call, 'method' | 'name' | 'operation'>): Endpoint {
    if (method !== COMPLETIONS) {
      const isModel = operation === 'model.info' && name !== null
      return endpointAt(`${upstream}/${method}${isModel ? `/${name}` : ''}`)
    }
    const known = this.#completions.get(upstream)
    if (known !== undefined) return known
    const endpoint = endpointAt(`${upstream}/${COMPLETIONS}`)
    if (this.#completions.size >= MAX_KNOWN) this.#completions.clear()
    this.#completions.set(upstream, endpoint)
    return endpoint
  }
}

function endpointAt(url: string): Endpoint {
  const { protocol, host, pathname, search } = new URL(url)
  // The origin stands in each record: joined, it lies in one piece, unlike the one that a URL tells.
  return { origin: [protocol, host].join('//'), path: pathname + search }
}
