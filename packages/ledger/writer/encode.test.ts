import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from '@plat/core'
import fc from 'fast-check'
import type { Rec } from '../types.ts'
import { encodeRecord, MAX_STRING_BYTES, RecordError } from './encode.ts'

const stamp = { at: '2026-01-01T00:00:00.000000Z', tenant: '', replica: 'r1' }

/** A record with these members. */
const rec = (members: object): Rec => ({ kind: 'intent', ...members })

test('a record is canonical JSON (RFC 8785), for any members in any order', () => {
  const names = fc.constantFrom(
    'agent',
    'argsBytes',
    'call',
    'code',
    'currency',
    'dlp',
    'endpoint',
    'engines',
    'facts',
    'ms',
    'op',
    'usage',
    'user',
    'zz',
    'a',
    'Tool',
    'ключ',
  )
  const text = fc.string({ maxLength: 40, unit: 'grapheme' })
  const leaf = fc.oneof(text, fc.maxSafeInteger(), fc.boolean())
  const value = fc.oneof(
    leaf,
    fc.array(leaf, { maxLength: 3 }),
    fc.dictionary(text, leaf, { maxKeys: 3, noNullPrototype: true }),
  )
  const members = fc.dictionary(names, value, { noNullPrototype: true })
  fc.assert(
    fc.property(members, fc.constantFrom('intent', 'outcome'), (some, kind) => {
      // `-0` is 0 in canonical JSON and in the ledger.
      const record = rec({ kind, ...some })
      assert.equal(encodeRecord(record, stamp), canonicalJson({ ...record, ...stamp }))
    }),
  )
})

test('absent members are omitted, and only the ledger sets at, tenant and replica', () => {
  const text = encodeRecord(rec({ rule: undefined, at: 'forged', tenant: 'forged', tool: 't' }), stamp)
  assert.deepEqual(JSON.parse(text), { ...stamp, kind: 'intent', tool: 't' })
})

test('a long string is cut at a code point to at most 1,024 bytes and marked', () => {
  for (const unit of ['x', 'é', '€', '😀']) {
    const { reason } = JSON.parse(encodeRecord(rec({ reason: unit.repeat(2000) }), stamp))
    const bytes = Buffer.byteLength(reason)
    assert.ok(bytes <= MAX_STRING_BYTES && bytes > MAX_STRING_BYTES - 8, `${bytes} bytes of ${unit}`)
    assert.match(reason, /^(.)\1*…$/u)
  }
  const whole = 'x'.repeat(MAX_STRING_BYTES)
  assert.equal(JSON.parse(encodeRecord(rec({ reason: whole }), stamp)).reason, whole)
})

test('a lone surrogate of a caller does not fail a record', () => {
  assert.equal(JSON.parse(encodeRecord(rec({ tool: 'a\ud800b' }), stamp)).tool, 'a\ufffdb')
  const { facts } = JSON.parse(encodeRecord(rec({ facts: { 'k\udfff': ['v\udbff'] } }), stamp))
  assert.deepEqual(facts, { 'k\ufffd': ['v\ufffd'] })
})

test('a backslash of a caller is not mistaken for a lone surrogate', () => {
  for (const tool of ['\\ud800', '\\', '\u{1f600}\\ud']) {
    assert.equal(encodeRecord(rec({ tool }), stamp), canonicalJson({ ...rec({ tool }), ...stamp }))
  }
})

test('a value without an exact form is refused by name', () => {
  for (const ms of [1.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY]) {
    assert.throws(
      () => encodeRecord(rec({ facts: { ms } }), stamp),
      (error) => error instanceof RecordError && error.message.startsWith('facts.ms: '),
    )
  }
  assert.throws(() => encodeRecord(rec({ user: null }), stamp), /user: null; leave the member out/)
  assert.throws(() => encodeRecord(rec({ attempts: Array(400).fill('x'.repeat(1000)) }), stamp), /larger than/)
})
