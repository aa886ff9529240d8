import { withoutTrailing } from '../text/trim.ts'

/** Milliseconds per unit of Go durations; both micro signs are in use. */
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

const DURATION = /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/
const PART = /([.\d]+)([a-zµμ]*)/g

/** Go stores durations in 63 bits of nanoseconds, about 292 years. */
const LONGEST_MS = 2 ** 63 / 1e6

/** Maximum input length: durations written by people are far shorter. */
const MAX_TEXT_LENGTH = 64

/**
 * Parses a Go duration such as `15m`, `1h30m`, `250ms`, `-1.5s` or `0`; returns milliseconds. Returns null when it is malformed or exceeds the range
 * of Go. A number without a unit is refused, except zero.
 */
export function parseDuration(text: string): number | null {
  if (/^[-+]?0$/.test(text)) return 0
  if (text.length > MAX_TEXT_LENGTH || !DURATION.test(text)) return null
  let ms = 0
  for (const [, amount, unit] of text.matchAll(PART)) ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  if (ms > LONGEST_MS) return null
  return text.startsWith('-') && ms !== 0 ? -ms : ms
}

/** Formats a duration in its shortest form: `15m`, `1h30m`, `1.5s`, `250ms`, `0s`. Exact to the nanosecond. */
export function formatDuration(ms: number): string {
  const sign = ms < 0 ? '-' : ''
  const nanos = BigInt(Math.round(Math.abs(ms) * 1e6))
  if (nanos === 0n) return '0s'
  if (nanos < 1000n) return `${sign}${nanos}ns`
  if (nanos < 1_000_000n) return `${sign}${fraction(nanos, 3)}us`
  if (nanos < 1_000_000_000n) return `${sign}${fraction(nanos, 6)}ms`
  const minutes = nanos / 60_000_000_000n
  const seconds = nanos % 60_000_000_000n
  const hours = minutes / 60n
  return `${sign}${part(hours, 'h')}${part(minutes % 60n, 'm')}${seconds > 0n ? `${fraction(seconds, 9)}s` : ''}`
}

function part(amount: bigint, unit: string): string {
  return amount > 0n ? `${amount}${unit}` : ''
}

/** Returns `nanos` divided by ten to the `places`, without trailing zeros. */
function fraction(nanos: bigint, places: number): string {
  const digits = nanos.toString().padStart(places + 1, '0')
  const rest = withoutTrailing(digits.slice(-places), '0')
  return rest === '' ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${rest}`
}
