import assert from 'node:assert/strict'
import { test } from 'node:test'
import { der, derOid } from '@plat/testkit/authority'
import { DerError, oidOf, readDer, smallInteger } from './reader.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const refused = (text: string, reason: RegExp) =>
  assert.throws(
    () => readDer(hex(text)),
    (error) => error instanceof DerError && reason.test(error.message),
    text,
  )

test('one value has one encoding: every other one is refused', () => {
  assert.deepEqual([...readDer(hex('04 02 0102')).content], [1, 2])
  refused('', /cut short/)
  refused('04', /cut short/)
  refused('04 02 01', /cut short/)
  refused('04 02 0102 00', /bytes follow/)
  refused('04 81 02 0102', /shortest/)
  refused('04 82 0002 0102', /shortest/)
  refused('04 84 00000002 0102', /too large/)
  refused('1f 02 0102', /tags above 30/)
  refused('30 04 04 05 0102', /cut short/)
  refused('30 80 0000', /end mark/)
})

test('indefinite lengths are accepted only if enabled, and must end', () => {
  const read = (text: string) => readDer(hex(text), { indefinite: true })
  assert.equal(read('30 80 04 01 07 0000').children[0]?.content[0], 7)
  assert.throws(() => read('30 80 04 01 07 00'), DerError)
  assert.throws(() => read('30 80 04 01 07 0001'), DerError)
  assert.throws(() => read('04 80 04 01 07 0000'), DerError)
})

test('nesting and the number of values have an end', () => {
  let deep = der(0x30)
  for (let level = 0; level < 24; level++) deep = der(0x30, deep)
  assert.equal(readDer(deep).children.length, 1)
  assert.throws(() => readDer(der(0x30, deep)), /too deep/)
  assert.throws(() => readDer(der(0x30, Buffer.alloc(50_000))), /too many values/)
})

test('object identifiers and small integers are read as they were written', () => {
  for (const oid of ['1.2.840.113549.1.1.11', '2.5.29.15', '2.16.840.1.101.3.4.2.1', '1.3.6.1.4.1.3704.1.4']) {
    assert.equal(oidOf(readDer(derOid(oid))), oid)
  }
  assert.equal(oidOf(readDer(hex('06 03 883703'))), '2.999.3')
  assert.throws(() => oidOf(readDer(hex('06 02 2a86'))), DerError)
  assert.throws(() => oidOf(readDer(hex('06 00'))), DerError)
  assert.equal(smallInteger(readDer(hex('02 02 0100'))), 256)
  assert.throws(() => smallInteger(readDer(hex('02 01 ff'))), DerError)
})
