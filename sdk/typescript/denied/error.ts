import { readBody, readJsonObject } from '@plat/core'
import { isObject } from '@plat/tokens'
import { type DenialFacts, DeniedError, denialOf } from './denied.ts'
import { factsIn, type HeaderReader, rpcFacts } from './response.ts'

/** Largest refusal, in bytes: a longer body is a result. */
const MAX_REFUSAL_BYTES = 1024 * 1024
/** How deep errors are followed into their causes: clients wrap what they caught, never so often. */
const MAX_CAUSES = 8

/**
 * The refusal behind an error that a client threw: of the MCP clients, `openai`, `@anthropic-ai/sdk`, `@a2a-js/sdk` and of this
 * package. Null: the gateway did not refuse, something else went wrong.
 *
 * @example
 * const denied = deniedBy(error)
 * if (denied instanceof BudgetExceededError) stopForToday(denied.retryAfterMs)
 */
export function deniedBy(error: unknown): DeniedError | null {
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
  // openai keeps the error object, @anthropic-ai/sdk the whole body, MCP and A2A what stands in the JSON-RPC error.
  return (
    factsIn(error, status, header) ??
    factsIn({ error }, status, header) ??
    rpcFacts({ code: members.get('envelopeCode') ?? members.get('code'), message: members.get('message'), data }) ??
    bodyIn(data, status)
  )
}

/** The MCP client of revision 2026 keeps the answer's text of what was refused at the HTTP level. */
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
 * The refusal that a response tells, its body left to be read; null: it is none. For programs that call without a client.
 *
 * @example
 * const response = await fetch(`${gateway}/v1/whoami`)
 * const denied = await denialIn(response)
 */
export async function denialIn(response: Response): Promise<DeniedError | null> {
  const facts = response.status < 400 ? null : await factsOfBody(response)
  return facts === null ? null : denialOf(facts)
}

/** What the JSON of a response tells of a refusal, also on HTTP 200. The body is left to be read. */
export async function factsOfBody(response: Response): Promise<DenialFacts | null> {
  if (!/^application\/json\b/i.test(response.headers.get('content-type') ?? '')) return null
  const bytes = await readBody(response.clone().body, MAX_REFUSAL_BYTES).catch(() => null)
  const body = bytes === null ? null : readJsonObject(bytes)
  return factsIn(body, response.status, (name) => response.headers.get(name))
}
