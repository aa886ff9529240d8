import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Request } from './request.ts'

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * A response that names its request in `x-plat-request-id`, whoever writes the head. A header set beforehand would do the same, but
 * Node then sets and checks each further one by itself. Headers given as a list are this answer's own: they are added to.
 */
export class ServerResponseWithId extends ServerResponse<Request> {
  /** UUIDv7. */
  requestId = ''

  /** Node makes it once the head of `request` is there. */
  constructor(...parts: ConstructorParameters<typeof ServerResponse<Request>>) {
    super(...parts)
    parts[0].readHead()
  }

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    if (typeof reason === 'string') return super.writeHead(status, reason, this.#named(headers))
    return super.writeHead(status, this.#named(reason))
  }

  #named(headers: Headers | undefined): Headers {
    if (Array.isArray(headers)) {
      headers.push('x-plat-request-id', this.requestId)
      return headers
    }
    return { ...headers, 'x-plat-request-id': this.requestId }
  }
}
