import { type Clock, isObject, readJsonObject } from '@plat/core'
import { type Dialer, dialFault, isDialError } from '@plat/http'
import type { Access, Members } from '@plat/kubernetes'
import { type Denial, deny, type Outcome, type ToolCall, type ToolResult, toolFailure } from '../../call/index.ts'

/** Maximum size of a response without objects, such as a list of kinds, in bytes. */
export const MAX_RESPONSE_BYTES = 4 * 1024 * 1024
/** Maximum length of an error message of the API server that is passed on, in characters. */
const MAX_MESSAGE = 500

/** API server, and the identity of the gateway there. */
export interface ClusterSettings {
  readonly access: Access
  /** User impersonated by every request, or null for the gateway itself. */
  readonly actsAs: string | null
  readonly timeoutMs: number
}

export interface ClusterRequest {
  readonly method?: 'GET' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly accept?: string
  /** JSON merge patch (RFC 7386). */
  readonly patch?: object
  readonly maxBytes?: number
}

/** A failed request, with the response of the tool. */
export interface Refused {
  readonly kind: 'refused'
  readonly answer: ToolResult | Denial
}

export interface ClusterResponse {
  readonly kind: 'arrived'
  readonly bytes: Uint8Array
}

export interface ApiParts {
  readonly settings: ClusterSettings
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
}

/** Requests of one tool call to the API server, with the attempts for its result. */
export class ApiSession {
  readonly attempts: Outcome['attempts'][number][] = []
  readonly #parts: ApiParts
  readonly #signal: ToolCall['signal']

  constructor(parts: ApiParts, { signal }: Pick<ToolCall, 'signal'>) {
    this.#parts = parts
    this.#signal = signal
  }

  /** Sends a request. Statuses other than success are refusals, in words that a model can act on. */
  async send(request: ClusterRequest): Promise<ClusterResponse | Refused> {
    const { settings, dialer, clock } = this.#parts
    const { method = 'GET', path, query = {}, patch, maxBytes = MAX_RESPONSE_BYTES } = request
    const { server } = settings.access
    const own = await settings.access.credentials().catch(() => null)
    if (own === null)
      return refused(this.#credential('k8sOps.tokenFile or k8sOps.caFile cannot be read, or there is no token'))
    const url = new URL(path, server)
    url.search = new URLSearchParams(query).toString()
    const began = clock.monotonic()
    const tried = (status: number) => {
      this.attempts.push({ endpoint: server, status, ms: Math.round(clock.monotonic() - began) })
    }
    try {
      const { status, bytes } = await dialer.fetchBytes(url, 'kubernetes', {
        method,
        maxBytes,
        timeoutMs: settings.timeoutMs,
        ...own.trust,
        headers: { ...this.#headers(request), ...own.headers },
        ...(patch !== undefined && { body: JSON.stringify(patch) }),
        signal: this.#signal,
      })
      tried(status)
      return status >= 200 && status < 300 ? { kind: 'arrived', bytes } : this.#refusalOf(status, bytes)
    } catch (error) {
      if (!isDialError(error)) throw error
      const fault = dialFault(error)
      tried(0)
      return this.fails(`no response from the cluster: ${WORDS[fault] ?? 'its API server broke the connection'}`)
    }
  }

  async object(request: ClusterRequest): Promise<{ readonly kind: 'object'; readonly value: Members } | Refused> {
    const answer = await this.send(request)
    if (answer.kind === 'refused') return answer
    const value = readJsonObject(answer.bytes)
    return value !== null ? { kind: 'object', value } : this.fails('the cluster did not respond with JSON')
  }

  fails(text: string): Refused {
    return refused(toolFailure(text, this.attempts))
  }

  #headers({ accept = 'application/json', patch }: ClusterRequest): Record<string, string> {
    const { actsAs } = this.#parts.settings
    return {
      accept,
      'accept-encoding': 'identity',
      'user-agent': 'plat-k8s/1.0',
      ...(patch !== undefined && { 'content-type': 'application/merge-patch+json' }),
      ...(actsAs !== null && { 'impersonate-user': actsAs }),
    }
  }

  #refusalOf(status: number, bytes: Uint8Array): Refused {
    // The identity of the gateway in the cluster is not disclosed to the caller.
    if (status === 401) return refused(this.#credential('the cluster does not accept the gateway: k8sOps.tokenFile'))
    const reason = readJsonObject(bytes)?.message
    const message = typeof reason === 'string' ? reason : `status ${status}`
    const why = message.slice(0, MAX_MESSAGE).toWellFormed()
    return this.fails(`${VERDICTS[status] ?? 'the cluster could not do it'}: ${why}`)
  }

  #credential(reason: string): Denial {
    return deny('upstream_credential', reason, { attempts: this.attempts })
  }
}

export function refused(answer: ToolResult | Denial): Refused {
  return { kind: 'refused', answer }
}

export function objectsIn(object: Members, name: string): readonly Members[] {
  const value = object[name]
  return Array.isArray(value) ? value.filter(isObject) : []
}

const VERDICTS: Readonly<Record<number, string>> = {
  400: 'the cluster does not understand it',
  403: 'the cluster does not allow it',
  404: 'the cluster has no such thing',
  409: 'it was changed concurrently',
  410: 'the list has changed since: request it again without continue',
  422: 'the cluster rejects it',
  429: 'the cluster is busy: try later',
}

const WORDS: Readonly<Partial<Record<ReturnType<typeof dialFault>, string>>> = {
  timeout: 'its API server did not respond in time (k8sOps.timeoutSeconds)',
  name: 'the address of its API server cannot be resolved',
  refused: 'its API server cannot be reached',
  blocked: 'k8sOps.apiServer leads to an address that must not be connected to',
  residency: 'its API server is in a jurisdiction that is not allowed',
  tls: 'the certificate of its API server is not accepted (k8sOps.caFile)',
  too_large: 'the response of its API server is too large',
  aborted: 'the call was stopped',
}
