import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeTenants } from './tenants-file.ts'

function problemsOf(file: unknown): readonly string[] {
  const decoded = decodeTenants(Buffer.from(typeof file === 'string' ? file : JSON.stringify(file)))
  return 'problems' in decoded ? decoded.problems : []
}

test('each namespace belongs to the tenant that names it', () => {
  const tenants = [
    { name: 'red', namespaces: ['a', 'b'] },
    { name: 'blue', namespaces: [] },
  ]
  const read = decodeTenants(Buffer.from(JSON.stringify({ tenants })))
  assert.ok(!('problems' in read))
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
    'tenants[1].name: "red" is listed twice',
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

test('a name is one spelling of one folder: no other case, no path, no Unicode', () => {
  for (const name of [
    'Red',
    '..',
    '.',
    'a/b',
    'a\\b',
    'ré',
    're\u0301',
    'ｒed',
    '',
    'a\n',
    '-a',
    'a-',
    'a'.repeat(64),
    'con.x',
    ' a',
  ])
    assert.deepEqual(
      problemsOf({ tenants: [{ name, namespaces: [] }] }),
      ['tenants[0].name: must be lower-case letters, digits and "-", at most 63'],
      name,
    )
  for (const name of ['r', 'red', 'red-1', '0', 'a'.repeat(63)])
    assert.deepEqual(problemsOf({ tenants: [{ name, namespaces: [] }] }), [], name)
})
