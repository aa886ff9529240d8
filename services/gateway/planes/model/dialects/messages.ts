import { isObject, type JsonObject, member } from '@plat/core'
import type { Denial, Frame, Usage } from '../../../call/index.ts'
import { commonFault, isSet, isTokens, limitFault, tokens } from './checks.ts'
import { denialFacts } from './denial-facts.ts'
import type { Dialect, Report } from './dialect.ts'
import { namedEvents } from './named.ts'
import { ANTHROPIC_USAGE, type ShapeFault, usageFault } from './shapes.ts'

/** `messages` of Anthropic's API. */
export const messages: Dialect = {
  method: 'messages',
  operation: 'model.generate',
  idHeader: 'request-id',
  headers: ['anthropic-version', 'anthropic-beta'],
  tokenizer: 'anthropic',
  asksUsage: false,
  generated: ['content', 'error'],
  fault: (value) => commonFault(value) ?? limitFault(value, 'max_tokens'),
  request(bytes, value) {
    const { model, max_tokens: maxTokens } = value
    return {
      model: typeof model === 'string' ? model : null,
      stream: value.stream === true,
      usageAsked: true,
      maxTokens: typeof maxTokens === 'number' ? maxTokens : null,
      maxTokensMember: isSet(maxTokens) ? 'max_tokens' : null,
      choices: 1,
      inputTokensAtMost: bytes.byteLength,
      bounded: isBounded(value),
    }
  },
  maxTokensMember: () => 'max_tokens',
  events: namedEvents({
    last: new Set(['message_stop']),
    shapeFault: eventFault,
    // The meter reads usage in events of any type.
    isPiece: ({ type, message, usage }) => type === 'content_block_delta' && !isSet(message) && !isSet(usage),
  }),
  answerFault({ type, content, usage }): ShapeFault {
    if (type !== 'message' || !Array.isArray(content) || !content.every(isObject)) return 'what is not a message'
    return usageFault(usage, ANTHROPIC_USAGE)
  },
  report(frame: Frame, before: Report | null): Report | null {
    const { value } = frame
    const begun = member(member(value, 'message'), 'usage')
    const usage = usageOf(isSet(begun) ? begun : member(value, 'usage'), before?.usage)
    // Only the event before the last one says what was generated in all.
    return usage === null ? null : { usage, whole: !isSet(begun) }
  },
  hides: () => false,
  errorBody: ({ denial, status, message, decisionId }) => ({
    type: 'error',
    error: { type: typeOf(denial, status), message, ...denialFacts(denial, decisionId) },
    ...(decisionId !== null && { request_id: decisionId }),
  }),
  errorEvent: (json) => `event: error\ndata: ${json}\n\n`,
}

/** `messages/count_tokens`: the same request, of which nothing is generated. */
export const countTokens: Dialect = {
  ...messages,
  method: 'messages/count_tokens',
  operation: 'model.info',
  answerFault: ({ input_tokens: count }) => (isTokens(count) ? null : 'no count of tokens'),
}

/** The members of an event that the meter, redaction and telemetry read. */
function eventFault(event: JsonObject): ShapeFault {
  switch (event.type) {
    case 'message_start':
      return isObject(event.message) ? usageFault(event.message.usage, ANTHROPIC_USAGE) : 'a start without its message'
    case 'message_delta':
      return usageFault(event.usage, ANTHROPIC_USAGE)
    case 'content_block_start':
      return isTokens(event.index) && isObject(event.content_block) ? null : 'a block that is none'
    case 'content_block_delta':
      return isTokens(event.index) && isObject(event.delta) ? null : 'a delta that is none'
    case 'content_block_stop':
      return isTokens(event.index) ? null : 'the end of no block'
    default:
      return null
  }
}

/** Anthropic's word for what went wrong; clients choose their exceptions by the status. */
function typeOf({ code }: Denial, status: number): string {
  if (code === 'budget_exceeded') return 'billing_error'
  if (code === 'overloaded') return 'overloaded_error'
  return ERRORS[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

const ERRORS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
}

const NOTHING: Usage = { prompt: 0, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0 }

/** `input_tokens` does not include tokens read from or written to a cache. Members absent in a report keep their earlier values. */
export function usageOf(usage: unknown, before: Usage = NOTHING): Usage | null {
  if (!isObject(usage) || !isTokens(usage.output_tokens)) return null
  const cachedRead = isSet(usage.cache_read_input_tokens) ? tokens(usage.cache_read_input_tokens) : before.cachedRead
  const cachedWrite = isSet(usage.cache_creation_input_tokens)
    ? tokens(usage.cache_creation_input_tokens)
    : before.cachedWrite
  const plain = isSet(usage.input_tokens)
    ? tokens(usage.input_tokens)
    : before.prompt - before.cachedRead - before.cachedWrite
  return {
    prompt: plain + cachedRead + cachedWrite,
    completion: usage.output_tokens,
    cachedRead,
    cachedWrite,
    reasoning: 0,
  }
}

/** Images and documents have tokens that the bytes of the request do not bound. */
function isBounded(value: JsonObject): boolean {
  // A thread continues with content that only the provider has.
  if (isSet(member(value.thread, 'previous_message_id'))) return false
  return !Array.isArray(value.messages) || value.messages.every((message) => isText(member(message, 'content')))
}

function isText(content: unknown): boolean {
  if (!Array.isArray(content)) return true
  return content.every((part) => TEXT_PARTS.has(member(part, 'type')) && isText(member(part, 'content')))
}

/** References are to tools that the request defines. */
const TEXT_PARTS: ReadonlySet<unknown> = new Set([
  'text',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'tool_reference',
  'tool_addition',
  'tool_removal',
])
