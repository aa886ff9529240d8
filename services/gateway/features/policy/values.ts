import type { CelInput } from '@bufbuild/cel'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
/** Sign and 19 digits: no longer literal fits int64, so it is not worth a BigInt. */
const INT64_LITERAL_CHARS = 20

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * JSON bytes as CEL values: number literals without fraction or exponent that fit int64 become `int`, all others
 * `double`; objects become maps, so that no member name of a caller (`constructor`, `$typeName`) means anything to the
 * evaluator.
 * @throws SyntaxError, TypeError when the bytes are not UTF-8 JSON.
 */
export function celFromJson(bytes: Uint8Array): CelInput {
  return JSON.parse(utf8.decode(bytes), toCel)
}

function toCel(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value === 'number') return numberFrom(context?.source ?? String(value), value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return new Map(Object.entries(value))
}

/** The CEL number of one literal. */
export function numberFrom(literal: string, double: number): bigint | number {
  if (/[.eE]/.test(literal) || literal.length > INT64_LITERAL_CHARS) return double
  const int = BigInt(literal)
  return int >= INT64_MIN && int <= INT64_MAX ? int : double
}

/** Milliseconds since the epoch as a CEL timestamp. */
export function timestampOf(ms: number): CelInput {
  return timestampFromMs(ms)
}
