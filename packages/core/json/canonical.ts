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
  return isWrittenCanonically(value) ? JSON.stringify(value) : new CanonicalText().of(value)
}

/** Whether `JSON.stringify` writes the canonical form: the engine does so many times faster than any loop. False where it may. */
function isWrittenCanonically(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isSimple(value)
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) if (!isWrittenCanonically(value[at])) return false
    return true
  }
  // No `JSON.rawJSON` value has this prototype.
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  let before: string | null = null
  for (const name of Object.keys(value)) {
    if (before !== null && name < before) return false
    before = name
    if (!name.isWellFormed()) return false
    const member: unknown = Reflect.get(value, name)
    if (member !== undefined && !isWrittenCanonically(member)) return false
  }
  return true
}

/** No container, and with a canonical form. */
function isSimple(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return value.isWellFormed()
  return typeof value === 'boolean' || value === null
}

/** From so many elements on the engine writes a list faster than a loop. */
const LONG_RUN = 8

/** Returns the end of the run of simple values that starts at `at`, or `at` itself if the run is short. */
function simpleRun(list: readonly unknown[], at: number): number {
  if (!isSimple(list[Math.min(at + LONG_RUN, list.length) - 1])) return at
  let end = at
  while (end < list.length && isSimple(list[end])) end++
  return end
}

/** Names and literals longer than this are not remembered, and no more of them than this. */
const MOST_KNOWN = 1024

/** Writes one value. Remembers short texts that are written again and again. */
class CanonicalText {
  readonly #names = new Map<string, string>()
  readonly #literals = new Map<string, string>()

  of(value: unknown): string {
    switch (typeof value) {
      case 'string':
        return quoted(value)
      case 'number':
        return numberText(value)
      case 'boolean':
        return value ? 'true' : 'false'
      case 'object':
        if (value === null) return 'null'
        if (Array.isArray(value)) return this.#list(value)
        return JSON.isRawJSON(value) ? known(this.#literals, value.rawJSON, rawText) : this.#object(value)
      default:
        throw new TypeError(`canonical JSON has no form for ${typeof value}`)
    }
  }

  #list(list: readonly unknown[]): string {
    let text = ''
    for (let at = 0; at < list.length; ) {
      const end = simpleRun(list, at)
      text += at === 0 ? '' : ','
      if (end - at < LONG_RUN) text += this.of(list[at++])
      else {
        text += JSON.stringify(list.slice(at, end)).slice(1, -1)
        at = end
      }
    }
    return `[${text}]`
  }

  #object(value: object): string {
    if (!isPlain(value)) throw new TypeError('canonical JSON takes plain objects only')
    let text = ''
    for (const name of sortedNames(value)) {
      const member = value[name]
      if (member === undefined) continue
      text += `${text === '' ? '' : ','}${known(this.#names, name, quoted)}:${this.of(member)}`
    }
    return `{${text}}`
  }
}

/** Returns `make(text)`, cached for short texts. */
function known(texts: Map<string, string>, text: string, make: (text: string) => string): string {
  if (text.length > MOST_KNOWN) return make(text)
  let made = texts.get(text)
  if (made === undefined) {
    made = make(text)
    if (texts.size < MOST_KNOWN) texts.set(text, made)
  }
  return made
}

/** So many names, or fewer, are sorted faster one by one. */
const MOST_INSERTED = 16

/** Names by UTF-16 code units. */
function sortedNames(value: object): readonly string[] {
  const names = Object.keys(value)
  if (names.length > MOST_INSERTED) return names.sort()
  for (let end = 1; end < names.length; end++) {
    const name = names[end] ?? ''
    let at = end
    for (; at > 0 && (names[at - 1] ?? '') > name; at--) names[at] = names[at - 1] ?? ''
    names[at] = name
  }
  return names
}

function quoted(text: string): string {
  if (!text.isWellFormed()) throw new TypeError('canonical JSON has no form for a lone surrogate')
  return JSON.stringify(text)
}

function numberText(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError('canonical JSON has no form for NaN and infinities')
  return `${value}`
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
  const significant = withoutOuterZeros(digits)
  if (significant.digits === '') return '0'
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(significant.zerosBehind)
  return `${mantissa.startsWith('-') ? '-' : ''}${significant.digits}e${power}`
}

/** Scans from both ends: `/0+$/` would start again at each zero, which is quadratic in a run of zeros before another digit. */
function withoutOuterZeros(digits: string): { readonly digits: string; readonly zerosBehind: number } {
  let start = 0
  let end = digits.length
  while (start < end && digits.charCodeAt(start) === ZERO) start++
  while (end > start && digits.charCodeAt(end - 1) === ZERO) end--
  return { digits: digits.slice(start, end), zerosBehind: digits.length - end }
}
