import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/**
 * The URL under which the client reaches the API, without a slash at the end. `configured` is flag `-public-url`; without it
 * the request's own scheme and host, which a caller chooses: set the flag wherever a proof could be lured to another host.
 */
export function publicUrl(configured: string, { headers, socket }: IncomingMessage): string {
  if (configured !== '') return configured
  return `${socket instanceof TLSSocket ? 'https' : 'http'}://${headers.host ?? ''}`
}
