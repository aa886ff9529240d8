import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import fc from 'fast-check'
import { target } from './core.fuzz.ts'
import { slowAttack } from './regex-attack.ts'
import { fuzzTarget, near } from './target.ts'

const SECONDS = 0.05
const LONG_ENOUGH_SECONDS = 20

test('a target that keeps its promises reports cases and no failure', async () => {
  const fine = fuzzTarget('fine', { holds: fc.property(fc.nat(), () => true) })
  await until(async () => {
    const { cases, failures } = await fine.run(SECONDS, 1)
    assert.deepEqual(failures, [])
    return cases > 0
  }, 'a case')
})

test('a target whose time is over before its first case has found nothing', async () => {
  const broken = fuzzTarget('broken', { 'never holds': fc.property(fc.nat(), () => false) })
  assert.deepEqual(await broken.run(0, 1), { cases: 0, failures: [] })
})

test('a broken promise is reported with its smallest counterexample, the same for the same seed', async () => {
  const broken = fuzzTarget('broken', {
    'stays below a hundred': fc.property(fc.nat(), (n) => n < 100),
    'never rejects': fc.asyncProperty(fc.nat(), async (n) => assert.ok(n < 100)),
  })
  // Finding the smallest takes its time on a busy machine; the run ends as soon as both are found.
  const { failures = [] } = await broken.run(LONG_ENOUGH_SECONDS, 7)
  assert.equal(failures.length, 2)
  assert.match(failures[0] ?? '', /^stays below a hundred: \[100\]/)
  assert.match(failures[1] ?? '', /^never rejects: \[100\]/)
  assert.deepEqual((await broken.run(LONG_ENOUGH_SECONDS, 7)).failures, failures)
})

test('nearText generates whole samples, broken samples, and JSON with changes in nested values', () => {
  const texts = fc.sample(near(['{"a":{"b":[1,{"c":true}]}}']), { numRuns: 1000, seed: 1 })
  for (const part of [/^{"a":{"b":\[1,{"c":true}]}}$/, /\\/, /"__proto__":/, /^{"a":{"b":\[1,{"c":(?!true).*}]}}$/])
    assert.ok(
      texts.some((text) => part.test(text)),
      String(part),
    )
})

test('repetitions of one or several characters find expressions that are slower than linear', () => {
  // The prefix is repeated, the loop, several alternatives of the loop, and what comes between two loops.
  for (const pattern of ['\\$\\(([^)]*)\\)', '(?:ab)+$', '^(?:a|b|ab)+$', '^a(?:-+x?-+)$', '0+$', '<b>.*</b>'])
    assert.notEqual(slowAttack(pattern, ''), null, pattern)
  for (const pattern of ['\\$\\(([^)$]*)\\)', '^(?:ab)+$', '^[^,]*,', '(?<!0)0+$'])
    assert.equal(slowAttack(pattern, ''), null, pattern)
})

test("core's parsers keep their promises for a moment", async () => {
  assert.deepEqual((await target.run(0.5, 1)).failures, [])
})
