import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, parseDuration, parseQuantity, quantityToMicros } from '../index.ts'

test('durations are parsed as in Go', () => {
  const vectors: [string, number | null][] = [
    ...([
      ['15m', 900_000],
      ['1h30m', 5_400_000],
      ['250ms', 250],
      ['1.5s', 1500],
      ['.5s', 500],
    ] satisfies [string, number][]),
    ...([
      ['0', 0],
      ['+0', 0],
      ['-0', 0],
      ['-1.5h', -5_400_000],
      ['+3s', 3000],
      ['1us', 0.001],
    ] satisfies [string, number][]),
    ...([
      ['1µs', 0.001],
      ['1μs', 0.001],
      ['1m1m', 120_000],
      ['1.s', 1000],
    ] satisfies [string, number][]),
  ]
  for (const [text, ms] of vectors) assert.equal(parseDuration(text), ms, text)
  for (const bad of ['', '1', '15', 's', '.s', '1 m', '1d', '1M', '--1s', '1s-1s', '1e3s', '3000000h', ' 1s', '1s '])
    assert.equal(parseDuration(bad), null, bad)
  assert.equal(parseDuration('1s'.repeat(40)), null)
})

test('a duration is formatted in its shortest form', () => {
  const vectors: [number, string][] = [
    ...([
      [0, '0s'],
      [900_000, '15m'],
      [5_400_000, '1h30m'],
      [250, '250ms'],
      [1500, '1.5s'],
    ] satisfies [number, string][]),
    ...([
      [3_600_000, '1h'],
      [-61_000, '-1m1s'],
      [0.001, '1us'],
      [0.0005, '500ns'],
      [1.5, '1.5ms'],
    ] satisfies [number, string][]),
  ]
  for (const [ms, text] of vectors) assert.equal(formatDuration(ms), text)
})

test('a formatted duration parses to the same value', () => {
  fc.assert(fc.property(fc.integer(), (ms) => assert.equal(parseDuration(formatDuration(ms)), ms)))
})

const GIGA = 10n ** 9n

test('quantities are parsed with every suffix', () => {
  // Shows D2.quantity.string, D2.quantity.integer, D2.quantity.decimal, D2.quantity.binarySuffixes,
  // D2.quantity.decimalSuffixes, D2.quantity.exponent.
  const vectors: [string | number, bigint][] = [
    ...([
      ['1', GIGA],
      [5, 5n * GIGA],
      ['0.5', GIGA / 2n],
      ['100m', GIGA / 10n],
      ['1Ki', 1024n * GIGA],
    ] satisfies [string | number, bigint][]),
    ...([
      ['1.5Gi', 1610612736n * GIGA],
      ['2k', 2000n * GIGA],
      ['1E', GIGA ** 3n],
      ['1e3', 1000n * GIGA],
    ] satisfies [string | number, bigint][]),
    ...([
      ['1E-2', GIGA / 100n],
      ['3n', 3n],
      ['7u', 7000n],
      ['-1.5', -1500000000n],
      ['+.5', GIGA / 2n],
    ] satisfies [string | number, bigint][]),
    ...([
      ['1.', GIGA],
      ['0.1n', 1n],
      ['-0.1n', -1n],
      ['1e-30', 1n],
      ['0', 0n],
      [-3, -3n * GIGA],
    ] satisfies [string | number, bigint][]),
  ]
  for (const [text, nanos] of vectors) assert.equal(parseQuantity(text), nanos, String(text))
})

test('text that is not a quantity gives null', () => {
  const bad = [
    '',
    '.',
    '1 ',
    ' 1',
    '1K',
    '1ki',
    '1kk',
    'Ki',
    '1Kie3',
    '1e',
    '1e1.5',
    '0x1',
    'NaN',
    '--1',
    '1e999',
    '１',
  ]
  for (const value of [...bad, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, '9'.repeat(65)]) {
    assert.equal(parseQuantity(value), null, String(value))
    assert.equal(quantityToMicros(value), null, String(value))
  }
})

test('money is rounded down, never up', () => {
  assert.equal(quantityToMicros('1.0000019'), 1_000_001)
  assert.equal(quantityToMicros('0.9999999999999'), 999_999)
  assert.equal(quantityToMicros('-0.0000001'), -1)
  assert.equal(quantityToMicros('100m'), 100_000)
  assert.equal(quantityToMicros('1e12'), null)
  assert.equal(quantityToMicros(9_007_199_254), 9_007_199_254_000_000)
})

test('an exponent and a shifted decimal point are equivalent', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 0, max: 9 }), (digits, places) => {
      assert.equal(parseQuantity(`${digits}e-${places}`), BigInt(digits) * 10n ** BigInt(9 - places))
    }),
  )
})
