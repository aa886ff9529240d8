import { isObject, readBody, readJsonObject } from '@plat/core'
import { type DenialFacts, DeniedError, denialOf } from './denied.ts'
import { factsIn, resultFacts, rpcFacts } from './response.ts'
import type { HeaderReader } from './retry-after.ts'

/** Largest refusal, in bytes: a longer body is a result. */
const MAX_REFUSAL_BYTES = 1024 * 1024
/** Maximum number of errors that are read: clients wrap errors, but never this often. */
const MAX_LINKED = 64

/**
 * Finds the refusal in the result of a tool call, or in an error of a client: the MCP clients, `openai`, `@anthropic-ai/sdk`, the AI SDK (`ai`),
 * `@a2a-js/sdk` and this package. Returns null if the value is not a refusal of the gateway. A refused tool call has a result; other
 * refusals are errors, as are those of tools with `refusals: 'error'` of {@link Session.mcp}.
 *
 * @example
 * const denied = deniedBy(await client.callTool({ name: 'delete_note', arguments: { name: 'old' } }))
 * if (denied instanceof BudgetExceededError) stopForToday(denied.retryAfterMs)
 */
export function deniedBy(value: unknown): DeniedError | null {
  const refused = resultFacts(value)
  return refused === null ? deniedByError(value) : denialOf(refused)
}

function deniedByError(error: unknown): DeniedError | null {
  const waiting = new Set([error])
  for (const level of waiting) {
    if (typeof level !== 'object' || level === null) continue
    if (level instanceof DeniedError) return level
    const facts = factsOf(new Map(membersOf(level)))
    if (facts !== null) return denialOf(facts, error)
    for (const linked of linkedTo(level)) if (waiting.size < MAX_LINKED) waiting.add(linked)
  }
  return null
}

/** Its cause; of the AI SDK the last error of its attempts. */
function linkedTo(error: object): readonly unknown[] {
  return [Reflect.get(error, 'cause'), Reflect.get(error, 'lastError')]
}

type Members = ReadonlyMap<string, unknown>

/** Members that errors of clients have; some are getters of their class. */
const READ = [
  ...['code', 'status', 'headers', 'message', 'error', 'data', 'envelopeCode'],
  ...['statusCode', 'responseHeaders', 'responseBody'],
] as const

function membersOf(error: object): readonly (readonly [string, unknown])[] {
  return READ.map((name) => [name, Reflect.get(error, name)])
}

function factsOf(members: Members): DenialFacts | null {
  const status = numberIn(members, 'status')
  const header = headersIn(members.get('headers'))
  const { error, data } = { error: members.get('error'), data: members.get('data') }
  // openai exposes the error object, @anthropic-ai/sdk the whole body, MCP and A2A the members of the JSON-RPC error.
  return (
    factsIn(error, status, header) ??
    factsIn({ error }, status, header) ??
    rpcFacts({ code: members.get('envelopeCode') ?? members.get('code'), message: members.get('message'), data }) ??
    bodyIn(data, status) ??
    responseIn(members)
  )
}

/** The AI SDK exposes the text and the headers of a response. */
function responseIn(members: Members): DenialFacts | null {
  const body = members.get('responseBody')
  if (typeof body !== 'string' || body.length > MAX_REFUSAL_BYTES) return null
  const given = members.get('responseHeaders')
  const headers = new Map(
    Object.entries(isObject(given) ? given : {}).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const header: HeaderReader = (name) => {
    const value = headers.get(name)
    return typeof value === 'string' ? value : null
  }
  return factsIn(readJsonObject(body), numberIn(members, 'statusCode'), header)
}

/** The MCP client of revision 2026 exposes the response text of refusals at the HTTP level. */
function bodyIn(data: unknown, status: number): DenialFacts | null {
  if (!isObject(data) || typeof data.text !== 'string') return null
  try {
    return factsIn(JSON.parse(data.text), typeof data.status === 'number' ? data.status : status)
  } catch {
    return null
  }
}

function numberIn(members: Members, name: string): number {
  const value = members.get(name)
  return typeof value === 'number' ? value : 0
}

function headersIn(headers: unknown): HeaderReader {
  return headers instanceof Headers ? (name) => headers.get(name) : () => null
}

/**
 * Returns the refusal in a response, or null. Does not consume its body. For programs that call without a client.
 *
 * @example
 * const response = await fetch(`${gateway}/v1/whoami`)
 * const denied = await denialIn(response)
 */
export async function denialIn(response: Response): Promise<DeniedError | null> {
  const facts = response.status < 400 ? null : await factsOfBody(response)
  return facts === null ? null : denialOf(facts)
}

/** The refusal in the JSON of a response, also on HTTP 200. Does not consume the body. */
export async function factsOfBody(response: Response): Promise<DenialFacts | null> {
  if (!/^application\/json\b/i.test(response.headers.get('content-type') ?? '')) return null
  const bytes = await readBody(response.clone().body, MAX_REFUSAL_BYTES).catch(() => null)
  const body = bytes === null ? null : readJsonObject(bytes)
  return factsIn(body, response.status, (name) => response.headers.get(name))
}
