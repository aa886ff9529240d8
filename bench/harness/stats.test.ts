import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CpuSamples } from './load.ts'
import { row } from './report.ts'
import { median, quartiles, slope } from './stats.ts'

test('quartiles and median of unsorted values', () => {
  assert.deepEqual(quartiles([5, 1, 4, 2, 3]), [2, 3, 4])
  assert.equal(median([9]), 9)
  assert.ok(Number.isNaN(median([])))
})

test('the slope of a line is found, and nothing grows in one point', () => {
  assert.equal(
    slope([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
    2,
  )
  assert.equal(slope([[4, 4]]), 0)
})

test('a target is met up to its limit and not beyond', () => {
  const figure = { what: 'x', unit: '', detail: '' }
  assert.equal(row({ ...figure, value: 2, target: ['≤', 2] }).met, true)
  assert.equal(row({ ...figure, value: 2.01, target: ['≤', 2] }).met, false)
  assert.equal(row({ ...figure, value: 0.7, target: ['≥', 0.7] }).met, true)
  assert.equal(row({ ...figure, value: 0.69, target: ['≥', 0.7] }).met, false)
  assert.equal(row({ ...figure, value: Number.NaN, target: ['≥', 0] }).met, false)
  assert.equal(row({ ...figure, value: 1 }).met, null)
})

test('ratios of CPU and rate compare rounds that ran one after the other', () => {
  const samples = new CpuSamples<'this' | 'other'>(
    new Map([
      ['this', [10, 200, 33].map((micros) => ({ micros, rate: 3000 / micros }))],
      ['other', [10, 100, 30].map((micros) => ({ micros, rate: 3000 / micros }))],
    ]),
  )
  assert.equal(samples.micros('this'), 33)
  assert.equal(samples.over('this', 'other'), 1.1)
  assert.equal(samples.rateOver('other', 'this').toFixed(3), '1.100')
})
