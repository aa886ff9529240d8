import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whenAllReady, whenReady } from './when-ready.ts'

const sum = (value: number, a = 0, b = 0) => value + a + b

test('a plain value continues at once, a promise when it resolves', async () => {
  assert.equal(whenReady(1, sum), 1)
  assert.equal(whenReady(1, sum, 10, 100), 111)
  const waiting = whenReady(Promise.resolve(1), sum, 10)
  assert.ok(waiting instanceof Promise)
  assert.equal(await waiting, 11)
})

test('several values continue at once unless one of them is a promise', async () => {
  const join = (values: readonly string[]) => values.join('')
  assert.equal(whenAllReady(['a', 'b'], join), 'ab')
  assert.equal(whenAllReady([], join), '')
  assert.equal(await whenAllReady(['a', Promise.resolve('b')], join), 'ab')
})

test('errors of either are those of the caller', async () => {
  const fails = () => {
    throw new Error('next')
  }
  assert.throws(() => whenReady(1, fails), /next/)
  await assert.rejects(async () => whenReady(Promise.resolve(1), fails), /next/)
  await assert.rejects(async () => whenReady(Promise.reject(new Error('value')), sum), /value/)
})
