import type { CelInput } from '@bufbuild/cel'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { parseChecked } from '@plat/core'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
/** Sign and 19 digits: longer literals never fit int64, so no BigInt is created. */
const INT64_LITERAL_CHARS = 20

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * JSON bytes as CEL values: number literals without fraction or exponent that fit int64 become `int`, all others
 * `double`; objects become maps, so that no member name of a caller (`constructor`, `$typeName`) means anything to the
 * evaluator. `parsed` avoids parsing the bytes again, unless it contains a number: only the bytes have its literal.
 * @throws SyntaxError, TypeError when the bytes are not UTF-8 JSON.
 */
export function celFromJson(bytes: Uint8Array, parsed?: unknown): CelInput {
  if (parsed !== undefined && !holdsNumber(parsed)) return toCel(parsed)
  return toCel(parseChecked(utf8.decode(bytes), exactNumber))
}

function exactNumber(_name: string, value: unknown, context: { readonly source?: string }): unknown {
  return typeof value === 'number' ? numberFrom(context.source ?? String(value), value) : value
}

/** Iterates members by name, here and below, to avoid creating a list per object. */
function holdsNumber(value: unknown): boolean {
  if (typeof value === 'number') return true
  if (!isObject(value)) return false
  for (const name in value) if (holdsNumber(value[name])) return true
  return false
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null
}

function toCel(value: unknown): CelInput {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' || typeof value === 'bigint') return value
  if (Array.isArray(value)) return value.map(toCel)
  if (!isObject(value)) return null
  const members = new Map<string, CelInput>()
  for (const name in value) members.set(name, toCel(value[name]))
  return members
}

/** The CEL number of one literal. */
export function numberFrom(literal: string, double: number): bigint | number {
  if (literal.length > INT64_LITERAL_CHARS || /[.eE]/.test(literal)) return double
  const int = BigInt(literal)
  return int >= INT64_MIN && int <= INT64_MAX ? int : double
}

/** Milliseconds since the epoch as a CEL timestamp. */
export function timestampOf(ms: number): CelInput {
  return timestampFromMs(ms)
}
