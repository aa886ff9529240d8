import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WindowCalendar, windowEnd } from './window.ts'

const HOUR = 3_600_000

/** Length of a day in its zone, in hours. */
function hoursOf(day: string, zone: string): number {
  const start = Temporal.PlainDate.from(day).toZonedDateTime(zone).epochMilliseconds
  return ((windowEnd(day, zone) ?? 0) - start) / HOUR
}

test('a day lasts 23 or 25 hours when clocks change, also when midnight is skipped', () => {
  // Shows D3.cost.budgetTimezone.
  assert.equal(hoursOf('2026-03-28', 'Europe/Berlin'), 24)
  assert.equal(hoursOf('2026-03-29', 'Europe/Berlin'), 23)
  assert.equal(hoursOf('2026-10-25', 'Europe/Berlin'), 25)
  assert.equal(hoursOf('2026-11-01', 'America/New_York'), 25)
  assert.equal(hoursOf('2026-04-05', 'Australia/Lord_Howe'), 24.5)
  // Clocks changed from 0:00 to 1:00: that day has no midnight.
  assert.equal(hoursOf('2018-11-04', 'America/Sao_Paulo'), 23)
  assert.equal(windowEnd('2018-11-03', 'America/Sao_Paulo'), Date.UTC(2018, 10, 4, 3))
})

test('a month ends with its last day, in its zone', () => {
  assert.equal(windowEnd('2026-02', 'Europe/Berlin'), Date.UTC(2026, 1, 28, 23))
  assert.equal(windowEnd('2028-02', 'UTC'), Date.UTC(2028, 2, 1))
  assert.equal(windowEnd('2026-12', 'Asia/Tokyo'), Date.UTC(2026, 11, 31, 15))
  assert.equal(windowEnd('2026-03', 'Europe/Berlin'), Date.UTC(2026, 2, 31, 22))
  assert.throws(() => windowEnd('2026-13'), RangeError)
  assert.throws(() => windowEnd('2026-02-30'), RangeError)
})

test('a repeated hour belongs to one day, and no instant to two', () => {
  const berlin = new WindowCalendar('Europe/Berlin')
  const at = (hour: number) => berlin.day(Date.UTC(2026, 9, 24, hour))
  const days = Array.from({ length: 52 }, (_, hour) => at(hour))
  assert.equal(days.filter((day) => day === '2026-10-25').length, 25)
  assert.equal(berlin.month(Date.UTC(2026, 9, 31, 22, 59)), '2026-10')
  assert.equal(berlin.month(Date.UTC(2026, 9, 31, 23)), '2026-11')
  // Backwards as well: the cached day applies only to itself.
  assert.equal(at(0), '2026-10-24')
})

test('in every zone, an instant is before the end of its day and month, and after the end of the previous ones', () => {
  const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia', 'America/Havana']
  const instants = fc.integer({ min: Date.UTC(2010, 0, 1), max: Date.UTC(2037, 0, 1) })
  fc.assert(
    fc.property(fc.constantFrom(...zones), instants, (zone, now) => {
      const calendar = new WindowCalendar(zone)
      for (const window of [calendar.day(now), calendar.month(now)]) {
        const end = windowEnd(window, zone) ?? 0
        assert.ok(now < end)
        assert.notEqual(window.length === 7 ? calendar.month(end) : calendar.day(end), window)
      }
      const before = Temporal.PlainDate.from(calendar.day(now)).subtract({ days: 1 }).toString()
      assert.ok(now >= (windowEnd(before, zone) ?? Number.POSITIVE_INFINITY))
    }),
  )
})
