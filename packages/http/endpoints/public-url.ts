import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/**
 * Returns the URL under which the client reaches the API, without a trailing slash. `configured` is flag `-public-url`; when empty, the request's
 * scheme and host are used, which the client controls: set the flag wherever a proof could be replayed to another host.
 */
export function publicUrl(configured: string, { headers, socket }: IncomingMessage): string {
  if (configured !== '') return configured
  return `${socket instanceof TLSSocket ? 'https' : 'http'}://${headers.host ?? ''}`
}
