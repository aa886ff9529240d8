import { isObject, type JsonObject, member } from '@plat/core'
import type { Frame, Usage } from '../../../call/index.ts'
import { commonFault, isSet, isTokens, limitFault, tokens, wrong } from './checks.ts'
import type { Dialect, Report } from './dialect.ts'
import { namedEvents } from './named.ts'
import { errorOf } from './openai.ts'
import { RESPONSES_USAGE, type ShapeFault, usageFault } from './shapes.ts'

/** Events that end a stream. Each brings the whole response. */
const LAST = new Set<unknown>(['response.completed', 'response.incomplete', 'response.failed'])

/** `responses` of OpenAI's API. */
export const responses: Dialect = {
  method: 'responses',
  operation: 'model.generate',
  idHeader: 'x-request-id',
  headers: [],
  tokenizer: 'openai',
  asksUsage: false,
  generated: ['output', 'output_text', 'error', 'incomplete_details'],
  fault(value) {
    if (value.background === true) return wrong('background', 'must be false: the result could not be reviewed')
    return commonFault(value) ?? limitFault(value, 'max_output_tokens')
  },
  request(bytes, value) {
    const { model, max_output_tokens: maxTokens } = value
    return {
      model: typeof model === 'string' ? model : null,
      stream: value.stream === true,
      usageAsked: true,
      maxTokens: typeof maxTokens === 'number' ? maxTokens : null,
      maxTokensMember: isSet(maxTokens) ? 'max_output_tokens' : null,
      choices: 1,
      inputTokensAtMost: bytes.byteLength,
      bounded: isBounded(value),
    }
  },
  maxTokensMember: () => 'max_output_tokens',
  events: namedEvents({ last: LAST, shapeFault: eventFault, isPiece: ({ type }) => isDelta(type) }),
  answerFault: responseFault,
  report(frame: Frame): Report | null {
    if (frame.role !== 'final') return null
    const { value } = frame
    const usage = usageOf(member(isObject(member(value, 'response')) ? member(value, 'response') : value, 'usage'))
    return usage === null ? null : { usage, whole: true }
  },
  hides: () => false,
  errorBody: (error) => ({ error: errorOf(error) }),
  errorEvent: (json) => `event: error\ndata: ${flat(json)}\n\n`,
}

function responseFault({ output, usage }: JsonObject): ShapeFault {
  if (!Array.isArray(output) || !output.every(isObject)) return 'a response without output'
  return usageFault(usage, RESPONSES_USAGE)
}

/** The members of an event that redaction and the meter read. */
function eventFault({ type, response, delta }: JsonObject): ShapeFault {
  if (LAST.has(type)) return isObject(response) ? responseFault(response) : 'an end without its response'
  if (isSet(response) && !isObject(response)) return 'an event without its response'
  return isDelta(type) && typeof delta !== 'string' && !isObject(delta) ? 'an event without its delta' : null
}

function isDelta(type: unknown): boolean {
  return typeof type === 'string' && type.endsWith('.delta')
}

/** In a stream the members of an error stand in the event itself. */
function flat(json: string): string {
  const error: unknown = member(JSON.parse(json), 'error')
  return JSON.stringify({ ...(isObject(error) ? error : { message: 'the upstream failed' }), type: 'error' })
}

/** The bytes of a request do not bound the tokens of content stored at the provider, and of images and files. */
function isBounded(value: JsonObject): boolean {
  if (isSet(value.previous_response_id) || isSet(value.conversation) || isSet(value.prompt)) return false
  return !Array.isArray(value.input) || value.input.every(isText)
}

function isText(item: unknown): boolean {
  if (ELSEWHERE.has(member(item, 'type'))) return false
  const parts = [member(item, 'content'), member(item, 'output')]
  return parts.every((part) => !Array.isArray(part) || part.every((one) => TEXT_PARTS.has(member(one, 'type'))))
}

/** Items that only name what the provider keeps, or hold what was seen. */
const ELSEWHERE: ReadonlySet<unknown> = new Set(['item_reference', 'computer_call_output', 'image_generation_call'])
const TEXT_PARTS: ReadonlySet<unknown> = new Set([
  'input_text',
  'output_text',
  'refusal',
  'summary_text',
  'reasoning_text',
])

/** `usage` of a response: the input has the cached tokens in it, the output those of reasoning. */
function usageOf(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const { input_tokens: prompt, output_tokens: completion } = usage
  if (!isTokens(prompt) || !isTokens(completion)) return null
  const cachedRead = tokens(member(usage.input_tokens_details, 'cached_tokens'))
  const reasoning = tokens(member(usage.output_tokens_details, 'reasoning_tokens'))
  return { prompt, completion, cachedRead, cachedWrite: 0, reasoning }
}
