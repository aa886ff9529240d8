import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '@plat/core'
import type { Pool } from 'undici'
import { ResponseTooLarge, TimeUp } from './errors.ts'

export interface FetchOptions {
  readonly maxBytes: number
  /** Milliseconds for the whole of it: connection, head and body. */
  readonly timeoutMs: number
  readonly headers?: Readonly<Record<string, string>>
  /** The body of a POST; without it the request is a GET. */
  readonly post?: string
}

export interface Fetched {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
}

/** GETs `url`, or POSTs to it, over `pool`. A redirect is an answer like any other. Rejects with a `TimeoutError` when time is up. */
export async function fetchBytes(pool: Pool, url: URL, options: FetchOptions, clock: Clock): Promise<Fetched> {
  const controller = new AbortController()
  const cancel = clock.after(options.timeoutMs, () =>
    controller.abort(new TimeUp(`No complete answer within ${options.timeoutMs} ms.`)),
  )
  try {
    const { statusCode, headers, body } = await pool.request({
      method: options.post === undefined ? 'GET' : 'POST',
      path: `${url.pathname}${url.search}`,
      headers: { ...options.headers },
      body: options.post ?? null,
      signal: controller.signal,
    })
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of body) {
      size += chunk.length
      // Leaving the loop cuts the connection.
      if (size > options.maxBytes) throw new ResponseTooLarge(options.maxBytes)
      chunks.push(chunk)
    }
    return { status: statusCode, headers, bytes: Buffer.concat(chunks, size) }
  } finally {
    cancel()
  }
}
