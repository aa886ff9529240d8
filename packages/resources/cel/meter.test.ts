import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileExpression } from '../cel.ts'

function evaluate(text: string, args: ReadonlyMap<string, unknown>) {
  const expression = compileExpression(text, ['args', 'other'])
  if (typeof expression === 'string') return assert.fail(expression)
  return expression.test({ args: JSON.parse(JSON.stringify(Object.fromEntries(args))), other: null })
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)
const text = (count: number) => 'a'.repeat(count)

test('an expression over ordinary arguments is far below its budget', () => {
  const args = new Map<string, unknown>([
    ['items', numbers(1000)],
    ['text', text(10_000)],
    ['part', 'b'],
  ])
  for (const expression of [
    'args.items.all(x, x >= 0.0)',
    'args.items.map(x, x + 1.0).filter(x, x > 3.0).size() == 997',
    'args.text.contains("a") && args.text.startsWith("aa") && !args.text.matches("b+")',
    '999.0 in args.items && args.items == args.items && size(args.text) == 10000',
  ])
    assert.equal(evaluate(expression, args), true, expression)
})

test('an expensive evaluation ends with its budget', () => {
  const big = new Map<string, unknown>([
    ['items', numbers(200_000)],
    ['texts', Array.from({ length: 2000 }, () => text(2000))],
    ['text', text(1_000_000)],
    ['part', `b${text(500_000)}`],
    ['digits', '1'.repeat(1_000_000)],
    ['table', Object.fromEntries(numbers(5000).map((at) => [at, at]))],
  ])
  for (const expression of [
    'args.items.all(x, true)',
    'args.items.exists(x, x.y.z == 1)',
    '[1, 2, 3].all(x, args.items.all(y, true))',
    'args.texts.all(x, x.matches("(a|aa)+b") == false)',
    'args.texts.all(x, args.part != x && args.texts == args.texts)',
    'args.text.contains(args.part)',
    'args.text.matches(args.part)',
    'int(args.digits) > 0',
    'args.items.all(x, args.table[x] == 1)',
    'size(args.text) + size(args.text) > 0',
    'args.items.map(x, x).map(x, x).size() > 0',
  ])
    assert.equal(evaluate(expression, big), 'budget', expression)
})

test('an evaluation that exceeded its budget does not affect the next one', () => {
  assert.equal(evaluate('args.items.all(x, true)', new Map([['items', numbers(200_000)]])), 'budget')
  assert.equal(evaluate('args.items.all(x, true)', new Map([['items', numbers(3)]])), true)
})

test('a comprehension over all arguments inside another one is refused at compilation', () => {
  for (const nested of ['args.a.all(x, args.b.exists(y, x == y))', 'args.a.all(x, [1].all(z, args[x].all(y, true)))'])
    assert.match(String(compileExpression(nested, ['args'])), /goes through args again for each element of args/)
  assert.match(
    String(compileExpression('args.a.exists(a, meta.b.exists(b, a == b))', ['args', 'meta'])),
    /goes through meta again for each element of args/,
  )
  const linear = 'args.a.all(x, x.tags.all(y, y != "")) && args.b.all(x, true)'
  assert.equal(typeof compileExpression(linear, ['args']), 'object')
})

test('lists appended to from the same beginning are independent', () => {
  const args = new Map([['a', numbers(3)]])
  assert.equal(evaluate('[args.a + [1.0], args.a + [2.0]] == [[0.0,1.0,2.0,1.0], [0.0,1.0,2.0,2.0]]', args), true)
  assert.equal(evaluate('args.a.filter(x, x > 0.0) + [7.0] == [1.0, 2.0, 7.0]', args), true)
})
