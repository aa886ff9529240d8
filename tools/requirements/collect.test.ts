import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRows } from '../../test/conformance/requirements.ts'
import { belowFloor, citationFaults, citationsOf, countShown } from './collect.ts'

// Assembled here, so that these lines are not citations themselves.
const says = (ids: string) => `// ${'Sho' + 'ws'} ${ids}.`

const row = (key: string) => `| \`D1.mint.${key}\` | ${key} |`
const rows = readRows('D1', ['| Id | Requirement |', '|---|---|', row('a'), row('a.b'), row('c')].join('\n'))

function inTest(comment: string): string {
  return `import { test } from 'node:test'\ntest('x', () => {\n  ${comment}\n  f()\n})\n`
}

test('a test cites requirements in a comment of its body', () => {
  const cited = citationsOf('x.test.ts', inTest(says('D1.mint.a.b, D1.mint.c and D3.metric.plat_build_info')))
  assert.deepEqual(
    cited.map(({ id, line, testLine }) => [id, line, testLine]),
    [
      ['D1.mint.a.b', 3, 2],
      ['D1.mint.c', 3, 2],
      ['D3.metric.plat_build_info', 3, 2],
    ],
  )
})

test('a comment of several lines and a test inside a test count', () => {
  const block = `/* ${'Sho' + 'ws'} D1.mint.a,\n     D1.mint.c. */`
  assert.equal(citationsOf('x.test.ts', inTest(block)).filter(({ testLine }) => testLine !== null).length, 2)
  const lines = `${says('D1.mint.a')}\n  // D1.mint.c.`
  assert.equal(citationsOf('x.test.ts', inTest(lines)).filter(({ testLine }) => testLine !== null).length, 2)
  const nested = `describe('x', () => { it('y', async (t) => { await t.test('z', () => {\n${says('D1.mint.a')}\n}) }) })`
  assert.deepEqual(
    citationsOf('x.test.ts', nested).map(({ testLine }) => testLine),
    [1],
  )
})

test('a string or another comment is not a citation', () => {
  assert.deepEqual(citationsOf('x.test.ts', inTest("const a = 'D1.mint.a' // D1.mint.c is elsewhere")), [])
})

test('an unknown ID, an ID outside a test and a duplicate ID are problems', () => {
  const cited = [...citationsOf('x.test.ts', `${says('D1.mint.c')}\n${inTest(says('D1.mint.x'))}`)]
  const faults = citationFaults([...rows, ...rows.slice(0, 1)], cited)
  assert.equal(faults.length, 3)
  assert.match(faults[0] ?? '', /^D1\.mint\.a: duplicate/)
  assert.match(faults[1] ?? '', /^x\.test\.ts:1 D1\.mint\.c: cited outside a test/)
  assert.match(faults[2] ?? '', /^x\.test\.ts:4 D1\.mint\.x: no such requirement/)
})

test('rows are counted once however often they are cited, and a lower count than before is found', () => {
  const text = inTest(says('D1.mint.a D1.mint.a D1.mint.c'))
  const coverage = countShown(rows, [
    ...citationsOf('x.test.ts', text),
    ...citationsOf('x.test.ts', says('D1.mint.a.b')),
  ])
  assert.deepEqual(
    [coverage[0]?.covered, coverage[0]?.of, coverage[0]?.missing.map(({ id }) => id)],
    [2, 3, ['D1.mint.a.b']],
  )
  assert.deepEqual(belowFloor(coverage, { D1: 2, D2: 0, D3: 0 }), [])
  assert.match(belowFloor(coverage, { D1: 3, D2: 0, D3: 0 })[0] ?? '', /^D1: 2 shown, 3 before/)
})
