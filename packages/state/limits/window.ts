/** How long a counter is kept after the end of its window, in milliseconds: clocks differ, and calls of the window settle later. */
export const WINDOW_GRACE_MS = 10 * 60_000

const MINUTE_MS = 60_000
const MINUTE = /^\d{1,12}$/
const SECONDS = /^(\d{1,12})\+(\d{1,9})$/
const MONTH = /^\d{4}-\d{2}$/
const DAY = /^\d{4}-\d{2}-\d{2}$/

/** Returns the window of `seconds` that contains `now` (milliseconds since the epoch): an epoch minute, or `<start>+<seconds>`. */
export function windowOf(now: number, seconds: number): string {
  const index = Math.floor(now / (seconds * 1000))
  // A flat string, unlike the result of a template: JSON.stringify writes it in the records of calls.
  return seconds === 60 ? String(index) : [index * seconds, seconds].join('+')
}

/**
 * Returns when a window ends, in milliseconds since the epoch; null for `life`. Days and months are those of `zone` (IANA), across clock changes.
 * Throws RangeError on an invalid window.
 */
export function windowEnd(window: string, zone = 'UTC'): number | null {
  if (window === 'life') return null
  if (MINUTE.test(window)) return (Number(window) + 1) * MINUTE_MS
  const seconds = SECONDS.exec(window)
  if (seconds !== null) return (Number(seconds[1]) + Number(seconds[2])) * 1000
  if (DAY.test(window)) return startOf(Temporal.PlainDate.from(window).add({ days: 1 }), zone)
  if (MONTH.test(window)) return startOf(Temporal.PlainDate.from(`${window}-01`).add({ months: 1 }), zone)
  throw new RangeError(
    `${JSON.stringify(window)} is not a window: a day, a month, life, or a count of minutes or seconds`,
  )
}

/** Days and months of one zone, as windows. The last day is cached: most calls are on the same one. */
export class WindowCalendar {
  /** IANA. */
  readonly zone: string
  #day = ''
  #month = ''
  #start = Number.POSITIVE_INFINITY
  #end = Number.NEGATIVE_INFINITY

  constructor(zone: string) {
    this.zone = zone
  }

  /** Returns the day of `now` (milliseconds since the epoch): `2026-11-20`. */
  day(now: number): string {
    this.#turnTo(now)
    return this.#day
  }

  /** `2026-11`. */
  month(now: number): string {
    this.#turnTo(now)
    return this.#month
  }

  #turnTo(now: number): void {
    if (now >= this.#start && now < this.#end) return
    const day = Temporal.Instant.fromEpochMilliseconds(Math.floor(now)).toZonedDateTimeISO(this.zone).toPlainDate()
    this.#day = day.toString()
    this.#month = this.#day.slice(0, 'YYYY-MM'.length)
    this.#start = startOf(day, this.zone)
    this.#end = startOf(day.add({ days: 1 }), this.zone)
  }
}

/** Returns the first instant of a day in a zone, also when a clock change skips midnight. */
function startOf(day: Temporal.PlainDate, zone: string): number {
  return day.toZonedDateTime(zone).epochMilliseconds
}
