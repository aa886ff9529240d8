import type { Api } from './types.ts'

/** A refusal of the gateway, or a failed connection (`status` 0). */
export class ApiError extends Error {
  readonly status: number
  /** The error code of the admin API, such as `forbidden`. */
  readonly code: string
  /** Where to log in again when the gateway requires a fresh or a stronger login; else null. */
  readonly stepUp: string | null

  constructor(status: number, code: string, message: string, stepUp: string | null = null) {
    super(message)
    this.status = status
    this.code = code
    this.stepUp = stepUp
  }
}

/** The session of the person who is logged in: `GET /console/session`. */
export interface Session {
  readonly name: string
  readonly issuer: string
  readonly roles: readonly string[]
  /** Null: all namespaces. */
  readonly namespaces: readonly string[] | null
  readonly expiresAt: string | null
  readonly csrf: string
  readonly login: string
  readonly version: string
}

/** A way to log in. */
export type Login = { readonly kind: 'oidc'; readonly url: string } | { readonly kind: 'link'; readonly hint: string }

export type Route = keyof Api
export type Result<R extends Route> = Api[R]['result']

interface Request<R extends Route> {
  readonly params?: Api[R]['params']
  readonly query?: Api[R]['query']
  readonly body?: Api[R]['body']
  readonly signal?: AbortSignal
}

/** The admin API with the session's cookie. `loggedOut` is called when the gateway no longer knows the session. */
export class Client {
  readonly #csrf: string
  readonly #loggedOut: () => void

  constructor(csrf: string, loggedOut: () => void) {
    this.#csrf = csrf
    this.#loggedOut = loggedOut
  }

  /** @throws ApiError */
  async call<R extends Route>(
    route: R,
    { params = {}, query = {}, body, signal }: Request<R> = {},
  ): Promise<Result<R>> {
    const [method = 'GET', path = ''] = route.split(' ')
    const response = await this.#send(method, urlOf(path, params, query), body, signal)
    if (!response.ok) throw await this.#refusal(response)
    return response.status === 204 ? undefined : response.json()
  }

  async #send(method: string, url: string, body: unknown, signal: AbortSignal | undefined): Promise<Response> {
    const headers: Record<string, string> = { accept: 'application/json' }
    if (method !== 'GET') headers['x-plat-csrf'] = this.#csrf
    if (body !== undefined) headers['content-type'] = 'application/json'
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    try {
      return await fetch(url, { method, headers, credentials: 'same-origin', ...content, ...(signal && { signal }) })
    } catch (error) {
      if (signal?.aborted) throw error
      throw new ApiError(
        0,
        'unreachable',
        'The gateway does not respond. Check that it runs and that you are connected to it.',
      )
    }
  }

  async #refusal(response: Response): Promise<ApiError> {
    if (response.status === 401) this.#loggedOut()
    return refusalOf(response, window.location.pathname)
  }
}

/** Reads the refusal in a response; `to` is the page to return to after another login. */
export async function refusalOf(response: Response, to: string): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  const refusal = parsed(text)
  const code = textIn(refusal, 'error') ?? `http_${response.status}`
  const message = textIn(refusal, 'message') ?? `The gateway responded with ${response.status}.`
  return new ApiError(response.status, code, message, code === 'step_up_required' ? stepUpUrl(refusal, to) : null)
}

function stepUpUrl(refusal: unknown, to: string): string {
  const query = new URLSearchParams({ to })
  const acr = textIn(refusal, 'acr')
  const maxAge = memberOf(refusal, 'maxAge')
  if (acr !== null) query.set('acr', acr)
  if (typeof maxAge === 'number') query.set('max_age', String(maxAge))
  return `/console/login?${query}`
}

/** The URL of a route: each parameter stays one segment, whatever it contains. */
export function urlOf(path: string, params: object, query: object): string {
  const values = new Map(Object.entries(params))
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values.get(name) ?? '')))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value))
  return search.size === 0 ? url : `${url}?${search}`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A member of a value of unknown type. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** A text in a value of unknown type, or null. */
export function textIn(value: unknown, name: string): string | null {
  const member = memberOf(value, name)
  return typeof member === 'string' ? member : null
}

/** A number in a value of unknown type, or null. */
export function numberIn(value: unknown, name: string): number | null {
  const member = memberOf(value, name)
  return typeof member === 'number' ? member : null
}
