import { readFile } from 'node:fs/promises'
import { type Clock, parseStrict } from '@plat/core'
import type { Dialer, HttpClient } from '@plat/http'
import type { Log } from '@plat/process'
import { isObject } from '@plat/tokens'
import type { Unreachable } from '../proof/check.ts'
import { unreachable } from '../proof/parts/verdict.ts'

/** Deadline of one request to the API server, in milliseconds. */
const API_TIMEOUT_MS = 5_000
/** Largest answer of the API server, in bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024
/** How long a watch may be silent, in milliseconds. */
const WATCH_SILENCE_MS = 300_000

/** Where the API server is and how the broker speaks to it. */
export interface ApiSettings {
  /** URL of the API server. */
  readonly api: string
  /** File of CA certificates (PEM) for https; empty for the system's. */
  readonly caFile: string
  /** File of the bearer token that the broker presents. Read for each request: it is rotated. */
  readonly tokenFile: string
}

export interface ApiParts {
  readonly dialer: Dialer
  readonly clock: Clock
  readonly log: Log
}

export type Members = Readonly<Record<string, unknown>>

export interface ApiAnswer {
  readonly status: number
  readonly body: Members
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  /** A PATCH is a merge patch (RFC 7386). */
  readonly body?: object
}

/** What the broker needs of the Kubernetes API. */
export class KubernetesApi {
  readonly #settings: ApiSettings
  readonly #parts: ApiParts

  constructor(settings: ApiSettings, parts: ApiParts) {
    this.#settings = settings
    this.#parts = parts
  }

  /** Rejects with one line when a file that the settings name cannot be read: then there is no cluster here. */
  async requireFiles(): Promise<void> {
    await this.#credentials()
  }

  /** Whatever the API server answers is an answer; only what prevents one is `unreachable`. */
  async ask({ method, path, body }: ApiRequest): Promise<ApiAnswer | Unreachable> {
    const { dialer, log } = this.#parts
    try {
      const { token, ca } = await this.#credentials()
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const { status, bytes } = await dialer.fetchBytes(new URL(path, this.#settings.api), 'jwks', {
        ...ca,
        method,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': type },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: API_TIMEOUT_MS,
      })
      return { status, body: readAnswer(bytes) }
    } catch (error) {
      log.warn({ api: this.#settings.api, error: String(error) }, 'the API server was not reached')
      return unreachable('the API server cannot be reached')
    }
  }

  /**
   * Resolves when the watch at `path` says anything, ends or fails, or `signal` aborts: then it is time to look again. What it
   * says is not read. Never rejects.
   */
  async changed(path: string, signal: AbortSignal): Promise<void> {
    try {
      const { token, ca } = await this.#credentials()
      const client = this.#parts.dialer.client(new URL(this.#settings.api), 'jwks', ca)
      await firstByte(client, path, { authorization: `Bearer ${token}`, accept: 'application/json' }, signal)
    } catch (error) {
      if (signal.aborted) return
      this.#parts.log.warn({ api: this.#settings.api, error: String(error) }, 'a watch of the API server failed')
    }
  }

  async #credentials(): Promise<{ readonly token: string; readonly ca: { readonly caPEM?: string } }> {
    const { api, caFile, tokenFile } = this.#settings
    const token = (await readFile(tokenFile, 'utf8')).trim()
    const ca = caFile === '' || !api.startsWith('https:') ? {} : { caPEM: await readFile(caFile, 'utf8') }
    return { token, ca }
  }
}

/** Resolves with the first byte of the answer's body, or with its end; the connection is cut then. */
function firstByte(
  client: HttpClient,
  path: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const limits = { headersTimeoutMs: API_TIMEOUT_MS, pauseTimeoutMs: WATCH_SILENCE_MS }
  return new Promise((resolve, reject) => {
    const sending = client.send(
      { method: 'GET', path, headers, body: null, ...limits },
      {
        onHead: () => {},
        onData() {
          resolve()
          sending.abort(new Error('the watch has told what it was there for'))
        },
        onEnd() {
          signal.removeEventListener('abort', abort)
          resolve()
        },
        onFailure(error) {
          signal.removeEventListener('abort', abort)
          reject(error)
        },
      },
    )
    const abort = () => sending.abort(new Error('nobody watches any more'))
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}

function readAnswer(bytes: Uint8Array): Members {
  const value = parseStrict(bytes)
  if (!isObject(value)) throw new Error('the answer is no object')
  return value
}

/** A member that is an object; an empty one when it is not. */
export function member(object: Members, name: string): Members {
  const value = object[name]
  return isObject(value) ? value : {}
}

/** A member that is a text; empty when it is not. */
export function textOf(object: Members, name: string): string {
  const value = object[name]
  return typeof value === 'string' ? value : ''
}
