import { readFile } from 'node:fs/promises'
import { type Clock, parseStrict } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import { isObject } from '@plat/tokens'
import type { Unreachable } from '../proof/check.ts'
import { unreachable } from '../proof/parts/verdict.ts'

/** Deadline of one request to the API server, in milliseconds. */
const API_TIMEOUT_MS = 5_000
/** Largest answer of the API server, in bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024
/**
 * Deadline of the head of a watch, in milliseconds. It differs from that of requests, so that watches have connections of
 * their own and never keep a request waiting.
 */
const WATCH_HEAD_MS = 5_001

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
    const { clock, dialer, log } = this.#parts
    const controller = new AbortController()
    const cancel = clock.after(API_TIMEOUT_MS, () => controller.abort())
    try {
      const { token, ca } = await this.#credentials()
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const answer = await dialer.pool(new URL(this.#settings.api), 'jwks', ca).request({
        method,
        path,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': type },
        body: body === undefined ? null : JSON.stringify(body),
        signal: controller.signal,
      })
      return { status: answer.statusCode, body: await readAnswer(answer.body) }
    } catch (error) {
      log.warn({ api: this.#settings.api, error: String(error) }, 'the API server was not reached')
      return unreachable('the API server cannot be reached')
    } finally {
      cancel()
    }
  }

  /**
   * Resolves when the watch at `path` says anything, ends or fails, or `signal` aborts: then it is time to look again. What it
   * says is not read. Never rejects.
   */
  async changed(path: string, signal: AbortSignal): Promise<void> {
    try {
      const { token, ca } = await this.#credentials()
      const pool = this.#parts.dialer.pool(new URL(this.#settings.api), 'jwks', {
        ...ca,
        headersTimeoutMs: WATCH_HEAD_MS,
      })
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
      const { body } = await pool.request({ method: 'GET', path, headers, signal })
      // Leaving the loop destroys the body, and with it the connection.
      for await (const chunk of body) if (chunk.length > 0) break
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

async function readAnswer(body: AsyncIterable<Uint8Array>): Promise<Members> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
    chunks.push(chunk)
  }
  const value = parseStrict(Buffer.concat(chunks, size))
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
