import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '@plat/core'
import type { HttpClient } from '../client/client.ts'
import { ResponseTooLarge, TimeUp } from './errors.ts'

export interface FetchOptions {
  readonly maxBytes: number
  /** Milliseconds for the whole of it: connection, head and body. */
  readonly timeoutMs: number
  /** Default GET. */
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface Fetched {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
}

/** Asks for `url` and reads the whole answer. A redirect is an answer like any other. Rejects with a `TimeoutError` when time is up. */
export function fetchBytes(client: HttpClient, url: URL, options: FetchOptions, clock: Clock): Promise<Fetched> {
  const { method = 'GET', headers = {}, body, maxBytes, timeoutMs } = options
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    let head: Pick<Fetched, 'status' | 'headers'> = { status: 0, headers: {} }
    const request = {
      method,
      path: `${url.pathname}${url.search}`,
      headers,
      body: body === undefined ? null : typeof body === 'string' ? Buffer.from(body) : body,
      // The one limit on the whole of it is enough.
      headersTimeoutMs: 0,
      pauseTimeoutMs: 0,
    }
    const sending = client.send(request, {
      onHead(status, answered) {
        head = { status, headers: answered }
      },
      onData(bytes) {
        size += bytes.length
        if (size > maxBytes) sending.abort(new ResponseTooLarge(maxBytes))
        else chunks.push(bytes)
      },
      onEnd() {
        cancel()
        resolve({ ...head, bytes: Buffer.concat(chunks, size) })
      },
      onFailure(error) {
        cancel()
        reject(error)
      },
    })
    const cancel = clock.after(timeoutMs, () => sending.abort(new TimeUp(`No complete answer within ${timeoutMs} ms.`)))
  })
}
