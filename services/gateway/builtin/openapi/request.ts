import { isObject } from '@plat/core'
import type { ApiParameter, ApiTool } from '@plat/resources/rendered'
import { numberOf } from './check.ts'

/** Longest path and query, and longest cookies, in characters. */
const MAX_TARGET_CHARS = 8192
/** Longest form, in characters, and parts of a list or an object outside of JSON. */
const MAX_FORM_CHARS = 256 * 1024
const MAX_PARTS = 1024
/** Longest value of a header, in characters. */
const MAX_HEADER_CHARS = 4096

export interface ApiRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** Why arguments cannot be written into a request. The message is for a model. */
class UnwritableError extends Error {}

type Arguments = Readonly<Record<string, unknown>>

/**
 * Returns the request of a call, or a text with the problem. The URL is always below `base`: a value adds exactly one segment to the path, and
 * no value adds a line to the head.
 */
export function requestOf(base: string, tool: ApiTool, values: Arguments): ApiRequest | string {
  try {
    return written(base, tool, values)
  } catch (error) {
    if (error instanceof UnwritableError) return error.message
    throw error
  }
}

function written(base: string, tool: ApiTool, values: Arguments): ApiRequest {
  const headers: Record<string, string> = {}
  const query: string[] = []
  const cookies: string[] = []
  const owners = ownersOf(tool)
  let path = tool.path
  for (const parameter of tool.parameters) {
    const { argument } = parameter
    const value = Object.hasOwn(values, argument) ? values[argument] : undefined
    if (value === undefined || value === null) {
      if (parameter.in === 'path') throw new UnwritableError(`arguments/${argument}: is required`)
      continue
    }
    checkSize(argument, value, MAX_TARGET_CHARS)
    if (parameter.in === 'path') path = path.replaceAll(`{${parameter.name}}`, () => segmentOf(parameter, value))
    else if (parameter.in === 'query') query.push(...pairsOf(parameter, value, owners.query))
    else if (parameter.in === 'header') headers[parameter.name.toLowerCase()] = headerOf(parameter, value)
    else cookies.push(...pairsOf(parameter, value, owners.cookie))
  }
  if (cookies.length > 0) headers.cookie = cookies.join('; ')
  if ((headers.cookie ?? '').length > MAX_TARGET_CHARS) throw new UnwritableError('arguments: too long for cookies')
  const target = path + (query.length === 0 ? '' : `?${query.join('&')}`)
  return { url: urlBelow(base, target), headers, body: bodyOf(tool, values, headers) }
}

/** Throws unless the URL has exactly this path below the base. */
function urlBelow(base: string, target: string): URL {
  if (target.length > MAX_TARGET_CHARS) throw new UnwritableError('arguments: too long for a URL')
  const { origin, pathname } = new URL(base)
  const prefix = pathname.replace(/\/$/, '')
  const url = URL.parse(`${origin}${prefix}${target}`)
  // A parser that removes or adds a segment would lead to another operation.
  if (url === null || url.origin !== origin || `${url.pathname}${url.search}` !== `${prefix}${target}`)
    throw new UnwritableError('arguments: they do not make a valid URL')
  return url
}

/** Throws for a value that is too large to be encoded at once. */
function checkSize(argument: string, value: unknown, maxChars: number): void {
  const isPlain = typeof value !== 'object' || value === null || JSON.isRawJSON(value)
  const parts: unknown[] = isPlain
    ? [value]
    : [...Object.values(value), ...(Array.isArray(value) ? [] : Object.keys(value))]
  const count = parts.reduce((sum: number, part) => sum + (Array.isArray(part) ? part.length : 1), 0)
  const texts = count > MAX_PARTS ? [] : parts.flat()
  const chars = texts.reduce((sum: number, part) => sum + (typeof part === 'string' ? part.length : 1), 0)
  if (count > MAX_PARTS || chars > maxChars) throw new UnwritableError(`arguments/${argument}: too long`)
}

/** A value as JSON. Throws if it is too long for a URL or a header. */
function jsonOf(argument: string, value: unknown): string {
  const text = JSON.stringify(value)
  if (text.length > MAX_TARGET_CHARS) throw new UnwritableError(`arguments/${argument}: too long`)
  return text
}

function textOf(argument: string, value: unknown): string {
  if (typeof value === 'string') return value.toWellFormed()
  if (JSON.isRawJSON(value)) return value.rawJSON
  if (typeof value === 'boolean' || numberOf(value) !== null) return String(value)
  if (value === null) return ''
  throw new UnwritableError(`arguments/${argument}: must not have lists or objects within it`)
}

