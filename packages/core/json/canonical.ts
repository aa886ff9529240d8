import type {} from './raw.ts'

/** Code unit of the digit 0. */
const ZERO = 0x30

/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 code units, no spaces, numbers and strings as ECMAScript writes
 * them. Members whose value is `undefined` are absent. A `JSON.rawJSON` number (see `parseLossless`) that a double holds
 * is written as that double; any other is written as its source text, so that two different literals never look alike.
 * @throws TypeError on NaN, infinities, lone surrogates and whatever is not plain data, RangeError on a cycle.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'number':
      return numberText(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
      return JSON.isRawJSON(value) ? rawText(value.rawJSON) : objectText(value)
    default:
      throw new TypeError(`canonical JSON has no form for ${typeof value}`)
  }
}

function quoted(text: string): string {
  if (!text.isWellFormed()) throw new TypeError('canonical JSON has no form for a lone surrogate')
  return JSON.stringify(text)
}

function numberText(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError('canonical JSON has no form for NaN and infinities')
  return JSON.stringify(value)
}

function objectText(value: object): string {
  if (!isPlain(value)) throw new TypeError('canonical JSON takes plain objects only')
  let text = ''
  for (const name of Object.keys(value).sort()) {
    const member = value[name]
    if (member === undefined) continue
    text += `${text === '' ? '' : ','}${quoted(name)}:${canonicalJson(member)}`
  }
  return `{${text}}`
}

function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function rawText(source: string): string {
  const value: unknown = JSON.parse(source)
  if (typeof value !== 'number') return canonicalJson(value)
  if (!Number.isFinite(value)) return source
  const text = JSON.stringify(value)
  return decimal(source) === decimal(text) ? text : source
}

/** A decimal literal as digits without outer zeros and an exponent, so that `1.50e1` and `15` read alike. */
function decimal(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = whole + fraction
  const kept = withoutOuterZeros(digits)
  if (kept.digits === '') return '0'
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(kept.zerosBehind)
  return `${mantissa.startsWith('-') ? '-' : ''}${kept.digits}e${power}`
}

/** Scans from both ends: `/0+$/` would start again at each zero, which is quadratic in a run of zeros before another digit. */
function withoutOuterZeros(digits: string): { readonly digits: string; readonly zerosBehind: number } {
  let start = 0
  let end = digits.length
  while (start < end && digits.charCodeAt(start) === ZERO) start++
  while (end > start && digits.charCodeAt(end - 1) === ZERO) end--
  return { digits: digits.slice(start, end), zerosBehind: digits.length - end }
}
