import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import {
  type Access,
  type ApiRequest,
  type ApiResponse,
  fileAccess,
  KubernetesApi,
  KubernetesApiError,
} from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Unreachable } from '../proof/check.ts'
import { unreachable } from '../proof/parts/verdict.ts'

/** Deadline of one request to the API server, in milliseconds: a pod waits for the broker's answer. */
const REQUEST_MS = 5_000
/** How long a watch may be silent, in milliseconds: longer than any pod waits. */
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

/** The part of the Kubernetes API that the broker uses. */
export class ClusterApi {
  readonly #access: Access
  readonly #api: KubernetesApi
  readonly #log: Log

  constructor({ api, caFile, tokenFile }: ApiSettings, { dialer, clock, log }: ApiParts) {
    this.#access = fileAccess({ server: api, caFile, tokenFile })
    const limits = { requestMs: REQUEST_MS, silenceMs: WATCH_SILENCE_MS }
    this.#api = new KubernetesApi({ access: this.#access, dialer, clock, ...limits })
    this.#log = log
  }

  /** Rejects with one line when a file that the settings name cannot be read: then there is no cluster here. */
  async requireFiles(): Promise<void> {
    await this.#access.credentials()
  }

  /** Returns every response of the API server, without a body for refusals; `unreachable` when there is none. */
  async ask(request: ApiRequest): Promise<ApiResponse | Unreachable> {
    try {
      return await this.#api.ask(request)
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status > 0) return { status: error.status, body: {} }
      this.#log.warn({ api: this.#access.server, error: String(error) }, 'the API server could not be reached')
      return unreachable('the API server cannot be reached')
    }
  }

  /**
   * Resolves when the watch at `path` sends anything, ends or fails, or `signal` aborts: then it is time to check again. The events are not read.
   * Never rejects.
   */
  async changed(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    try {
      for await (const lines of this.#api.watch(path, query, signal)) if (lines.length > 0) return
    } catch (error) {
      this.#log.warn({ api: this.#access.server, error: String(error) }, 'a watch of the API server failed')
    }
  }
}
