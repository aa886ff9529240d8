/** Cache of the last formatted second and its text without the zone: many records and tokens are written within one second. */
let lastSecond = Number.NaN
let lastText = ''

/** Formats whole seconds since the epoch as `2026-01-01T00:00:00`. */
function secondText(second: number): string {
  if (second !== lastSecond) {
    lastText = new Date(second * 1000).toISOString().slice(0, -5)
    lastSecond = second
  }
  return lastText
}

/** Formats milliseconds since the Unix epoch as RFC 3339 in UTC with microseconds, `2026-01-01T00:00:00.000000Z`; `ms` may have a fraction. */
export function rfc3339Micros(ms: number): string {
  const whole = Math.floor(ms)
  const second = Math.floor(whole / 1000)
  const micros = (whole - second * 1000) * 1000 + Math.floor((ms - whole) * 1000)
  return `${secondText(second)}.${String(micros).padStart(6, '0')}Z`
}

/** Formats milliseconds since the Unix epoch as RFC 3339 in UTC with whole seconds, `2026-01-01T00:00:00Z`, rounded down. */
export function rfc3339(ms: number): string {
  return `${secondText(Math.floor(ms / 1000))}Z`
}
