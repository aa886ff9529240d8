import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTenants } from './tenants-file.ts'

function problemsOf(file: unknown): readonly string[] {
  try {
    readTenants(Buffer.from(typeof file === 'string' ? file : JSON.stringify(file)), 'f')
    return []
  } catch (error) {
    assert.ok(error instanceof Error)
    return error.message.split('\n').map((line) => line.replace('-tenants-file: f: ', ''))
  }
}

test('each namespace belongs to the tenant that names it', () => {
  const tenants = [
    { name: 'red', namespaces: ['a', 'b'] },
    { name: 'blue', namespaces: [] },
  ]
  const read = readTenants(Buffer.from(JSON.stringify({ tenants })), 'f')
  assert.deepEqual([...read.names], ['red', 'blue'])
  assert.deepEqual(
    [...read.byNamespace],
    [
      ['a', 'red'],
      ['b', 'red'],
    ],
  )
})

test('every problem of the file is reported with its place', () => {
  const bad = [
    { name: 'red', namespaces: ['a', 'a'], extra: 1 },
    { name: 'red', namespaces: ['b/c', 1] },
    { name: '../x', namespaces: [] },
    { name: 'blue', namespace: ['d'] },
    'green',
  ]
  assert.deepEqual(problemsOf({ tenants: bad }), [
    'tenants[0].extra: unknown key',
    'tenants[0].namespaces: "a" is in a tenant already',
    'tenants[1].name: "red"is listed twice',
    'tenants[1].namespaces: an entry is not a namespace',
    'tenants[1].namespaces: an entry is not a namespace',
    'tenants[2].name: must be lower-case letters, digits and "-", at most 63',
    'tenants[3].namespace: unknown key; did you mean "namespaces"?',
    'tenants[3].namespaces: must be a list',
    'tenants[4]: must be an object',
  ])
})

test('a file that is not a list of tenants, or has too many, is refused as a whole', () => {
  for (const file of ['', '[]', '{"tenants": {}}', '{"tenants": [], "tenants": []}']) {
    assert.equal(problemsOf(file).length, 1, file)
  }
  const tenants = Array.from({ length: 257 }, (_, i) => ({ name: `t${i}`, namespaces: [] }))
  assert.deepEqual(problemsOf({ tenants }), ['tenants: more than 256'])
  assert.deepEqual(problemsOf({ tenants: tenants.slice(1) }), [])
})
