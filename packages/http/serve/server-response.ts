import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Request } from './request.ts'

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * A response that always carries `x-plat-request-id`. Setting the header beforehand would make Node set and check each further header separately. A
 * header list passed to `writeHead` is modified.
 */
export class ServerResponseWithId extends ServerResponse<Request> {
  /** UUIDv7. */
  requestId = ''

  /** Node creates the response once the head of `request` is parsed. */
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
