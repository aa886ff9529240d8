import { findSpan, isObject, type JsonObject, member } from '@plat/core'
import type { Denial, Frame, Usage } from '../../../call/index.ts'
import { secondsOf } from '../../wire/refusal-text.ts'
import { ModelFrame, readEvent } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { withMember } from '../members.ts'
import { isCount, isSet, isTokens, limitFault, tokens, wrong } from './checks.ts'
import type { Dialect, DialectError, Report, WrittenRequest } from './dialect.ts'
import { type ShapeFault, type UsageShape, usageFault } from './shapes.ts'

/** Members of a request that are read; Google reads each under a second name as well, which would pass by all checks. */
const REQUEST = new Set(['contents', 'systemInstruction', 'tools', 'toolConfig', 'safetySettings', 'generationConfig'])
const CONFIG = new Set([
  'candidateCount',
  'frequencyPenalty',
  'imageConfig',
  'logprobs',
  'maxOutputTokens',
  'mediaResolution',
  'presencePenalty',
  'responseJsonSchema',
  'responseLogprobs',
  'responseMimeType',
  'responseModalities',
  'responseSchema',
  'seed',
  'speechConfig',
  'stopSequences',
  'temperature',
  'thinkingConfig',
  'topK',
  'topP',
])
const CONTENT = new Set(['role', 'parts'])
const TEXT_PARTS = ['text', 'thought', 'thoughtSignature', 'functionCall', 'functionResponse'] as const
const PART = new Set<string>([
  ...TEXT_PARTS,
  'inlineData',
  'fileData',
  'executableCode',
  'codeExecutionResult',
  'videoMetadata',
  'mediaResolution',
  'partMetadata',
])
const BOUNDED_PART = new Set<string>(TEXT_PARTS)
/** Most candidates of one call, as Google limits it. */
const MAX_CANDIDATES = 8

const USAGE: UsageShape = {
  counts: [
    'promptTokenCount',
    'candidatesTokenCount',
    'thoughtsTokenCount',
    'cachedContentTokenCount',
    'toolUsePromptTokenCount',
  ],
  details: [],
}

/** `generateContent` of Google's API. The path names the model. */
export const generateContent: Dialect = {
  method: 'generateContent',
  operation: 'model.generate',
  modelInPath: true,
  idHeader: 'x-request-id',
  headers: [],
  tokenizer: 'google',
  asksUsage: false,
  generated: ['candidates', 'error'],
  fault: (value) => requestFault(value),
  request: (bytes, value) => ({
    model: null,
    stream: false,
    usageAsked: true,
    maxTokens: limitOf(value),
    maxTokensMember: null,
    choices: candidatesOf(value),
    inputTokensAtMost: bytes.byteLength,
    bounded: isBounded(value),
  }),
  maxTokensMember: () => null,
  withLimit: (body, limit) => withLimit(body, limit),
  events: {
    frame(event) {
      const data = readEvent(event)
      if (data === null || data === 'done') return ModelFrame.event('progress', event, null)
      const fault = responseFault(data.value)
      if (fault !== null) throw new InvalidResponseError(fault)
      return ModelFrame.event(isEnd(data.value) ? 'final' : 'partial', event, data)
    },
    // Only by members that are there: a template matches events with other texts in their place.
    isPlain: ({ role, value }) =>
      role === 'partial' &&
      !isSet(member(value, 'usageMetadata')) &&
      !isSet(member(value, 'promptFeedback')) &&
      candidatesIn(value).every((one) => !isSet(member(one, 'finishReason'))),
  },
  answerFault: responseFault,
  report({ value, role }: Frame): Report | null {
    const usage = usageOf(member(value, 'usageMetadata'))
    return usage === null ? null : { usage, whole: role === 'final' }
  },
  hides: () => false,
  errorBody: (error) => ({ error: errorOf(error) }),
  errorEvent: (json) => `data: ${json}\n\n`,
}

