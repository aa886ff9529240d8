import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileExpression } from '../cel.ts'

/** The argument that an expression lacks; null: none, or its error is another one. */
function missingIn(text: string, args: object): string | null {
  const expression = compileExpression(text, ['args'])
  assert.ok(typeof expression !== 'string', String(expression))
  let missing: string | null = null
  const mapOf = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? new Map(Object.entries(value).map(([name, one]) => [name, mapOf(one)]))
      : Array.isArray(value)
        ? value.map(mapOf)
        : value
  expression.test({ args: Object(mapOf(args)) }, undefined, {
    onMissing(argument) {
      missing = argument
    },
  })
  return missing
}

test('an expression names the argument that it reads and the call lacks', () => {
  assert.equal(missingIn('args.amount < 5.0', {}), 'amount')
  assert.equal(missingIn('args["amount"] < 5.0', {}), 'amount')
  assert.equal(missingIn('args.transfer.amount < 5.0', { transfer: {} }), 'transfer.amount')
  assert.equal(missingIn('args.transfer.amount < 5.0', { transfer: { amount: 1 } }), null)
  assert.equal(missingIn('args.currency == "EUR" && args.amount < 5.0', { currency: 'EUR' }), 'amount')
})

test('an error for another reason names no argument, and no name comes from a value', () => {
  assert.equal(missingIn('args.amount < 5', { amount: 'much' }), null)
  assert.equal(missingIn('has(args.note) ? args.note == "" : args.amount < 5', { amount: 'much' }), null)
  assert.equal(missingIn('args.list.all(one, one.id > 3)', { list: [{}] }), null)
  assert.equal(missingIn('args[args.key] == 1', { key: 'secret' }), null)
})
