const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]
const MICROS = 1_000_000

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const whole = new Intl.NumberFormat('en')
const absolute = new Intl.DateTimeFormat('en-CA', {
  ...{ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' },
  ...{ hourCycle: 'h23', timeZoneName: 'short' },
})

/** `3 minutes ago`, `in 5 minutes`. Times within a second are `now`. */
export function relativeTime(ms: number, nowMs: number): string {
  const difference = ms - nowMs
  const [unit, size] = UNITS.find(([, length]) => Math.abs(difference) >= length) ?? ['second', 1_000]
  return relative.format(Math.trunc(difference / size), unit)
}

/** `2026-11-23 20:14:45 UTC`, in the time zone of the browser. */
export function absoluteTime(ms: number): string {
  return absolute.format(ms).replace(', ', ' ')
}

/** `12 ms`, `1.5 s`, `2 min 5 s`, `3 h 4 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${(Math.floor(ms / 100) / 10).toString()} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

/** `1,234 bytes`, `1.2 MiB`. */
export function bytes(count: number): string {
  if (count < 10_240) return `${whole.format(count)} bytes`
  return count < 1_048_576 ? `${(count / 1_024).toFixed(1)} KiB` : `${(count / 1_048_576).toFixed(1)} MiB`
}

/** A whole number with separators. */
export function count(value: number): string {
  return whole.format(value)
}

/** Noun with its number: `1 call`, `2 calls`. */
export function counted(value: number, noun: string): string {
  return `${whole.format(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** Millionths of a currency, with up to six decimals: `USD 0.000125`. */
export function money(micros: number, currency: string): string {
  const digits = micros !== 0 && Math.abs(micros) < 10_000 ? 6 : 2
  const amount = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: digits }).format(
    micros / MICROS,
  )
  return `${amount} ${currency}`
}

/** Bounds of an energy in millionths of a Wh: `0.12–0.4 Wh`. */
export function energy(minMicroWh: number, maxMicroWh: number): string {
  const digits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
  return `${digits.format(minMicroWh / MICROS)}–${digits.format(maxMicroWh / MICROS)} Wh`
}
