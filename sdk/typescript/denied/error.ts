import { isObject, readBody, readJsonObject } from '@plat/core'
import { type DenialFacts, DeniedError, denialOf } from './denied.ts'
import { factsIn, type HeaderReader, resultFacts, rpcFacts } from './response.ts'

/** Largest refusal, in bytes: a longer body is a result. */
const MAX_REFUSAL_BYTES = 1024 * 1024
/** Maximum depth of nested causes: clients wrap errors, but never this often. */
const MAX_CAUSES = 8

/**
 * Finds the refusal in the result of a tool call, or in an error of a client: the MCP clients, `openai`, `@anthropic-ai/sdk`,
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
  let level = error
  for (let depth = 0; depth < MAX_CAUSES && typeof level === 'object' && level !== null; depth++) {
    if (level instanceof DeniedError) return level
    const facts = factsOf(new Map(membersOf(level)))
    if (facts !== null) return denialOf(facts, error)
    level = 'cause' in level ? level.cause : null
  }
  return null
}

type Members = ReadonlyMap<string, unknown>

/** Members that errors of clients have; some are getters of their class. */
const READ = ['code', 'status', 'headers', 'message', 'error', 'data', 'envelopeCode'] as const

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
    bodyIn(data, status)
  )
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