/** `streamGenerateContent`: the same request, with one candidate. */
export const streamGenerateContent: Dialect = {
  ...generateContent,
  fault: (value) =>
    requestFault(value) ??
    (candidatesOf(value) > 1 ? wrong('generationConfig.candidateCount', 'must be 1 for a stream') : null),
  request: (bytes, value) => ({ ...generateContent.request(bytes, value), stream: true }),
}

/** `countTokens`: the same contents, of which nothing is generated. */
export const countContents: Dialect = {
  ...generateContent,
  method: 'countTokens',
  operation: 'model.info',
  answerFault: ({ totalTokens: count }) => (isTokens(count) ? null : 'no count of tokens'),
}

function requestFault(value: JsonObject): Denial | null {
  const { contents, systemInstruction: system, tools, generationConfig: config } = value
  const unknown = unknownIn(value, REQUEST)
  if (unknown !== null) return wrong(unknown, UNKNOWN)
  if (!Array.isArray(contents)) return wrong('contents', 'must be a list')
  for (const [index, content] of contents.entries()) {
    const fault = contentFault(content, `contents[${index}]`)
    if (fault !== null) return fault
  }
  if (isSet(tools) && !(Array.isArray(tools) && tools.every(isObject)))
    return wrong('tools', 'must be a list of objects')
  return (isSet(system) ? contentFault(system, 'systemInstruction') : null) ?? configFault(config)
}

/** Why a member is refused. */
export const UNKNOWN = 'is not a member that the gateway reads: names are in camelCase'

/** Returns the first member that is not among the known ones. */
export function unknownIn(value: JsonObject, known: ReadonlySet<string>): string | null {
  return Object.keys(value).find((name) => !known.has(name)) ?? null
}

function contentFault(content: unknown, at: string): Denial | null {
  if (!isObject(content) || !Array.isArray(content.parts)) return wrong(`${at}.parts`, 'must be a list')
  const unknown = unknownIn(content, CONTENT)
  if (unknown !== null) return wrong(`${at}.${unknown}`, UNKNOWN)
  for (const [index, part] of content.parts.entries()) {
    const name = isObject(part) ? unknownIn(part, PART) : ''
    if (name !== null)
      return wrong(`${at}.parts[${index}]${name === '' ? '' : `.${name}`}`, name === '' ? 'must be a part' : UNKNOWN)
  }
  return null
}

function configFault(config: unknown): Denial | null {
  if (!isSet(config)) return null
  if (!isObject(config)) return wrong('generationConfig', 'must be an object')
  const unknown = unknownIn(config, CONFIG)
  if (unknown !== null) return wrong(`generationConfig.${unknown}`, UNKNOWN)
  const { candidateCount: count } = config
  if (isSet(count) && !isCount(count, MAX_CANDIDATES))
    return wrong('generationConfig.candidateCount', `must be a whole number from 1 to ${MAX_CANDIDATES}`)
  return limitFault(config, 'maxOutputTokens')
}

function limitOf({ generationConfig: config }: JsonObject): number | null {
  const limit = member(config, 'maxOutputTokens')
  return typeof limit === 'number' ? limit : null
}

function candidatesOf({ generationConfig: config }: JsonObject): number {
  const count = member(config, 'candidateCount')
  return typeof count === 'number' ? count : 1
}

/** Sound, images and files have tokens that the bytes of the request do not bound. */
function isBounded({ contents, systemInstruction: system, generationConfig: config }: JsonObject): boolean {
  const modalities = member(config, 'responseModalities')
  if (Array.isArray(modalities) && modalities.some((one) => one !== 'TEXT')) return false
  const all: readonly unknown[] = Array.isArray(contents) ? [...contents, system] : [system]
  return all.every((content) => {
    const parts = member(content, 'parts')
    return !Array.isArray(parts) || parts.every((part) => isObject(part) && unknownIn(part, BOUNDED_PART) === null)
  })
}

const OPEN_BRACE = '{'

