import { hash, type KeyObject, sign } from 'node:crypto'

/** Signing key: its id in Oracle Cloud (`<tenancy>/<user>/<fingerprint>`) and the private RSA key. */
export interface OciKey {
  readonly keyId: string
  readonly privateKey: KeyObject
}

export interface OciRequest {
  readonly method: string
  readonly url: URL
  /** Null for a request without a body. */
  readonly body: Uint8Array | null
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * Returns the headers that sign a request to Oracle Cloud ("Signing HTTP Messages", version 1). A body is covered by its SHA-256, its length and its
 * media type, which is JSON. `host` is signed as the URL has it and must be sent unchanged.
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
