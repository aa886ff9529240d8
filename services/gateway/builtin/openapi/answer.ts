import {
  isObject,
  JsonError,
  losslessSteps,
  MESSAGE_LIMITS,
  parseStrict,
  readUtf8,
  runInSlices,
  Slices,
} from '@plat/core'
import type { Fetched } from '@plat/http'
import type { ApiTool } from '@plat/resources/rendered'
import { type ToolResult, toolFailure } from '../../call/index.ts'
import { schemaProblem } from './check.ts'

/** Text of a failure that a model reads, in characters. */
const FAILURE_MAX_CHARS = 4096

type Attempts = ToolResult['attempts']

/** Returns the result of a call for an answer of its API, which is read strictly: a model gets what the API said, or why it cannot. */
export async function resultOf(
  tool: ApiTool,
  { status, headers, bytes }: Fetched,
  attempts: Attempts,
): Promise<ToolResult> {
  if (status >= 300 && status < 400)
    return toolFailure(`The API answered ${status}, a redirect. Redirects are not followed.`, attempts)
  if (status < 200) return toolFailure(`The API answered ${status}, which is not an answer.`, attempts)
  const type = mediaTypeOf(headers['content-type'])
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    return toolFailure(`The API answered ${status} with a compressed body, which was not requested.`, attempts)
  const text = isReadable(type) || bytes.length === 0 ? readUtf8(bytes) : null
  if (status >= 400) return toolFailure(failureText(status, text, { type, bytes }), attempts)
  if (text === null)
    return toolFailure(`The API answered ${status} with ${described(type, bytes)}, which is not passed on.`, attempts)
  return isJson(type) && text !== ''
    ? jsonResult(tool, { status, text, bytes }, attempts)
    : textResult(tool, status, text, attempts)
}

/** Other bodies can neither be redacted nor read by a model. */
function isReadable(type: string): boolean {
  return isJson(type) || type.startsWith('text/') || type === 'application/xml' || type.endsWith('+xml')
}

function isJson(type: string): boolean {
  return type === 'application/json' || /^application\/[^\s]{1,100}\+json$/.test(type)
}

function mediaTypeOf(header: string | undefined): string {
  const [type = ''] = (header ?? '').split(';')
  return type.trim().toLowerCase()
}

/** The type is the API's text: only one of the usual form is repeated. */
function described(type: string, bytes: Uint8Array): string {
  const named = /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,64}$/.test(type) ? type : 'a body without a usable type'
  return `${named} (${bytes.length} bytes)`
}

function failureText(
  status: number,
  text: string | null,
  { type, bytes }: { readonly type: string; readonly bytes: Uint8Array },
): string {
  if (text === '') return `The API answered ${status} without a body.`
  if (text === null) return `The API answered ${status} with ${described(type, bytes)}.`
  return `The API answered ${status}: ${shortened(text)}`
}

function shortened(text: string): string {
  return text.length > FAILURE_MAX_CHARS ? `${text.slice(0, FAILURE_MAX_CHARS).toWellFormed()}…` : text
}

async function jsonResult(
  tool: ApiTool,
  { status, text, bytes }: { readonly status: number; readonly text: string; readonly bytes: Uint8Array },
  attempts: Attempts,
): Promise<ToolResult> {
  const parsed = await parsedJson(bytes)
  if (typeof parsed === 'string')
    return toolFailure(`The API answered ${status} with invalid JSON (${parsed}).`, attempts)
  const { value } = parsed
  const structured = tool.wrapped === true ? { result: value } : value
  const content = [{ type: 'text' as const, text }]
  if (tool.outputSchema === undefined) {
    const isStructured = isObject(value) && !JSON.isRawJSON(value)
    return { content, ...(isStructured && { structuredContent: value }), isError: false, attempts }
  }
  const found = schemaProblem(tool.outputSchema, structured)
  // Clients check it again; the API has answered, whatever its size.
  const problem = found?.isUnchecked === true ? null : found
  if (problem !== null || !isObject(structured))
    return toolFailure(undocumented(status, problem ?? { path: '', message: 'must be object' }, text), attempts)
  return { content, structuredContent: structured, isError: false, attempts }
}

/** Parses in slices: each of its passes takes some milliseconds for a large answer. */
async function parsedJson(bytes: Uint8Array): Promise<{ readonly value: unknown } | string> {
  const slices = new Slices()
  try {
    parseStrict(bytes, MESSAGE_LIMITS)
    if (slices.isOver) await slices.next()
    const value = await runInSlices(losslessSteps(bytes))
    if (slices.isOver) await slices.next()
    return { value }
  } catch (error) {
    if (error instanceof JsonError) return error.message
    throw error
  }
}

function textResult(tool: ApiTool, status: number, text: string, attempts: Attempts): ToolResult {
  if (tool.outputSchema !== undefined)
    return toolFailure(undocumented(status, { path: '', message: 'must be JSON' }, text), attempts)
  const message = text === '' ? `The API answered ${status} without a body.` : text
  return { content: [{ type: 'text', text: message }], isError: false, attempts }
}

/** Clients refuse a result that does not have the form that its tool states; a failure passes, and says that the call was made. */
function undocumented(
  status: number,
  { path, message }: { readonly path: string; readonly message: string },
  text: string,
): string {
  return `The API answered ${status}, so the call was made, but its answer is not as documented (answer${path} ${message}): ${shortened(text)}`
}
