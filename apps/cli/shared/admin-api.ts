import { readBody, readJson } from '@plat/core'
import type { HomeEnv } from './home.ts'
import { CommandError } from './output.ts'

/** Largest answer in JSON, in bytes: a page of a timeline has at most 10,000 records. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024
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
 * One call of the admin API with the token of the running plat; answers the body.
 * @throws AdminRefusalError with the gateway's own words, GatewayUnreachableError when it does not answer.
 */
export async function admin(
  env: HomeEnv,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<unknown> {
  return await jsonOf(await accepted(env, path, { method, body, answerMs: ANSWER_MS }))
}

/** The same for what takes long and is not JSON. */
export async function adminBytes(env: HomeEnv, path: string): Promise<Uint8Array> {
  const response = await accepted(env, path, { method: 'GET', body: undefined, answerMs: LONG_ANSWER_MS })
  return await response.bytes()
}

/** The same as `admin` for what takes long. */
export async function adminLong(env: HomeEnv, path: string, body: object): Promise<unknown> {
  return await jsonOf(await accepted(env, path, { method: 'POST', body, answerMs: LONG_ANSWER_MS }))
}

/** Null: it is no strict JSON, or longer than an answer can be. */
async function jsonOf(response: Response): Promise<unknown> {
  const bytes = await readBody(response.body, MAX_ANSWER_BYTES).catch(() => null)
  return bytes === null ? null : (readJson(bytes) ?? null)
}

interface AdminRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly body: object | undefined
  readonly answerMs: number
}

async function accepted(env: HomeEnv, path: string, { method, body, answerMs }: AdminRequest): Promise<Response> {
  if (env.PLAT_ADMIN_URL === '' || env.PLAT_ADMIN_TOKEN === '')
    throw new CommandError(
      'the admin API is not known; set PLAT_ADMIN_URL and PLAT_ADMIN_TOKEN, or use a context that has both',
    )
  const response = await fetch(`${env.PLAT_ADMIN_URL}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${env.PLAT_ADMIN_TOKEN}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(answerMs),
  }).catch(() => {
    throw new GatewayUnreachableError(
      `the gateway at ${env.PLAT_ADMIN_URL} does not respond; start it with plat up, or choose another one with plat context use`,
    )
  })
  if (response.ok) return response
  const answer = await jsonOf(response)
  const { error = 'internal', message = `HTTP ${response.status}` } = refusalIn(answer)
  const next = response.status === 404 ? seeList(path) : response.status === 401 ? TOKEN_UNKNOWN : ''
  throw new AdminRefusalError(error, `the gateway refused: ${message}${next}`)
}

/** The static token is what commands have; a person's own token goes to the API itself. */
const TOKEN_UNKNOWN =
  '; commands show the token of .plat/env: start plat up again if it changed, or set adminAuth.mode to both if it is oidc'

/** Where to find what there is, when an id or a name is not. */
function seeList(path: string): string {
  if (path.startsWith('/v1/approvals/')) return '; see plat approvals list -all'
  if (path.startsWith('/v1/revocations/')) return '; see plat revocations list'
  if (path.startsWith('/v1/evidence/')) return '; see plat evidence list'
  if (path.includes('/definition?')) return '; see plat pins show <server>'
  return path.startsWith('/v1/pins/') ? '; see plat pins list' : ''
}

function refusalIn(answer: unknown): { error?: string; message?: string } {
  if (typeof answer !== 'object' || answer === null || !('error' in answer) || !('message' in answer)) return {}
  return { error: String(answer.error), message: String(answer.message) }
}

/** Every item of a list, page by page, as far as `isItem` knows it. */
export async function adminList<T>(env: HomeEnv, path: string, isItem: (item: unknown) => item is T): Promise<T[]> {
  const found: T[] = []
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
    for (const item of answer.items.filter(isItem)) found.push(item)
    cursor = 'nextCursor' in answer && typeof answer.nextCursor === 'string' ? answer.nextCursor : null
  }
  return found
}
