import { isObject, type JsonObject, member } from '@plat/core'
import type { Denial, Frame } from '../../../call/index.ts'
import { ModelFrame, readEvent } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { isSet, isTokens, tokens } from './checks.ts'
import { denialFacts } from './denial-facts.ts'
import type { Dialect, DialectError, ModelRequest, Report } from './dialect.ts'
import { choicesFault, type ShapeFault } from './shapes.ts'

/** Common to the endpoints of OpenAI's API: streams of chunks that end with `[DONE]`, `usage` and errors. */
export const openai = {
  idHeader: 'x-request-id',
  headers: [],
  tokenizer: 'openai',
  asksUsage: true,
  generated: ['choices', 'error'],
  events: {
    frame(event: Uint8Array) {
      const data = readEvent(event)
      if (data === null) return ModelFrame.event('progress', event, null)
      if (data === 'done') return ModelFrame.event('final', event, null)
      if (isSet(data.value.error)) throw new InvalidResponseError('an error in its stream')
      const fault = choicesFault(data.value)
      if (fault !== null) throw new InvalidResponseError(fault)
      return ModelFrame.event('partial', event, data)
    },
    isPlain: ({ role, value }: ModelFrame) => role === 'partial' && !isSet(member(value, 'usage')),
  },
  answerFault: (value: JsonObject): ShapeFault => choicesFault(value),
  report: (frame: Frame): Report | null => reportOf(member(frame.value, 'usage')),
  hides: ({ role, value }: Frame, { usageAsked }: ModelRequest) =>
    role === 'partial' && !usageAsked && hasNoChoices(value),
  errorBody: (error: DialectError) => ({ error: errorOf(error) }),
  errorEvent: (json: string) => `data: ${json}\n\n`,
} satisfies Partial<Dialect>

/** OpenAI's error object. */
export function errorOf({ denial, status, message, decisionId }: DialectError) {
  const { param } = denial.data ?? {}
  const type = typeOf(denial, status)
  return { message, type, param: typeof param === 'string' ? param : null, ...denialFacts(denial, decisionId) }
}

/** OpenAI's word for what went wrong, by status; clients choose their exceptions by the status itself. */
function typeOf({ code }: Denial, status: number): string {
  if (code === 'budget_exceeded') return 'insufficient_quota'
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

function hasNoChoices(chunk: unknown): boolean {
  const choices = member(chunk, 'choices')
  return Array.isArray(choices) && choices.length === 0
}

/**
 * Reads `usage` in OpenAI's format: `prompt` includes cached tokens, `completion` reasoning tokens. Only translated responses report
 * tokens written to a cache. Returns null if it is not a valid report.
 */
export function reportOf(usage: unknown): Report | null {
  if (!isObject(usage)) return null
  const { prompt_tokens: prompt, completion_tokens: completion } = usage
  if (!isTokens(prompt) || !isTokens(completion)) return null
  const cachedRead = tokens(member(usage.prompt_tokens_details, 'cached_tokens'))
  const reasoning = tokens(member(usage.completion_tokens_details, 'reasoning_tokens'))
  const cachedWrite = tokens(member(usage.prompt_tokens_details, 'cache_write_tokens'))
  return { usage: { prompt, completion, cachedRead, cachedWrite, reasoning }, whole: true }
}
