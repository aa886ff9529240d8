import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubernetesApiError } from '@plat/kubernetes'
import { ReferencedObjects } from './referenced.ts'

const never = new AbortController().signal

/** An API server with Secrets by `<namespace>/<name>`. */
function setUp() {
  const secrets = new Map<string, Record<string, string>>()
  const requested: string[] = []
  const failing = new Set<string>()
  const ask = async ({ path }: { readonly path: string }) => {
    const [, namespace, name] = /^\/api\/v1\/namespaces\/([^/]+)\/secrets\/([^/]+)$/.exec(path) ?? []
    const object = `${namespace}/${name}`
    requested.push(object)
    if (failing.has(object)) throw new KubernetesApiError('internal error', 500)
    const texts = secrets.get(object)
    if (texts === undefined) throw new KubernetesApiError('not found', 404)
    const coded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')])
    return { status: 200, body: { data: Object.fromEntries(coded) } }
  }
  const objects = new ReferencedObjects({ api: { ask }, plural: 'secrets' })
  const requests = () => requested.splice(0)
  return { secrets, failing, objects, requests }
}

const namesOf = (namespace: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${namespace}/s${String(at).padStart(4, '0')}`)
const keysOf = (names: readonly string[]) => names.map((name) => `${name}/token`)

test('an object is read once for all its keys, and again by a refresh, which reports what has changed', async () => {
  const { secrets, objects, requests } = setUp()
  secrets.set('team/keys', { a: '1', b: '2', c: '3' })
  const keys = ['team/keys/a', 'team/keys/b', 'team/gone/a']
  const { texts, withheld } = await objects.read(keys, never)
  assert.deepEqual(
    [[...texts], withheld.size],
    [
      [
        ['team/keys/a', '1'],
        ['team/keys/b', '2'],
      ],
      0,
    ],
  )
  assert.deepEqual(requests(), ['team/keys', 'team/gone'])
  await objects.read(keys, never)
  assert.deepEqual(requests(), [])
  assert.deepEqual(await objects.refresh(never), { hasChanged: false, errors: [] })
  secrets.set('team/keys', { a: '1', b: 'new' })
  secrets.set('team/gone', { a: '4' })
  assert.equal((await objects.refresh(never)).hasChanged, true)
  requests()
  assert.deepEqual([...(await objects.read(keys, never)).texts.values()], ['1', 'new', '4'])
  // A key that was not looked for, and an object that is wanted no more and then again.
  assert.deepEqual([...(await objects.read(['team/keys/c'], never)).texts], [])
  assert.deepEqual(requests(), ['team/keys'])
  await objects.read(keys, never)
  assert.deepEqual(requests(), ['team/keys', 'team/gone'])
})

test('everything is read at first; later a namespace with many new names takes several turns, and others one', async () => {
  const { secrets, objects, requests } = setUp()
  const old = namesOf('old', 250)
  const greedy = namesOf('greedy', 250)
  for (const name of [...old, ...greedy, 'team/keys']) secrets.set(name, { token: name })
  assert.equal((await objects.read(keysOf(old), never)).isComplete, true)
  assert.equal(requests().length, 250)
  const all = keysOf([...old, ...greedy, 'team/keys'])
  const first = await objects.read(all, never)
  assert.deepEqual([first.isComplete, first.texts.get('team/keys/token')], [false, 'team/keys'])
  assert.deepEqual(requests().length, 101)
  assert.equal(first.withheld.get('greedy/s0249/token'), 'is not read yet')
  await objects.read(all, never)
  const third = await objects.read(all, never)
  assert.deepEqual([third.isComplete, third.withheld.size, third.texts.size], [true, 0, 501])
})

test('a refresh reads a share of each namespace, and in turn every object', async () => {
  const { secrets, objects, requests } = setUp()
  const greedy = namesOf('greedy', 250)
  for (const name of [...greedy, 'team/keys']) secrets.set(name, { token: name })
  await objects.read(keysOf([...greedy, 'team/keys']), never)
  requests()
  const seen = new Map<string, number>()
  for (let turn = 0; turn < 3; turn++) {
    await objects.refresh(never)
    const requested = requests()
    assert.equal(requested.length, 101)
    for (const name of requested) seen.set(name, (seen.get(name) ?? 0) + 1)
  }
  assert.deepEqual([seen.size, seen.get('team/keys')], [251, 3])
})

test('no namespace has more kept than the outputs could hold, and says so of the rest', async () => {
  const { secrets, objects } = setUp()
  const large = 'x'.repeat(600 * 1024)
  for (const name of ['greedy/a', 'greedy/b', 'team/keys']) secrets.set(name, { token: large })
  const keys = keysOf(['greedy/a', 'greedy/b', 'team/keys'])
  const { texts, withheld } = await objects.read(keys, never)
  assert.deepEqual(
    [texts.size, texts.has('team/keys/token'), [...withheld.values()]],
    [2, true, ['exceeds the share of its namespace']],
  )
  for (const name of ['greedy/a', 'greedy/b']) secrets.set(name, { token: 'small' })
  // A cached value frees its space when it is read again, in any order.
  for (let turn = 0; turn < 2; turn++) await objects.refresh(never)
  const now = await objects.read(keys, never)
  assert.deepEqual([now.texts.size, now.withheld.size], [3, 0])
})

test('an unreadable Secret keeps its last value, and one that was never read fails the reading', async () => {
  const { secrets, failing, objects } = setUp()
  for (const name of ['team/a', 'team/b']) secrets.set(name, { token: name })
  const keys = keysOf(['team/a', 'team/b'])
  failing.add('team/a')
  await assert.rejects(objects.read(keys, never), /internal error/)
  failing.clear()
  await objects.read(keys, never)
  failing.add('team/a')
  secrets.set('team/a', { token: 'changed' })
  secrets.set('team/b', { token: 'changed' })
  const { hasChanged, errors } = await objects.refresh(never)
  assert.deepEqual([hasChanged, errors.length], [true, 1])
  assert.deepEqual([...(await objects.read(keys, never)).texts.values()], ['team/a', 'changed'])
})