const encoded = (text: string) => encodeURIComponent(text).replaceAll(/[!'()*]/g, hexOf)

function hexOf(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

/** Names and values of a list or an object in one text (`style: simple`, and others that are not exploded). */
function joined({ argument, explode }: ApiParameter, value: unknown, separator: string): string {
  const one = (part: unknown) => encoded(textOf(argument, part))
  if (Array.isArray(value)) return value.map(one).join(separator)
  if (!isObject(value) || JSON.isRawJSON(value)) return one(value)
  const pairs = Object.entries(value).map(([name, member]) => [encoded(name.toWellFormed()), one(member)])
  return pairs.map((pair) => pair.join(explode ? '=' : separator)).join(separator)
}

/** Returns one segment. Refuses values that a server or proxy which decodes them, also twice, would read as another path. */
function segmentOf(parameter: ApiParameter, value: unknown): string {
  const text = parameter.style === 'json' ? encoded(jsonOf(parameter.argument, value)) : joined(parameter, value, ',')
  const problem = text === '' ? 'must not be empty' : segmentProblem(text, parameter.allowSlash === true)
  if (problem !== null) throw new UnwritableError(`arguments/${parameter.argument}: ${problem}`)
  return text
}

/** Backslashes and control characters, of which those from U+0080 stay encoded here. */
const HIDDEN = /[\\\p{Cc}]|%C2%[89][0-9A-F]/iu
/** How often a value may be decoded on its way. */
const DECODED_TIMES = 3

function segmentProblem(text: string, allowSlash: boolean): string | null {
  let decoded = text
  for (let times = 0; times < DECODED_TIMES; times++) {
    decoded = decodedOnce(decoded)
    if (HIDDEN.test(decoded)) return 'must not have backslashes or control characters'
    const segments = decoded.split('/')
    if (segments.some((segment) => /^\.{1,2}(?:;|$)/.test(segment))) return 'must not lead to another path'
    if (segments.length === 1) continue
    if (!allowSlash) return 'must not have a slash'
    // Servers that merge slashes would read another name than policies did.
    if (segments.includes('')) return 'must not have an empty part between slashes'
  }
  return null
}

function decodedOnce(text: string): string {
  return text.replaceAll(/%[0-7][0-9A-Fa-f]/g, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
}

const SEPARATORS: Partial<Record<ApiParameter['style'], string>> = { spaceDelimited: '%20', pipeDelimited: '%7C' }

/** Arguments by the names that they have in the query or in cookies. */
type Owners = Map<string, string>

function ownersOf({ parameters }: ApiTool): Readonly<Record<'query' | 'cookie', Owners>> {
  const of = (place: ApiParameter['in']) =>
    new Map(parameters.filter((one) => one.in === place).map(({ name, argument }) => [comparable(name), argument]))
  return { query: of('query'), cookie: of('cookie') }
}

/** A name as the most lenient server compares it: without case, and `a[b]`, `a.b` and `a b` as PHP reads them. */
function comparable(name: string): string {
  const [base = ''] = name.split('[', 1)
  return base.trim().toLowerCase().replaceAll(/[\s.]/g, '_')
}

/**
 * Notes that a member of an object is written under its own name. Throws for the name of another parameter: a policy decides on the argument of that
 * parameter, and the server may use either of the two.
 */
function claim(owners: Owners, { argument }: ApiParameter, member: string): void {
  const name = comparable(member)
  if ((owners.get(name) ?? argument) !== argument)
    throw new UnwritableError(`arguments/${argument}: must not have a member with the name of another parameter`)
  owners.set(name, `${argument}/${member}`)
}

/** Returns the `name=value` pairs of a parameter in the query or in cookies. */
function pairsOf(parameter: ApiParameter, value: unknown, owners: Owners): readonly string[] {
  const { argument, style, explode } = parameter
  const name = parameter.in === 'cookie' ? parameter.name : encoded(parameter.name)
  if (style === 'json') return [`${name}=${encoded(jsonOf(argument, value))}`]
  const pair = (key: string, member: unknown) => `${key}=${encoded(textOf(argument, member))}`
  if (Array.isArray(value) && explode) return value.map((element) => pair(name, element))
  if (isObject(value) && !JSON.isRawJSON(value) && (explode || style === 'deepObject'))
    return Object.entries(value).map(([key, member]) => {
      const part = encoded(key.toWellFormed())
      if (style !== 'deepObject') claim(owners, parameter, key)
      return pair(style === 'deepObject' ? `${name}%5B${part}%5D` : part, member)
    })
  return [`${name}=${joined(parameter, value, SEPARATORS[style] ?? ',')}`]
}

/** Characters of a header value: no line breaks, and nothing that a server could read as another character. */
const HEADER_VALUE = /^[\x20-\x7e]*$/

function headerOf(parameter: ApiParameter, value: unknown): string {
  const { argument, explode, style } = parameter
  const one = (part: unknown) => textOf(argument, part)
  const text =
    style === 'json'
      ? jsonOf(argument, value)
      : Array.isArray(value)
        ? value.map(one).join(',')
        : isObject(value) && !JSON.isRawJSON(value)
          ? Object.entries(value)
              .map(([name, member]) => [name, one(member)].join(explode ? '=' : ','))
              .join(',')
          : one(value)
  if (HEADER_VALUE.test(text) && text.length <= MAX_HEADER_CHARS) return text
  throw new UnwritableError(`arguments/${argument}: must be printable ASCII of at most ${MAX_HEADER_CHARS} characters`)
}

function bodyOf({ body }: ApiTool, values: Arguments, headers: Record<string, string>): string | null {
  if (body === undefined || !Object.hasOwn(values, 'body')) return null
  headers['content-type'] = body.form === 'text' ? `${body.mediaType};charset=utf-8` : body.mediaType
  const value = values.body
  if (body.form === 'json') return JSON.stringify(value)
  if (body.form === 'text') return textOf('body', value)
  if (!isObject(value)) throw new UnwritableError('arguments/body: must be an object')
  checkSize('body', value, MAX_FORM_CHARS)
  const form = new URLSearchParams()
  for (const [name, member] of Object.entries(value))
    for (const one of Array.isArray(member) ? member : [member]) form.append(name, textOf(`body/${name}`, one))
  return form.toString()
}
