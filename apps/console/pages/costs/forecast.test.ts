import assert from 'node:assert/strict'
import { test } from 'node:test'
import { elapsedShare } from './forecast.ts'

const at = (text: string) => Date.parse(text)

test('the share of a day and of a month that has passed is known, of a session never', () => {
  assert.equal(elapsedShare('day', at('2026-03-02T00:00:00Z'), at('2026-03-01T12:00:00Z')), 0.5)
  assert.equal(elapsedShare('month', at('2026-03-01T00:00:00Z'), at('2026-02-15T00:00:00Z')), 0.5)
  assert.equal(elapsedShare('day', at('2026-03-02T00:00:00Z'), at('2026-03-05T00:00:00Z')), 1)
  assert.equal(elapsedShare('session', at('2026-03-02T00:00:00Z'), at('2026-03-01T12:00:00Z')), null)
})

test('the first minutes of a window are no base for a forecast', () => {
  assert.equal(elapsedShare('day', at('2026-03-02T00:00:00Z'), at('2026-03-01T00:05:00Z')), null)
})
