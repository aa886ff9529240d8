import type { CedarValueJson } from '@cedar-policy/cedar-wasm/nodejs'
import { parseChecked } from '@plat/core'

/** A value in the JSON form of Cedar. */
export type CedarValue = CedarValueJson

/** Cost of a byte of JSON in the engine, in hundredths of a microsecond: in a string, and in a number. */
const PLAIN_COST = 5
const DIGIT_COST = 40
const WIDE_COST = 30
const MEMBER_COST = 800
const ELEMENT_COST = 600
const CONTAINER_COST = 400
/** Sets are compared by their elements, again in each enclosing set. */
const DEPTH_COST = 50
/** Cost of parsing a decimal with a regular expression. */
const FRACTION_COST = 4000
/** Cost of a number without a Cedar type, which becomes a record. */
const EXPONENT_COST = 2000

/**
 * Estimates how long the engine copies these arguments, in hundredths of a microsecond; stops once that exceeds `most`. The engine has no limit, and
 * copies a value much more slowly than `JSON.parse` creates it.
 */
export function cedarCost(bytes: Uint8Array, most: number): number {
  let cost = 0
  let depth = 0
  let isText = false
  for (let at = 0; at < bytes.length && cost <= most; at++) {
    const byte = bytes[at] ?? 0
    if (byte === BACKSLASH) at++
    if (byte === QUOTE) isText = !isText
    else if (isText) cost += byte === BACKSLASH || byte > LAST_PRINTABLE ? WIDE_COST : PLAIN_COST
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) cost += CONTAINER_COST + DEPTH_COST * depth++
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
    else if (byte === COLON) cost += MEMBER_COST
    else if (byte === COMMA) cost += ELEMENT_COST + DEPTH_COST * depth
    else if (byte === DOT) cost += FRACTION_COST
    else cost += (byte | LOWER_CASE) === LOWER_E && (bytes[at - 1] ?? 0) <= NINE ? EXPONENT_COST : DIGIT_COST
  }
  return cost
}

const LAST_PRINTABLE = 0x7e
const NINE = 0x39
const QUOTE = 0x22
const COMMA = 0x2c
const DOT = 0x2e
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const LOWER_E = 0x65
const LOWER_CASE = 0x20
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
/** Sign and 19 digits: a longer literal cannot fit int64, so it needs no BigInt. */
const INT64_LITERAL_CHARS = 20
const INTEGER = /^-?\d+$/
/** Cedar's form of a decimal: one to four decimals. */
const DECIMAL = /^(-?\d+)\.(\d{1,4})$/
const DECIMAL_DIGITS = 4

/** Members with a special meaning in Cedar's JSON. In arguments they would let a caller choose a type. */
const ESCAPES: ReadonlySet<string> = new Set(['__entity', '__extn', '__expr'])

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Converts JSON bytes to a Cedar value. A number without fraction or exponent that fits int64 becomes a `Long`, one with up to four decimals a
 * `decimal`. Values without a Cedar type become a record, so that `has` finds them and comparisons fail, which is the stricter result: any other
 * number `{number: "<literal>"}`, and null `{}`. Lists become sets.
 * Throws SyntaxError or TypeError when the bytes are not UTF-8 JSON, or cannot be represented in Cedar.
 */
export function cedarFromJson(bytes: Uint8Array): CedarValue {
  const value: unknown = parseChecked(utf8.decode(bytes), toCedar)
  if (!isCedar(value)) throw new TypeError('no value')
  return value
}

/** JSON values that passed `toCedar` are Cedar values. */
function isCedar(value: unknown): value is CedarValue {
  return value !== undefined
}

function toCedar(_name: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value === 'number') return numberOf(context.source ?? String(value))
  if (value === null) return {}
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('a text is not Unicode')
  if (typeof value !== 'object' || Array.isArray(value)) return value
  for (const name of Object.keys(value)) {
    if (ESCAPES.has(name)) throw new TypeError(`the member ${name} cannot be represented in Cedar`)
    if (!name.isWellFormed()) throw new TypeError('the name of a member is not Unicode')
  }
  return value
}

function numberOf(literal: string): unknown {
  if (INTEGER.test(literal)) {
    // A double cannot represent every int64, so the literal is passed on. Cedar has no negative zero.
    if (isInt64(literal)) return JSON.rawJSON(literal === '-0' ? '0' : literal)
    return { number: literal }
  }
  const [, whole = '', fraction = ''] = DECIMAL.exec(literal) ?? []
  const isDecimal = whole !== '' && isInt64(whole + fraction.padEnd(DECIMAL_DIGITS, '0'))
  return isDecimal ? { __extn: { fn: 'decimal', arg: literal } } : { number: literal }
}

function isInt64(literal: string): boolean {
  if (literal.length > INT64_LITERAL_CHARS) return false
  const value = BigInt(literal)
  return value >= INT64_MIN && value <= INT64_MAX
}