/** The request with another limit of output tokens. All other bytes are unchanged. */
function withLimit({ bytes, value }: WrittenRequest, limit: number): WrittenRequest {
  const { generationConfig: config } = value
  const written = { ...value, generationConfig: { ...(isObject(config) ? config : null), maxOutputTokens: limit } }
  const json = `"maxOutputTokens":${limit}`
  if (!isObject(config)) return { bytes: withMember({ bytes, value }, 'generationConfig', `{${json}}`), value: written }
  const span = findSpan(bytes, ['generationConfig', 'maxOutputTokens'])
  if (span !== null) return { bytes: spliced(bytes, span, String(limit)), value: written }
  const [start] = findSpan(bytes, ['generationConfig']) ?? [0]
  const inside = bytes.indexOf(OPEN_BRACE.charCodeAt(0), start) + 1
  const comma = Object.keys(config).length === 0 ? '' : ','
  return { bytes: spliced(bytes, [inside, inside], json + comma), value: written }
}

function spliced(bytes: Uint8Array, [start, end]: readonly [number, number], text: string): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)])
}

function candidatesIn(value: unknown): readonly unknown[] {
  const candidates = member(value, 'candidates')
  return Array.isArray(candidates) ? candidates : []
}

/** A stream has one candidate, and ends with its finish reason or with a blocked prompt. */
function isEnd(value: JsonObject): boolean {
  return (
    isSet(member(value.promptFeedback, 'blockReason')) ||
    candidatesIn(value).some((one) => isSet(member(one, 'finishReason')))
  )
}

function responseFault(value: JsonObject): ShapeFault {
  const { candidates, error, usageMetadata } = value
  if (isSet(error)) return 'an error in its response'
  if (isSet(candidates) && !(Array.isArray(candidates) && candidates.every(isCandidate)))
    return 'a response without valid candidates'
  return usageFault(usageMetadata, USAGE)
}

function isCandidate(candidate: unknown): boolean {
  if (!isObject(candidate)) return false
  const { content, index, finishReason: reason } = candidate
  const parts = member(content, 'parts')
  if (isSet(content) && !isObject(content)) return false
  if (isSet(parts) && !(Array.isArray(parts) && parts.every(isObject))) return false
  return (!isSet(index) || isTokens(index)) && (!isSet(reason) || (typeof reason === 'string' && reason !== ''))
}

/** The prompt includes tokens read from a cache; the candidates do not include thoughts. */
function usageOf(usage: unknown): Usage | null {
  if (!isObject(usage) || !isTokens(usage.promptTokenCount)) return null
  const reasoning = tokens(usage.thoughtsTokenCount)
  return {
    prompt: usage.promptTokenCount + tokens(usage.toolUsePromptTokenCount),
    completion: tokens(usage.candidatesTokenCount) + reasoning,
    cachedRead: tokens(usage.cachedContentTokenCount),
    cachedWrite: 0,
    reasoning,
  }
}

/** Google's words for statuses. */
const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** Google's error object. `metadata` has texts only. */
function errorOf({ denial, status, message, decisionId }: DialectError): JsonObject {
  const { code, policy, rule, retryAfterMs, data } = denial
  const word = STATUSES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
  if (decisionId === null) return { code: status, message, status: word }
  const facts: readonly (readonly [string, unknown])[] = [
    ['code', code],
    ['decisionId', decisionId],
    ['policy', policy],
    ['rule', rule],
    ['param', data?.param],
    ['approvalId', data?.approvalId],
  ]
  const metadata = Object.fromEntries(facts.filter(([, fact]) => typeof fact === 'string'))
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: code.toUpperCase(),
    domain: 'plat.dev',
    metadata,
  }
  const wait = retryAfterMs === null ? [] : [{ '@type': RETRY_INFO, retryDelay: `${secondsOf(retryAfterMs)}s` }]
  return { code: status, message, status: word, details: [info, ...wait] }
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'
