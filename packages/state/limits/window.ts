const MINUTE_MS = 60_000
const MINUTE = /^\d{1,12}$/
const SECONDS = /^(\d{1,12})\+(\d{1,9})$/
const MONTH = /^(\d{4})-(\d{2})$/
const DAY = /^(\d{4})-(\d{2})-(\d{2})$/

/** The window of `seconds` that holds `now` (milliseconds since the epoch): an epoch minute, or `<start>+<seconds>`. */
export function windowOf(now: number, seconds: number): string {
  const index = Math.floor(now / (seconds * 1000))
  // In one piece, unlike what a template makes: it stands in the records of calls, which JSON.stringify writes.
  return seconds === 60 ? String(index) : [index * seconds, seconds].join('+')
}

/**
 * When a window ends, in milliseconds since the epoch; null for `life`. Days and months are those of UTC.
 * Throws RangeError for a text that is no window.
 */
export function windowEnd(window: string): number | null {
  if (window === 'life') return null
  if (MINUTE.test(window)) return (Number(window) + 1) * MINUTE_MS
  const seconds = SECONDS.exec(window)
  if (seconds !== null) return (Number(seconds[1]) + Number(seconds[2])) * 1000
  const day = DAY.exec(window)
  if (day !== null) return Date.UTC(Number(day[1]), Number(day[2]) - 1, Number(day[3]) + 1)
  const month = MONTH.exec(window)
  if (month !== null) return Date.UTC(Number(month[1]), Number(month[2]), 1)
  throw new RangeError(`${JSON.stringify(window)} is no window: a day, a month, life, or a count of minutes or seconds`)
}
