/** One header of a response; null when it is absent. */
export type HeaderReader = (name: string) => string | null

const SECONDS = /^[0-9]{1,9}$/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** The three forms of HTTP: that of RFC 5322, that of RFC 850, and that of `asctime`. */
const DATES = [
  /^[A-Z][a-z]{2}, (?<day>[0-9]{2}) (?<month>[A-Z][a-z]{2}) (?<year>[0-9]{4}) (?<time>[0-9:]{8}) GMT$/,
  /^[A-Z][a-z]{5,8}, (?<day>[0-9]{2})-(?<month>[A-Z][a-z]{2})-(?<year>[0-9]{2}) (?<time>[0-9:]{8}) GMT$/,
  /^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[0-9 ][0-9]) (?<time>[0-9:]{8}) (?<year>[0-9]{4})$/,
]
const TIME = /^([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)$/

/**
 * `Retry-After` in milliseconds (RFC 9110, section 10.2.3): seconds, or a date, which is compared with the server's `Date`, or with `now`
 * (milliseconds since the epoch) without one. Returns null for anything else.
 */
export function retryAfterIn(header: HeaderReader, now: number): number | null {
  const text = header('retry-after')?.trim() ?? ''
  if (SECONDS.test(text)) return Number(text) * 1000
  const until = httpDate(text)
  if (until === null) return null
  return Math.max(0, until - (httpDate(header('date')?.trim() ?? '') ?? now))
}

/** Milliseconds since the epoch; null if the text is not a date of HTTP. */
function httpDate(text: string): number | null {
  const {
    day = '',
    month = '',
    year = '',
    time = '',
  } = DATES.map((form) => form.exec(text)?.groups).find(Boolean) ?? {}
  const [, hour, minute, second] = TIME.exec(time) ?? []
  const monthIndex = MONTHS.indexOf(month)
  if (hour === undefined || monthIndex < 0 || Number(day) < 1 || Number(day) > 31) return null
  // RFC 9110, section 5.6.7: a year of two digits is the nearest one.
  const fullYear = year.length === 4 ? Number(year) : Number(year) + (Number(year) < 70 ? 2000 : 1900)
  return Date.UTC(fullYear, monthIndex, Number(day), Number(hour), Number(minute), Number(second))
}
