import { isObject, reasonOf } from '@plat/core'
import type { Dialer, Fetched } from '@plat/http'

/** Time limit of a request without data, and of saving or loading a context, in milliseconds. */
const TIMEOUT_MS = 30_000
const DATA_TIMEOUT_MS = 300_000
const MAX_BYTES = 64 * 1024

/** An endpoint of a route with provider `ctxengine`. */
export interface EngineEndpoint {
  readonly key: string
  readonly route: string
  /** Base URL including `/v1`. */
  readonly upstream: string
}

export interface EngineOptions<E> {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  /** Returns the headers with the credential of an endpoint. */
  readonly credential: (endpoint: E, request: EngineRequest) => Readonly<Record<string, string>>
}

export interface EngineRequest {
  readonly method: string
  readonly origin: string
  readonly path: string
  readonly body: Uint8Array | null
}

/** Thrown when an engine refuses a request or cannot be reached. */
export class EngineError extends Error {
  /** 0 when it did not respond. */
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** Client of the protocol of context engines (docs/context-engines.md). */
export class Engine<E extends EngineEndpoint> {
  readonly #options: EngineOptions<E>

  constructor(options: EngineOptions<E>) {
    this.#options = options
  }

  /** Creates a context unless it exists, as a copy of `from` if that is not null. Throws EngineError. */
  async create(endpoint: E, id: string, from: string | null): Promise<'created' | 'exists'> {
    const { status } = await this.#request(endpoint, 'PUT', `/contexts/${id}`, from === null ? {} : { from })
    return status === 201 ? 'created' : 'exists'
  }

  /** Throws EngineError; a context that does not exist is dropped already. */
  async drop(endpoint: E, id: string): Promise<void> {
    try {
      await this.#request(endpoint, 'DELETE', `/contexts/${id}`)
    } catch (error) {
      if (!(error instanceof EngineError) || error.status !== 404) throw error
    }
  }

  /** Has the engine write a context to a file, or read it from there. Throws EngineError. */
  async move(endpoint: E, action: 'save' | 'load', id: string, path: string): Promise<SavedContext> {
    const { bytes: text } = await this.#request(endpoint, 'POST', `/contexts/${id}/${action}`, { path })
    const saved = savedOf(text)
    if (saved === null) throw new EngineError(`the engine did not describe the file of ${action}`, 0)
    return saved
  }

  async #request(endpoint: E, method: 'PUT' | 'DELETE' | 'POST', path: string, json?: object): Promise<Fetched> {
    const { dialer, extraCA, credential } = this.#options
    const url = new URL(endpoint.upstream + path)
    const body = json === undefined ? null : Buffer.from(JSON.stringify(json))
    const signed = credential(endpoint, { method, origin: url.origin, path: url.pathname, body })
    const headers = { ...signed, ...(body !== null && { 'content-type': 'application/json' }) }
    const sent = { method, headers, maxBytes: MAX_BYTES, timeoutMs: method === 'POST' ? DATA_TIMEOUT_MS : TIMEOUT_MS }
    const extra = { ...(body !== null && { body }), ...(extraCA !== null && { caPEM: extraCA }) }
    let response: Fetched
    try {
      response = await dialer.fetchBytes(url, 'model', { ...sent, ...extra })
    } catch (error) {
      throw new EngineError(reasonOf(error), 0)
    }
    const { status } = response
    if (status < 200 || status >= 300) throw new EngineError(`the engine responded ${status} to ${method}`, status)
    return response
  }
}

/** File of a context. */
export interface SavedContext {
  readonly bytes: number
  readonly sha256: string
}

function savedOf(text: Uint8Array): SavedContext | null {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text).toString('utf8'))
  } catch {
    return null
  }
  if (!isObject(value)) return null
  const { bytes, sha256 } = value
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes)) return null
  return typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? { bytes, sha256 } : null
}
