import { test } from 'node:test'
import { attackTests } from './attack-tests.ts'
import { assertTest } from './test-places.ts'

test('every attack that once had an effect has its test', () => {
  for (const [attack, place] of Object.entries(attackTests)) assertTest(attack, place)
})
