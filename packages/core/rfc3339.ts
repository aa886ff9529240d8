/** RFC 3339 in UTC with microseconds, `2026-01-01T00:00:00.000000Z`; `ms` since the Unix epoch may have a fraction. */
export function rfc3339Micros(ms: number): string {
  const whole = Math.floor(ms)
  const micros = Math.floor((ms - whole) * 1000)
  const text = new Date(whole).toISOString()
  return `${text.slice(0, -1)}${micros === 0 ? '000' : String(micros).padStart(3, '0')}Z`
}

/** RFC 3339 in UTC with whole seconds, `2026-01-01T00:00:00Z`; `ms` since the Unix epoch is rounded down. */
export function rfc3339(ms: number): string {
  return `${new Date(Math.floor(ms)).toISOString().slice(0, -5)}Z`
}
