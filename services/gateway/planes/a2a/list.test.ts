import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import fc from 'fast-check'
import { ownTasks } from './list.ts'

const view = { owns: (task: string) => task === 'mine', sealPage: (token: string) => `sealed ${token}` }

/** The response with only the caller's tasks, as text. */
const own = (json: string) => {
  const bytes = ownTasks({ json: Buffer.from(json), value: JSON.parse(json) }, view)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

test('a list of tasks keeps the bytes of the tasks that the caller owns', () => {
  const json =
    '{ "jsonrpc":"2.0","id":1, "result" : { "tasks":[ {"id":"other"} , {"id":"mine","n":1.0e2}, {"id":"mine"},7 ],' +
    '"totalSize":4 , "pageSize":10.0, "nextPageToken":"p" } }'
  assert.equal(
    own(json),
    '{ "jsonrpc":"2.0","id":1, "result" : {"totalSize":2,"nextPageToken":"sealed p", "tasks":[ {"id":"mine","n":1.0e2}, {"id":"mine"} ],' +
      '"pageSize":10.0 } }',
  )
})

test('a list without tasks, and names that are escaped, are read like any other', () => {
  assert.equal(own('{"result":{}}'), '{"result":{"tasks":[],"totalSize":0,"nextPageToken":""}}')
  assert.equal(own('{"result":{"totalSize":3}}'), '{"result":{"tasks":[],"totalSize":0,"nextPageToken":""}}')
  const escaped = own('{"result":{"\\u0074asks":[{"id":"other"}],"total\\u0053ize":9,"\\u006eextPageToken":"p"}}')
  assert.deepEqual(JSON.parse(String(escaped)), { result: { tasks: [], totalSize: 0, nextPageToken: 'sealed p' } })
  for (const json of ['1', '{}', '{"result":[]}', '{"result":{"tasks":null}}']) assert.equal(own(json), null)
})

test('whatever a list of tasks contains, only the tasks of others, the total and the page token change', () => {
  const task = fc.oneof(fc.record({ id: fc.constantFrom('mine', 'other'), more: fc.jsonValue() }), fc.jsonValue())
  const result = fc.record(
    { tasks: fc.array(task), totalSize: fc.jsonValue(), nextPageToken: fc.jsonValue(), pageSize: fc.jsonValue() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(result, fc.constantFrom(undefined, 1), (content, space) => {
      const { tasks = [], nextPageToken, ...rest } = content
      const ofCaller = tasks.filter((each) => isObject(each) && each.id === 'mine')
      const token = typeof nextPageToken === 'string' && nextPageToken !== '' ? `sealed ${nextPageToken}` : ''
      const expected = { ...rest, tasks: ofCaller, totalSize: ofCaller.length, nextPageToken: token }
      const json = own(JSON.stringify({ id: 1, result: content }, null, space))
      assert.deepEqual(JSON.parse(String(json)), JSON.parse(JSON.stringify({ id: 1, result: expected })))
    }),
  )
})
