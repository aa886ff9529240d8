import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from '@plat/core'
import { DlpTally } from './dlp-tally.ts'

test('hits are counted by detector, direction and action, in the order of the first', () => {
  const tally = new DlpTally()
  for (const detector of ['iban', 'credit_card', 'iban']) tally.count(detector, 'arguments', 'redact')
  tally.count('iban', 'response', 'redact')
  tally.count('iban', 'arguments', 'audit')
  assert.deepEqual(tally.counts, [
    { action: 'redact', count: 2, detector: 'iban', direction: 'arguments' },
    { action: 'redact', count: 1, detector: 'credit_card', direction: 'arguments' },
    { action: 'redact', count: 1, detector: 'iban', direction: 'response' },
    { action: 'audit', count: 1, detector: 'iban', direction: 'arguments' },
  ])
})

test('a record names at most 32 detectors, and counts the hits of all others', () => {
  const tally = new DlpTally()
  for (let round = 0; round < 3; round++) {
    for (let at = 0; at < 1000; at++) tally.count(`own_${at}`, 'response', at % 2 === 0 ? 'redact' : 'audit')
  }
  const { counts } = tally
  assert.equal(counts.length, 34)
  assert.deepEqual(
    counts.filter(({ detector }) => detector === '*').map(({ action, count }) => [action, count]),
    [
      ['redact', 3 * 484],
      ['audit', 3 * 484],
    ],
  )
})

test('the counts are canonical as they are, so that the ledger need not sort them', () => {
  const tally = new DlpTally()
  tally.count('iban', 'response', 'deny')
  assert.equal(JSON.stringify(tally.counts), canonicalJson(tally.counts))
})
