import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Dice } from './dice.ts'
import { hammer } from './hammer.ts'
import { drawMalformed } from './malformed.ts'

/** `npm run long -- -only malformed` sends a million. */
const COUNT = 2000
const DRAWS = 500

test('the same seed draws the same requests', () => {
  const drawn = (seed: number) => {
    const dice = new Dice(seed)
    return Array.from({ length: DRAWS }, () => drawMalformed(dice, 'a.b.c').bytes.toString('hex'))
  }
  assert.deepEqual(drawn(7), drawn(7))
  assert.notDeepEqual(drawn(7), drawn(8))
  assert.ok(new Set(drawn(7)).size > DRAWS / 2)
})

test('malformed requests are refused as documented, reach no server, and the gateway lives on', async () => {
  const { sent, honest, statuses, faults } = await hammer({ count: COUNT, seed: 1 })
  assert.deepEqual(faults, [])
  assert.equal(sent, COUNT)
  assert.ok(honest > COUNT / 200)
  for (const status of [400, 401, 403, 404, 405, 413, 415, 431, 501]) assert.ok(statuses.has(status), String(status))
})
