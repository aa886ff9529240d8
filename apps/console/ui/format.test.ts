import assert from 'node:assert/strict'
import { test } from 'node:test'
import { absoluteTime, bytes, counted, duration, money, relativeTime } from './format.ts'

test('times are relative in their largest whole unit, and absolute with their zone', () => {
  const at = Date.UTC(2026, 0, 2, 3, 4, 5)
  assert.equal(relativeTime(at, at), 'now')
  assert.equal(relativeTime(at - 59_999, at), '59 seconds ago')
  assert.equal(relativeTime(at - 3 * 3_600_000, at), '3 hours ago')
  assert.equal(relativeTime(at + 5 * 60_000, at), 'in 5 minutes')
  assert.match(absoluteTime(at), /^2026-01-0[123] \d\d:\d4:05 \S+/)
})

test('numbers have units', () => {
  assert.deepEqual(
    [duration(999.6), duration(1_550), duration(125_000), duration(11_040_000)],
    ['1000 ms', '1.5 s', '2 min 5 s', '3 h 4 min'],
  )
  assert.deepEqual([bytes(9), bytes(20_480), bytes(3 << 20)], ['9 bytes', '20.0 KiB', '3.0 MiB'])
  assert.deepEqual(
    [money(125, 'USD'), money(2_500_000, 'EUR'), money(0, 'USD')],
    ['0.000125 USD', '2.50 EUR', '0.00 USD'],
  )
  assert.deepEqual([counted(1, 'call'), counted(1_234, 'call')], ['1 call', '1,234 calls'])
})
