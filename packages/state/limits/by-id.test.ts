import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ById, type Listed } from './by-id.ts'

class Entry implements Listed<Entry> {
  readonly id: string
  next: Entry | null = null

  constructor(id: string) {
    this.id = id
  }
}

/** Many ids with equal ends, which share one list. */
const id = fc.tuple(fc.nat(5), fc.constantFrom('', '/2', '-000000', '-000001')).map(([at, end]) => `${at}${end}`)

test('entries are found by id as in a map, however many share one list', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'get'), id), { minLength: 30, maxLength: 60 })
  fc.assert(
    fc.property(steps, (steps) => {
      const known = new Map<string, Entry>()
      const entries = new ById<Entry>()
      for (const [step, name] of steps) {
        const entry = known.get(name) ?? new Entry(name)
        assert.equal(entries.get(name), known.get(name) ?? null)
        if (step === 'delete') {
          entries.delete(entry)
          known.delete(name)
          assert.equal(entry.next, null, 'removed entries are released')
        } else if (step === 'add' && !known.has(name)) {
          entries.add(entry)
          known.set(name, entry)
        }
        assert.equal(entries.size, known.size)
        assert.deepEqual(new Set(entries.all()), new Set(known.values()))
      }
    }),
  )
})
