import { hash, type KeyObject, sign } from 'node:crypto'

/** Who signs: the id of the key as Oracle Cloud knows it (`<tenancy>/<user>/<fingerprint>`), and its private half (RSA). */
export interface OciKey {
  readonly keyId: string
  readonly privateKey: KeyObject
}

export interface OciRequest {
  readonly method: string
  readonly url: URL
  /** Null: there is none. */
  readonly body: Uint8Array | null
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * Headers that sign a request to Oracle Cloud (its version 1 of "Signing HTTP Messages"). A body is signed by its SHA-256, length and
 * media type, which is JSON. `host` is signed as the URL has it, and must be sent so.
 */
export function signOci({ method, url, body, at }: OciRequest, { keyId, privateKey }: OciKey): Record<string, string> {
  const sent: Record<string, string> = {
    date: new Date(at).toUTCString(),
    ...(body !== null && {
      'x-content-sha256': hash('sha256', body, 'base64'),
      'content-type': 'application/json',
    }),
  }
  const signed = {
    date: sent.date,
    '(request-target)': `${method.toLowerCase()} ${url.pathname}${url.search}`,
    host: url.host,
    ...(body !== null && {
      'content-length': String(body.length),
      'content-type': sent['content-type'],
      'x-content-sha256': sent['x-content-sha256'],
    }),
  }
  const text = Object.entries(signed)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
  const signature = sign('sha256', Buffer.from(text), privateKey).toString('base64')
  const names = Object.keys(signed).join(' ')
  const authorization = `Signature version="1",keyId="${keyId}",algorithm="rsa-sha256",headers="${names}",signature="${signature}"`
  return { ...sent, authorization }
}
