import type { IncomingHttpHeaders } from 'node:http'
import { ByteBuffer, type Clock } from '@plat/core'
import type { HttpClient } from '../client/client.ts'
import { AbortedError, ResponseTooLargeError, TimeoutError } from './errors.ts'

export interface FetchOptions {
  readonly maxBytes: number
  /** Limit for connection, head and body together, in milliseconds. */
  readonly timeoutMs: number
  /** Default GET. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Called with each head; returning false skips the body. */
  readonly wants?: (head: FetchedHead) => boolean
  /** Caller whose share of connections and name look-ups is used; absent: not counted. */
  readonly caller?: string
  /** Aborts the request. */
  readonly signal?: StopSignal
}

/** The part of `AbortSignal` that is used. */
interface StopSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export type FetchedHead = Pick<Fetched, 'status' | 'headers'>

export interface Fetched {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
}

/** Requests `url` and reads the whole response. Redirects are returned. Rejects with `TimeoutError` after `timeoutMs`. */
export function fetchBytes(client: HttpClient, url: URL, options: FetchOptions, clock: Clock): Promise<Fetched> {
  const { method = 'GET', headers = {}, body, maxBytes, timeoutMs, wants, caller, signal } = options
  return new Promise((resolve, reject) => {
    const answer = new ByteBuffer()
    let head: FetchedHead = { status: 0, headers: {} }
    const request = {
      method,
      path: `${url.pathname}${url.search}`,
      headers,
      body: body === undefined ? null : typeof body === 'string' ? Buffer.from(body) : body,
      // The one limit on the whole of it is enough.
      headersTimeoutMs: 0,
      pauseTimeoutMs: 0,
      ...(caller !== undefined && { caller }),
    }
    const sending = client.send(request, {
      onHead(status, responseHeaders) {
        head = { status, headers: responseHeaders }
        if (wants === undefined || wants(head)) return
        resolve({ ...head, bytes: new Uint8Array(0) })
        sending.abort(new AbortedError('The body is not read.'))
      },
      onData(bytes) {
        if (answer.size + bytes.length > maxBytes) sending.abort(new ResponseTooLargeError(maxBytes))
        else answer.append(bytes)
      },
      onEnd() {
        over()
        resolve({ ...head, bytes: answer.take() })
      },
      onFailure(error) {
        over()
        reject(error)
      },
    })
    const stop = () => sending.abort(new AbortedError('The request was cancelled.'))
    const cancel = clock.after(timeoutMs, () =>
      sending.abort(new TimeoutError(`No complete answer within ${timeoutMs} ms.`)),
    )
    const over = () => {
      cancel()
      signal?.removeEventListener('abort', stop)
    }
    if (signal?.aborted) queueMicrotask(stop)
    else signal?.addEventListener('abort', stop)
  })
}
