import type { PlatError } from '../error.ts'

/** A call that can be sent, and sent again if its body can be read twice. */
export interface Sendable {
  readonly url: string
  readonly init: RequestInit
  readonly headers: Headers
  readonly method: string
  readonly signal: AbortSignal | null
  readonly repeatable: boolean
}

/** Normalizes the arguments of `fetch`. Reads the body of a `Request`, since it can be sent only once. */
export async function sendable(input: string | URL | Request, init: RequestInit = {}): Promise<Sendable> {
  const given = input instanceof Request ? input : null
  const headers = new Headers(init.headers ?? given?.headers)
  const method = init.method ?? given?.method ?? 'GET'
  const signal = init.signal ?? given?.signal ?? null
  const body = 'body' in init ? init.body : given?.body ? await given.arrayBuffer() : undefined
  return {
    url: given?.url ?? String(input),
    // The gateway never redirects, so a redirect comes from another server, which must not get the token.
    init: { ...init, method, signal, redirect: init.redirect === 'manual' ? 'manual' : 'error', ...(body && { body }) },
    headers,
    method,
    signal,
    repeatable: !isStream(body),
  }
}

function isStream(body: unknown): boolean {
  return body instanceof ReadableStream || (typeof body === 'object' && body !== null && Symbol.asyncIterator in body)
}

/** Addresses of the gateway. The token is sent only to them. */
export class GatewayAddresses {
  readonly #bases: readonly string[]
  readonly #complain: (message: string) => PlatError

  constructor(bases: readonly string[], complain: (message: string) => PlatError) {
    this.#bases = bases.map((base) => withSlash(base))
    this.#complain = complain
  }

  /** @throws PlatError if the URL is not below the gateway. */
  check(url: string): void {
    const target = URL.canParse(url) ? withSlash(url.split(/[?#]/, 1)[0] ?? '') : ''
    if (this.#bases.some((base) => target.startsWith(base))) return
    const where = URL.canParse(url) ? new URL(url).origin : 'an invalid URL'
    throw this.#complain(`the session's fetch calls only the gateway, not ${where}: use the global fetch there`)
  }
}

function withSlash(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname.replace(/\/?$/, '/')
}
