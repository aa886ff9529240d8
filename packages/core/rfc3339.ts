/** The second that was written last, in seconds since the epoch, and its text up to the point: records come by the thousand in one. */
let second = Number.NaN
let upToPoint = ''

/** RFC 3339 in UTC with microseconds, `2026-01-01T00:00:00.000000Z`; `ms` since the Unix epoch may have a fraction. */
export function rfc3339Micros(ms: number): string {
  const whole = Math.floor(ms)
  const seconds = Math.floor(whole / 1000)
  if (seconds !== second) {
    upToPoint = new Date(seconds * 1000).toISOString().slice(0, -4)
    second = seconds
  }
  const micros = (whole - seconds * 1000) * 1000 + Math.floor((ms - whole) * 1000)
  return `${upToPoint}${String(micros).padStart(6, '0')}Z`
}

/** RFC 3339 in UTC with whole seconds, `2026-01-01T00:00:00Z`; `ms` since the Unix epoch is rounded down. */
export function rfc3339(ms: number): string {
  const second = Math.floor(ms / 1000)
  // What a service says of its tokens falls into few seconds: the text of the last one is kept.
  if (second !== lastSecond) {
    lastText = `${new Date(second * 1000).toISOString().slice(0, -5)}Z`
    lastSecond = second
  }
  return lastText
}
