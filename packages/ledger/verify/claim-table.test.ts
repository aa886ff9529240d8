import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Claim, ClaimTable } from './claim-table.ts'

const hex = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const claim: fc.Arbitrary<Claim> = fc.record(
  {
    ledgerId: fc.constantFrom('one', 'other'),
    size: fc.integer({ min: 1, max: 20 }),
    head: fc.option(hex),
    root: fc.option(hex),
    seq: fc.option(fc.nat()),
    signed: fc.boolean(),
    kind: fc.constantFrom('checkpoint', 'anchor', 'segment'),
    source: fc.option(fc.constant('the kept head')),
  },
  { noNullPrototype: true },
)

test('claims are returned as added, in order of the records that they bind', () => {
  fc.assert(
    fc.property(fc.array(claim, { maxLength: 30 }), (claims) => {
      const table = new ClaimTable()
      for (const one of claims) table.add(one)
      assert.deepEqual([...table.all()], claims)
      for (let size = 1; size <= 20; size++)
        assert.deepEqual(
          [...table.bySize(size)],
          claims.filter((one) => one.size === size),
        )
    }),
  )
})

test('a ledger may have more than a million checkpoints', () => {
  const table = new ClaimTable()
  const one = {
    ledgerId: 'one',
    head: null,
    root: 'ab'.repeat(32),
    signed: true,
    kind: 'checkpoint' as const,
    source: null,
  }
  for (let seq = 1; seq <= 1_100_000; seq++) table.add({ ...one, size: seq, seq })
  assert.deepEqual([...table.bySize(1_100_000)], [{ ...one, size: 1_100_000, seq: 1_100_000 }])
})
