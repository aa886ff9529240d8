const QUANTITY = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?$/

/** Maximum input length: bounds the size of the integers below. */
const MAX_TEXT_LENGTH = 64
/** Largest accepted exponent, for the same reason. */
const MAX_EXPONENT = 100

const BINARY_BITS: Readonly<Record<string, bigint>> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n }
const DECIMAL_POWERS: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }

/** A quantity as the exact fraction numerator / 10^scale. */
interface Exact {
  readonly numerator: bigint
  readonly scale: number
}

/**
 * Parses a quantity (docs/spec/crds.md) into nano units: a decimal number with an optional suffix `Ki Mi Gi Ti Pi Ei`, `n u m k M G T P E` or an
 * exponent. Fractions of a nano are rounded away from zero, as in Kubernetes. Returns null when it is malformed.
 */
export function parseQuantity(value: string | number): bigint | null {
  const exact = readQuantity(value)
  return exact && scaled(exact, 9, 'away')
}

/** Parses a quantity into micro units, rounded down (a cap never grows). Returns null when it is malformed or exceeds 2^53. */
export function quantityToMicros(value: string | number): number | null {
  const exact = readQuantity(value)
  if (exact === null) return null
  const micros = Number(scaled(exact, 6, 'down'))
  return Number.isSafeInteger(micros) ? micros : null
}

function readQuantity(value: string | number): Exact | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { numerator: BigInt(value), scale: 0 } : null
  const match = value.length <= MAX_TEXT_LENGTH ? QUANTITY.exec(value) : null
  if (match === null) return null
  const [, sign, number = '', binary, decimal, exponent] = match
  const [whole = '', fraction = ''] = number.split('.')
  const power = decimal === undefined ? Number(exponent ?? 0) : (DECIMAL_POWERS[decimal] ?? 0)
  if (Math.abs(power) > MAX_EXPONENT) return null
  const digits = BigInt(`${whole}${fraction}`) << (binary === undefined ? 0n : (BINARY_BITS[binary] ?? 0n))
  return { numerator: sign === '-' ? -digits : digits, scale: fraction.length - power }
}

/** Returns the fraction times 10^places as an integer. */
function scaled({ numerator, scale }: Exact, places: number, round: 'down' | 'away'): bigint {
  const power = places - scale
  if (power >= 0) return numerator * 10n ** BigInt(power)
  const divisor = 10n ** BigInt(-power)
  const quotient = numerator / divisor
  if (numerator % divisor === 0n) return quotient
  if (round === 'away') return numerator < 0n ? quotient - 1n : quotient + 1n
  return numerator < 0n ? quotient - 1n : quotient
}
