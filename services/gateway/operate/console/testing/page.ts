import { type IncomingHttpHeaders, request } from 'node:http'
import { isObject, parseStrict } from '@plat/core'

export interface PageResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  /** Of a JSON body; empty for another one. */
  readonly body: Readonly<Record<string, unknown>>
}

export interface PageRequest {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  /** Cookies, such as `name=value`. */
  readonly cookie?: string
  /** The value of `x-plat-csrf`. */
  readonly csrf?: string
  /** Loopback address that it comes from. */
  readonly from?: string
}

/** Sends requests as a script of a page at `url` does; `headers` override what the browser adds. */
export function pageAt(url: string) {
  const { origin, hostname, port, host } = new URL(url)
  return (method: string, path: string, given: PageRequest = {}): Promise<PageResponse> => {
    const { headers = {}, body, cookie, csrf, from: localAddress } = given
    const sent = {
      host,
      'sec-fetch-site': 'same-origin',
      ...(method !== 'GET' && { origin }),
      ...(cookie !== undefined && { cookie }),
      ...(csrf !== undefined && { 'x-plat-csrf': csrf }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    return new Promise((resolve, reject) => {
      const outgoing = request({ hostname, port, path, method, headers: sent, localAddress }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          const isJson = response.headers['content-type']?.startsWith('application/json') === true
          const parsed = isJson && bytes.length > 0 ? parseStrict(bytes) : {}
          const { statusCode: status = 0 } = response
          resolve({ status, headers: response.headers, bytes, body: isObject(parsed) ? parsed : {} })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

/** Returns `name=value` of the cookie that a response sets. */
export function cookieOf({ headers }: PageResponse): string {
  return headers['set-cookie']?.[0]?.split(';')[0] ?? ''
}
