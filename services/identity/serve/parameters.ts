import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { isObject, JsonError, parseStrict } from '@plat/core'
import { isJson, OAuthError } from '@plat/http/endpoints'

/** The parameters of an OAuth request: a form (RFC 6749, appendix B) or a JSON object with the same names. */
export class Parameters {
  readonly #values: ReadonlyMap<string, unknown>

  private constructor(values: ReadonlyMap<string, unknown>) {
    this.#values = values
  }

  /** Throws `invalid_request` for what is neither, for a parameter that comes twice, and for a query beside the body. */
  static read(body: Uint8Array, request: IncomingMessage): Parameters {
    // RFC 6749, section 3.2: parameters of the query would stand in every log on the way.
    if (request.url?.includes('?') === true) throw invalid('parameters belong into the body, not into the URL')
    const type = request.headers['content-type']
    if (isJson(type)) return new Parameters(readJson(body))
    if (isForm(type)) return new Parameters(readForm(body))
    throw invalid('Content-Type must be application/x-www-form-urlencoded or application/json')
  }

  /** A text; null when the parameter is absent or empty, which is the same (RFC 6749, section 3.2). */
  text(name: string): string | null {
    const value = this.#values.get(name)
    if (value === undefined || value === '') return null
    if (typeof value !== 'string' || !value.isWellFormed()) throw invalid(`${name} must be a string`)
    return value
  }

  /** A whole number above 0, written as digits or as a JSON number; null when the parameter is absent. */
  positiveInteger(name: string): number | null {
    const value = this.#values.get(name)
    if (value === undefined || value === '') return null
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
    if (typeof number !== 'number' || !(number > 0) || (!Number.isInteger(number) && number !== Infinity)) {
      throw invalid(`${name} must be a whole number above 0`)
    }
    return number
  }
}

/** `application/x-www-form-urlencoded`, with or without parameters. */
function isForm(contentType: string | undefined): boolean {
  if (contentType === 'application/x-www-form-urlencoded') return true
  return contentType !== undefined && /^application\/x-www-form-urlencoded *(;|$)/i.test(contentType)
}

function invalid(description: string): OAuthError {
  return new OAuthError(400, 'invalid_request', description)
}

function readJson(body: Uint8Array): ReadonlyMap<string, unknown> {
  try {
    const value = parseStrict(body)
    if (!isObject(value)) throw invalid('the body must be a JSON object')
    return new Map(Object.entries(value))
  } catch (error) {
    if (error instanceof JsonError) throw invalid(`the body is not valid JSON: ${error.message}`)
    throw error
  }
}

function readForm(body: Uint8Array): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const pair of decodeUtf8(body).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodeFormText(equals === -1 ? pair : pair.slice(0, equals))
    const value = equals === -1 ? '' : decodeFormText(pair.slice(equals + 1))
    if (values.has(name)) throw invalid('a parameter comes twice')
    values.set(name, value)
  }
  return values
}

function decodeUtf8(body: Uint8Array): string {
  if (!isUtf8(body)) throw invalid('the form is not UTF-8')
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
}

function decodeFormText(text: string): string {
  // Tokens, the longest texts of a form, have no encoded characters.
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalid('the form holds a percent sign that encodes nothing')
  }
}
