import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { appendAnchor, appendCheckpoint, fillLedger } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import fc from 'fast-check'
import { logFault, readAnchor } from './anchor.ts'

test('any modified anchor record is refused with a message or keeps its meaning', async () => {
  const log = ephemeralSigner()
  const path = join(tempFolder(), 'audit.jsonl')
  await fillLedger(path, 5)
  await appendCheckpoint(path, ephemeralSigner())
  const text = JSON.stringify(await appendAnchor(path, log))
  const whole = readAnchor(JSON.parse(text))
  assert.ok(typeof whole !== 'string' && logFault(whole, [log.publicKey]) === null)
  assert.match(logFault(whole, [ephemeralSigner().publicKey]) ?? '', /not signed/)
  const change = fc.record({ at: fc.nat(text.length), cut: fc.nat(40), bytes: fc.string({ maxLength: 8 }) })
  const property = fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
    const changed = changes.reduce((was, { at, cut, bytes }) => was.slice(0, at) + bytes + was.slice(at + cut), text)
    const anchor = readAnchor(membersOf(changed))
    if (typeof anchor === 'string' || logFault(anchor, [log.publicKey]) !== null) return
    assert.deepEqual([anchor.covers.root, anchor.covers.size], [whole.covers.root, whole.covers.size])
  })
  fc.assert(property, { numRuns: 300 })
})

function membersOf(text: string): Record<string, unknown> {
  try {
    return { ...Object(JSON.parse(text)) }
  } catch {
    return {}
  }
}
