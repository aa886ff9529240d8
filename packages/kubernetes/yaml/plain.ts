/** Value of a plain (unquoted) scalar. */
export type PlainScalar =
  | { readonly type: 'null'; readonly value: null }
  | { readonly type: 'boolean'; readonly value: boolean }
  | { readonly type: 'integer'; readonly value: bigint }
  | { readonly type: 'float'; readonly value: number }
  | { readonly type: 'string'; readonly value: string }

/** Control characters, and line breaks that versions 1.1 and 1.2 read differently. */
export const BAD_CHARACTER = /(?![\t\n\r])[\p{Cc}\u2028\u2029\ufffe\uffff]/u

const NULLS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL'])
const TRUE: ReadonlySet<string> = new Set(['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'])
const FALSE: ReadonlySet<string> = new Set(['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'])
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/

/** Maximum length of an integer or float in characters: the conversion is not linear. */
const MAX_NUMBER_CHARS = 1024

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
const UINT64_MAX = 2n ** 64n - 1n

/**
 * Parses a plain scalar as the Go libraries of Kubernetes do (sigs.k8s.io/yaml): YAML 1.1 without base 60 numbers, with the integers of Go. Dates
 * are strings. Infinity and NaN are floats here, which JSON cannot represent.
 */
export function readPlain(text: string): PlainScalar {
  if (NULLS.has(text)) return { type: 'null', value: null }
  if (TRUE.has(text)) return { type: 'boolean', value: true }
  if (FALSE.has(text)) return { type: 'boolean', value: false }
  if (NOT_FINITE.test(text)) return { type: 'float', value: Number.NaN }
  return (text.length <= MAX_NUMBER_CHARS && readNumber(text)) || { type: 'string', value: text }
}

function readNumber(text: string): PlainScalar | null {
  // A leading point allows no underscores: Go removes them only from text that starts with a digit or a sign.
  if (text.startsWith('.')) return readFloat(text)
  if (!/^[-+0-9]/.test(text)) return null
  const plain = text.replaceAll('_', '')
  const value = readInteger(plain)
  return value === null ? readFloat(plain) : { type: 'integer', value }
}

/** Returns null for text that is not an integer, or exceeds 64 bits. */
function readInteger(text: string): bigint | null {
  const {
    sign,
    prefix = '',
    digits,
  } = /^(?<sign>[-+]?)(?<prefix>0[xX]|0[oO]|0[bB]|0(?=[0-7]))?(?<digits>[0-9a-fA-F]+)$/.exec(text)?.groups ?? {}
  if (digits === undefined) return null
  const base = prefix === '0' ? '0o' : prefix.toLowerCase()
  if (!DIGITS[base]?.test(digits) || (base === '' && digits.length > 1 && digits.startsWith('0'))) return null
  const size = BigInt(base + digits)
  if (sign === '') return size <= UINT64_MAX ? size : null
  const value = sign === '-' ? -size : size
  return value >= INT64_MIN && value <= INT64_MAX ? value : null
}

const DIGITS: Readonly<Record<string, RegExp>> = {
  '0x': /^[0-9a-fA-F]+$/,
  '0o': /^[0-7]+$/,
  '0b': /^[01]+$/,
  '': /^[0-9]+$/,
}

function readFloat(text: string): PlainScalar | null {
  if (!/^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text)) return null
  const value = Number(text)
  return Number.isFinite(value) ? { type: 'float', value } : null
}
