import { ByteBuffer, type Clock, isObject, parseStrict, reasonOf } from '@plat/core'
import type { Dialer, Sending } from '@plat/http'
import type { Access } from './access.ts'
import { type Cause, causesOf, type Members, textOf } from './members.ts'
import { type WatchLine, WatchLines } from './watch.ts'

export type { Members }

/** Deadline of one request, in milliseconds. */
const REQUEST_MS = 30_000
/** Maximum response size in bytes: a page of a list. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024
/** Maximum silence of a watch, in milliseconds. A healthy one sends a bookmark each minute; a longer silence means a dead connection. */
const WATCH_SILENCE_MS = 180_000
/** Maximum size of the refusal of a watch, in bytes. */
const MAX_REFUSAL_BYTES = 64 * 1024
/** Number of buffered lines of a watch at which the connection is paused. */
const MAX_WAITING_LINES = 256

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/api/v1/namespaces/default/configmaps` */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** Of a PATCH. Default: `application/json`. */
  readonly contentType?: string
  readonly signal?: AbortSignal
}

/** An answer with a status from 200 to 299. */
export interface ApiResponse {
  readonly status: number
  readonly body: Members
}

/** A refusal by the API server, or the reason why it is unreachable. */
export class KubernetesApiError extends Error {
  /** 0 when the server was not reached. */
  readonly status: number
  /** Member `reason` of the Status, such as `Conflict`, `NotFound`, `Expired`. */
  readonly reason: string
  readonly causes: readonly Cause[]
  /** Retry delay requested by the server, in milliseconds. */
  readonly retryAfterMs: number

  constructor(
    message: string,
    status: number,
    { reason = '', causes = [], retryAfterMs = 0 }: Partial<FaultParts> = {},
  ) {
    super(message)
    this.status = status
    this.reason = reason
    this.causes = causes
    this.retryAfterMs = retryAfterMs
  }
}

/** Returns the retry delay of a failed request in milliseconds; 0 without one. */
export function retryAfterOf(error: unknown): number {
  return error instanceof KubernetesApiError ? error.retryAfterMs : 0
}

interface FaultParts {
  readonly reason: string
  readonly causes: readonly Cause[]
  readonly retryAfterMs: number
}

export interface ApiOptions {
  readonly access: Access
  readonly dialer: Dialer
  readonly clock: Clock
  /** Called for every response with method and status, 0 when there was none. */
  readonly onAnswer?: (method: string, status: number) => void
  /** Deadline of one request, in milliseconds. Default: 30 s. */
  readonly requestMs?: number
  /** Maximum silence of a watch, in milliseconds. Default: 180 s. */
  readonly silenceMs?: number
}

/** The API of one cluster, as JSON over the guarded dialer. */
export class KubernetesApi {
  readonly #options: ApiOptions

  constructor(options: ApiOptions) {
    this.#options = options
  }

  /** Sends a request and reads the whole response. Throws KubernetesApiError unless it succeeds. */
  async ask({ method, path, query, body, contentType = 'application/json', signal }: ApiRequest): Promise<ApiResponse> {
    const { access, dialer, requestMs = REQUEST_MS } = this.#options
    const url = new URL(pathOf(path, query), access.server)
    try {
      const { headers, trust } = await access.credentials()
      const {
        status,
        bytes,
        headers: responseHeaders,
      } = await dialer.fetchBytes(url, 'kubernetes', {
        ...trust,
        method,
        headers: { ...headers, accept: 'application/json', ...(body !== undefined && { 'content-type': contentType }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal !== undefined && { signal }),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: requestMs,
      })
      this.#options.onAnswer?.(method, status)
      if (status < 200 || status > 299) throw refusal(status, bytes, responseHeaders['retry-after'])
      return { status, body: objectOf(bytes) }
    } catch (error) {
      if (error instanceof KubernetesApiError) throw error
      this.#options.onAnswer?.(method, 0)
      throw new KubernetesApiError(`the API server cannot be reached: ${reasonOf(error)}`, 0)
    }
  }

  /**
   * Follows a watch: yields a batch of lines per received chunk. Ends when the server ends it or `signal` aborts; throws KubernetesApiError when it
   * is refused, breaks or falls silent.
   */
  async *watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): AsyncGenerator<readonly WatchLine[]> {
    if (signal.aborted) return
    const { access, dialer, requestMs = REQUEST_MS, silenceMs = WATCH_SILENCE_MS } = this.#options
    const feed = new Feed()
    const stop = () => feed.stop()
    signal.addEventListener('abort', stop)
    try {
      const { headers, trust } = await access.credentials()
      const client = dialer.client(new URL(access.server), 'kubernetes', trust)
      const request = {
        method: 'GET',
        path: pathOf(path, { ...query, watch: 'true' }),
        headers: { ...headers, accept: 'application/json' },
        body: null,
        headersTimeoutMs: requestMs,
        pauseTimeoutMs: silenceMs,
      }
      feed.sending = client.send(request, {
        onHead: (status, responseHeaders) => {
          this.#options.onAnswer?.('WATCH', status)
          feed.head(status, responseHeaders['retry-after'])
        },
        onData: (bytes) => feed.data(bytes),
        onEnd: () => feed.end(null),
        onFailure: (error) => feed.end(error),
      })
      if (signal.aborted) feed.stop()
      yield* feed.batches()
    } catch (error) {
      if (signal.aborted) return
      throw error instanceof KubernetesApiError
        ? error
        : new KubernetesApiError(`a watch has failed: ${reasonOf(error)}`, 0)
    } finally {
      signal.removeEventListener('abort', stop)
      feed.stop()
    }
  }
}

/** Buffer between the connection of a watch, which pushes, and its reader, which pulls. */
class Feed {
  sending: Sending | null = null
  readonly #lines = new WatchLines()
  #waiting: WatchLine[] = []
  #refused: {
    readonly status: number
    readonly retryAfter: string | undefined
    size: number
    body: ByteBuffer
  } | null = null
  #ended: { readonly error: Error | null } | null = null
  #wake: () => void = () => {}

  head(status: number, retryAfter: string | undefined): void {
    if (status !== 200) this.#refused = { status, retryAfter, size: 0, body: new ByteBuffer() }
  }

  data(bytes: Uint8Array): void {
    const refused = this.#refused
    if (refused !== null) {
      refused.size += bytes.length
      if (refused.size <= MAX_REFUSAL_BYTES) refused.body.append(bytes)
      return
    }
    try {
      for (const line of this.#lines.push(bytes)) this.#waiting.push(line)
    } catch (error) {
      this.sending?.abort(error instanceof Error ? error : new Error(String(error)))
      return
    }
    if (this.#waiting.length > MAX_WAITING_LINES) this.sending?.pause()
    this.#wake()
  }

  end(error: Error | null): void {
    const refused = this.#refused
    this.#ended ??= {
      error: refused === null ? error : refusal(refused.status, refused.body.take(), refused.retryAfter),
    }
    this.#wake()
  }

  /** The reader is done. */
  stop(): void {
    this.#ended ??= { error: null }
    this.sending?.abort(new Error('the watch was cancelled'))
    this.#wake()
  }

  async *batches(): AsyncGenerator<readonly WatchLine[]> {
    for (;;) {
      if (this.#waiting.length > 0) {
        const batch = this.#waiting
        this.#waiting = []
        this.sending?.resume()
        yield batch
      } else if (this.#ended !== null) {
        if (this.#ended.error !== null) throw this.#ended.error
        return
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }
}

function pathOf(path: string, query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString()
  return text === '' ? path : `${path}?${text}`
}

function objectOf(bytes: Uint8Array): Members {
  const value = parseStrict(bytes)
  if (!isObject(value)) throw new Error('the response is not a JSON object')
  return value
}

function refusal(status: number, bytes: Uint8Array, retryAfter: string | undefined): KubernetesApiError {
  let received: Members = {}
  try {
    received = objectOf(bytes)
  } catch {
    // A proxy before the API server has other error bodies: the status is enough.
  }
  const message = textOf(received, 'message') || `the API server answers with status ${status}`
  const seconds = /^\d{1,5}$/.test(retryAfter ?? '') ? Number(retryAfter) : 0
  return new KubernetesApiError(message, status, {
    reason: textOf(received, 'reason'),
    causes: causesOf(received),
    retryAfterMs: seconds * 1000,
  })
}
