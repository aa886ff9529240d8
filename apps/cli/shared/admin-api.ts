import { readBody, readJson } from '@plat/core'
import type { GatewayEnv } from './home.ts'
import { CommandError } from './output.ts'
import { unreachableReason } from './unreachable.ts'

/** Largest answer in JSON, in bytes: a page of a timeline has at most 10,000 records. */
const MAX_RESPONSE_BYTES = 128 * 1024 * 1024
/** How long the gateway may take to answer, in milliseconds. */
const ANSWER_MS = 10_000
/** The same where it reads much of the ledger first. */
const LONG_ANSWER_MS = 600_000

/** The gateway refused; `code` is its error code, such as `conflict`. */
export class AdminRefusalError extends CommandError {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** The gateway cannot be reached at its address. */
export class GatewayUnreachableError extends CommandError {}

/**
 * One call of the admin API with the login of the person, or else the static token; returns the body.
 * @throws AdminRefusalError with the gateway's own words, GatewayUnreachableError when it does not answer.
 */
export async function admin(
  env: GatewayEnv,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<unknown> {
  return await jsonOf(await accepted(env, path, { method, body, answerMs: ANSWER_MS }))
}

/** One call of a route that requires no token. @throws as `admin` */
export async function adminOpen(adminURL: string, path: string): Promise<unknown> {
  const response = await fetch(`${adminURL}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => {
    throw unreachable(adminURL)
  })
  if (response.ok) return await jsonOf(response)
  await response.body?.cancel()
  throw notAdminAPI(adminURL, response.status)
}

/** The same for what takes long and is not JSON. */
export async function adminBytes(env: GatewayEnv, path: string): Promise<Uint8Array> {
  const response = await accepted(env, path, { method: 'GET', body: undefined, answerMs: LONG_ANSWER_MS })
  return await response.bytes()
}

/** The same as `admin` for what takes long. */
export async function adminLong(env: GatewayEnv, path: string, body: object): Promise<unknown> {
  return await jsonOf(await accepted(env, path, { method: 'POST', body, answerMs: LONG_ANSWER_MS }))
}

/** Null: it is not strict JSON, or longer than an answer can be. */
async function jsonOf(response: Response): Promise<unknown> {
  const bytes = await readBody(response.body, MAX_RESPONSE_BYTES).catch(() => null)
  return bytes === null ? null : (readJson(bytes) ?? null)
}

interface AdminRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly body: object | undefined
  readonly answerMs: number
}

async function accepted(env: GatewayEnv, path: string, { method, body, answerMs }: AdminRequest): Promise<Response> {
  if (env.PLAT_ADMIN_URL === '')
    throw new CommandError('the admin API is not known; set PLAT_ADMIN_URL, or use a context that has its address')
  const token = env.login === undefined ? env.PLAT_ADMIN_TOKEN : await env.login.token()
  if (token === '')
    throw new CommandError(
      `there is no token for ${env.PLAT_ADMIN_URL}; log in with plat login -admin-url ${env.PLAT_ADMIN_URL}, or set PLAT_ADMIN_TOKEN`,
    )
  const response = await fetch(`${env.PLAT_ADMIN_URL}${ofTenant(path)}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(answerMs),
  }).catch(() => {
    throw unreachable(env.PLAT_ADMIN_URL)
  })
  if (response.ok) return response
  const answer = await jsonOf(response)
  const refusal = refusalIn(answer)
  if (refusal === null) throw notAdminAPI(env.PLAT_ADMIN_URL, response.status)
  const next = response.status === 404 ? seeList(path) : response.status === 401 ? nextOf401(env) : ''
  throw new AdminRefusalError(refusal.error, `the gateway refused: ${refusal.message}${next}`)
}

/** Adds the tenant of `PLAT_TENANT`, whose ledger is meant; routes without a ledger ignore it. */
function ofTenant(path: string): string {
  const { PLAT_TENANT: tenant = '' } = process.env
  return tenant === '' ? path : `${path}${path.includes('?') ? '&' : '?'}tenant=${encodeURIComponent(tenant)}`
}

function unreachable(adminURL: string): GatewayUnreachableError {
  return new GatewayUnreachableError(
    `the gateway at ${adminURL} ${unreachableReason(adminURL)}; start it with plat up, or choose another one with plat context use`,
  )
}

/** Another program listens there, such as the identity broker. */
function notAdminAPI(adminURL: string, status: number): CommandError {
  return new CommandError(
    `${adminURL} responds with HTTP ${status}, but not as the admin API of a gateway; check host and port, which plat up prints as gateway`,
  )
}

function nextOf401({ login }: GatewayEnv): string {
  if (login !== undefined) return '; log in again with plat login'
  return '; log in with plat login if adminAuth.mode is oidc or both, or start plat up again if the token of .plat/env changed'
}

/** Where to find what there is, when an id or a name is not. */
function seeList(path: string): string {
  if (path.startsWith('/v1/approvals/')) return '; see plat approvals list -all'
  if (path.startsWith('/v1/revocations/')) return '; see plat revocations list'
  if (path.startsWith('/v1/evidence/')) return '; see plat evidence list'
  if (path.includes('/definition?')) return '; see plat pins show <server>'
  return path.startsWith('/v1/pins/') ? '; see plat pins list' : ''
}

/** The error of the admin API, or of the resource API, which answers as Kubernetes does. */
function refusalIn(answer: unknown): { readonly error: string; readonly message: string } | null {
  if (typeof answer !== 'object' || answer === null || !('message' in answer)) return null
  const { message } = answer
  if ('error' in answer) return { error: String(answer.error), message: String(message) }
  const isStatus = 'kind' in answer && answer.kind === 'Status' && 'reason' in answer
  return isStatus ? { error: String(answer.reason), message: String(message) } : null
}

/** Every item of a list, as far as `isItem` knows it. */
export async function adminList<T>(env: GatewayEnv, path: string, isItem: (item: unknown) => item is T): Promise<T[]> {
  return await Array.fromAsync(adminPages(env, path, isItem))
}

/** The same for a list that may be too long for the memory: page by page. */
export async function* adminPages<T>(
  env: GatewayEnv,
  path: string,
  isItem: (item: unknown) => item is T,
): AsyncGenerator<T> {
  const cursors = new Set<string>()
  for (let cursor: string | null = ''; cursor !== null; ) {
    // A list that begins anew would never end.
    if (cursors.has(cursor)) throw new CommandError(`the gateway repeats a page of ${path}: its cursor came before`)
    cursors.add(cursor)
    const more: string = cursor === '' ? '' : `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
    const answer = await admin(env, 'GET', path + more)
    if (typeof answer !== 'object' || answer === null || !('items' in answer) || !Array.isArray(answer.items)) {
      throw new CommandError('the response of the gateway is not a list')
    }
    yield* answer.items.filter(isItem)
    cursor = 'nextCursor' in answer && typeof answer.nextCursor === 'string' ? answer.nextCursor : null
  }
}
