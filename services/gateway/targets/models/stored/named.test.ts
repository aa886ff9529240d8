import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDenial } from '../../../call/index.ts'
import { testCall } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { MAX_NAMES, namedIn } from './named.ts'

/** Returns what a body names in a route with these accounts, whose owner is the caller, and how many owners were looked up. */
function named(value: object, accounts: readonly string[] = ['a']) {
  let lookups = 0
  const owners = {
    owns: () => {
      lookups++
      return true
    },
    labelsOf: (account: string, id: string) => [`${account} ${id}`],
  }
  const body = { bytes: new Uint8Array(0), value, args: null }
  const call = testCall({ identity: testIdentity }, { body, method: 'responses' })
  const result = namedIn(call, { endpoints: accounts.map((account) => ({ account })) }, owners)
  return { result, lookups: () => lookups }
}

const items = (count: number, id: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => ({ type: 'item_reference', id: id(at) }))

test('content that is named many times is looked up once in each account', () => {
  const input = [...items(50_000, () => 'msg_1'), { type: 'input_file', file_ids: Array(50_000).fill('msg_1') }]
  const { result, lookups } = named({ input }, ['a', 'b', 'a'])
  assert.deepEqual(result, { accounts: new Set(['a', 'b']), labels: ['a msg_1', 'b msg_1'] })
  assert.equal(lookups(), 2)
})

test('a request names at most so many pieces of stored content, and is refused before any is looked up', () => {
  const most = named({ input: items(MAX_NAMES, String) })
  assert.ok(!isDenial(most.result))
  assert.equal(most.lookups(), MAX_NAMES)
  const bodies = [
    ['input', { input: items(MAX_NAMES + 1, String) }],
    ['file_ids', { file_ids: Array.from({ length: MAX_NAMES + 1 }, (_, at) => `f${at}`) }],
    ['input', { file_ids: Array.from({ length: MAX_NAMES }, (_, at) => `f${at}`), input: items(1, String) }],
  ] as const
  for (const [param, body] of bodies) {
    const { result, lookups } = named(body)
    assert.ok(isDenial(result))
    assert.deepEqual([result.code, result.data], ['invalid_request', { param }])
    assert.match(result.reason, new RegExp(`^${param} names more content at the provider than the ${MAX_NAMES} pieces`))
    assert.equal(lookups(), 0)
  }
})
