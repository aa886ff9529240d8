import assert from 'node:assert/strict'
import { test } from 'node:test'
import { API_VERSION, type Manifest } from '../kinds/kinds.ts'
import type { ResourceStore, WatchEvent } from './store.ts'

/** An empty store, and its clean-up. */
export interface Opened {
  readonly store: ResourceStore
  close(): Promise<void>
}

function server(name: string, more: Partial<Manifest<'MCPServer'>['spec']> = {}): Manifest<'MCPServer'> {
  return {
    apiVersion: API_VERSION,
    kind: 'MCPServer',
    metadata: { name, namespace: 'default', labels: { app: name } },
    spec: { url: `http://${name}.example/mcp`, ...more },
  }
}

const key = { namespace: 'default', name: 'a' }
const owner = { owner: 'test' }

async function applied(store: ResourceStore, manifest: Manifest<'MCPServer'>) {
  const result = await store.apply(manifest, owner)
  if (result.kind !== 'applied') assert.fail(JSON.stringify(result))
  return result.object
}

/** Conformance tests of resource stores. A new implementation calls this with a function that opens an empty store. */
export function storeConformance(name: string, open: () => Promise<Opened>): void {
  const promise = (what: string, check: (store: ResourceStore) => Promise<void>) =>
    test(`${name}: ${what}`, async () => {
      const opened = await open()
      try {
        await check(opened.store)
      } finally {
        await opened.close()
      }
    })
  writes(promise)
  refusals(promise)
  reads(promise)
  watches(promise)
}

type Promised = (what: string, check: (store: ResourceStore) => Promise<void>) => void

function writes(promise: Promised): void {
  promise('an applied object is read back with identity, generation and defaults', async (store) => {
    const object = await applied(store, server('a'))
    assert.deepEqual(await store.get('MCPServer', key), object)
    assert.equal(object.metadata.generation, 1)
    assert.equal(object.spec.trust, 'untrusted')
    assert.ok(object.metadata.uid !== '' && object.metadata.resourceVersion !== '')
    assert.equal(await store.get('Agent', key), null)
  })

  promise('text that YAML takes for something else is read back as it was written', async (store) => {
    for (const text of ['yes', '012', '2026-01-01', '1_000', '12:30', 'null', '~', '<<', '0x1f', ' # x']) {
      await applied(store, server('a', { protocolVersions: [text] }))
      assert.deepEqual((await store.get('MCPServer', key))?.spec.protocolVersions, [text])
    }
  })

  promise('an unchanged apply writes nothing', async (store) => {
    const first = await applied(store, server('a'))
    assert.deepEqual(await applied(store, server('a')), first)
  })

  promise('the generation grows with the spec, not with labels and not with the status', async (store) => {
    const first = await applied(store, server('a'))
    const labelled = { ...server('a'), metadata: { ...key, labels: { app: 'other' } } }
    assert.equal((await applied(store, labelled)).metadata.generation, 1)
    const status = await store.applyStatus('MCPServer', key, { gatewayKey: 'default/a' })
    assert.ok(status?.kind === 'applied' && status.object.metadata.generation === 1)
    const changed = await applied(store, server('a', { trust: 'trusted' }))
    assert.equal(changed.metadata.generation, 2)
    assert.equal(changed.metadata.uid, first.metadata.uid)
    assert.notEqual(changed.metadata.resourceVersion, first.metadata.resourceVersion)
    assert.deepEqual(changed.status, { gatewayKey: 'default/a' })
  })
}

function refusals(promise: Promised): void {
  promise('another owner conflicts unless it forces, and a dry run changes nothing', async (store) => {
    await applied(store, server('a'))
    const other = server('a', { trust: 'trusted' })
    assert.equal((await store.apply(other, { owner: 'other' })).kind, 'conflict')
    const tried = await store.apply(other, { owner: 'other', force: true, dryRun: true })
    assert.ok(tried.kind === 'applied' && tried.object.spec.trust === 'trusted')
    assert.equal((await store.get('MCPServer', key))?.spec.trust, 'untrusted')
    assert.equal((await store.apply(other, { owner: 'other', force: true })).kind, 'applied')
    assert.equal((await store.apply(server('a'), owner)).kind, 'conflict')
  })

  promise('an invalid object is refused with its fields', async (store) => {
    const result = await store.apply(server('a', { url: 'ftp://x' }), owner)
    assert.ok(result.kind === 'invalid' && result.problems[0]?.path === 'spec.url')
    assert.equal(await store.get('MCPServer', key), null)
  })

  promise('a write checks its preconditions, and so does a status write', async (store) => {
    const first = await applied(store, server('a'))
    assert.equal((await store.apply(server('a'), { ...owner, create: true })).kind, 'conflict')
    const changed = await applied(store, server('a', { trust: 'trusted' }))
    const stale = { revision: first.metadata.resourceVersion }
    const last = { revision: changed.metadata.resourceVersion }
    assert.equal((await store.apply(server('a'), { ...owner, ...stale })).kind, 'conflict')
    assert.equal((await store.apply(server('b'), { ...owner, ...last })).kind, 'conflict')
    assert.equal((await store.applyStatus('MCPServer', key, { observedTools: 1 }, stale))?.kind, 'conflict')
    const tried = await store.applyStatus('MCPServer', key, { observedTools: 1 }, { ...last, dryRun: true })
    assert.ok(tried?.kind === 'applied' && tried.object.status?.observedTools === 1)
    assert.deepEqual(await store.get('MCPServer', key), changed)
    assert.equal((await store.apply(server('a'), { ...owner, ...last })).kind, 'applied')
  })

  promise('a removal checks its preconditions', async (store) => {
    const { metadata } = await applied(store, server('a'))
    const stale = await store.remove('MCPServer', key, { uid: 'other' })
    assert.ok(typeof stale === 'object' && stale.kind === 'conflict')
    const old = await store.remove('MCPServer', key, { revision: 'other' })
    assert.ok(typeof old === 'object' && old.kind === 'conflict')
    assert.equal(await store.remove('MCPServer', key, { uid: metadata.uid }), 'removed')
    assert.equal(await store.remove('MCPServer', key), 'missing')
    assert.equal(await store.applyStatus('MCPServer', key, {}), null)
    assert.notEqual((await applied(store, server('a'))).metadata.uid, metadata.uid)
  })
}

function reads(promise: Promised): void {
  promise('lists are sorted, filtered and paged', async (store) => {
    for (const name of ['c', 'a', 'b']) await applied(store, server(name))
    await applied(store, { ...server('z'), metadata: { name: 'z', namespace: 'other' } })
    const names = async (options: Parameters<typeof store.list>[1]) =>
      (await store.list('MCPServer', options)).items.map(({ metadata }) => metadata.name)
    assert.deepEqual(await names({}), ['a', 'b', 'c', 'z'])
    assert.deepEqual(await names({ namespace: 'default' }), ['a', 'b', 'c'])
    assert.deepEqual(await names({ labels: { app: 'b' } }), ['b'])
    const first = await store.list('MCPServer', { limit: 3 })
    assert.equal(first.items.length, 3)
    const rest = await store.list('MCPServer', { limit: 3, cursor: first.next ?? '' })
    assert.deepEqual([rest.items.length, rest.next], [1, null])
  })
}

function watches(promise: Promised): void {
  promise(
    'a watch without a revision reports the present state, then every change of its kind in order',
    async (store) => {
      await applied(store, server('a'))
      const stop = new AbortController()
      const events: string[] = []
      const collected = collect(store.watch('MCPServer', null, stop.signal), events, 4, stop)
      await applied(store, server('a', { trust: 'trusted' }))
      await applied(store, server('b'))
      await store.remove('MCPServer', key)
      await collected
      assert.deepEqual(
        events.filter((event) => event !== 'BOOKMARK'),
        ['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'],
      )
    },
  )

  promise('a watch goes on from a revision, and a strange revision is gone', async (store) => {
    const { revision } = await store.list('MCPServer', {})
    await applied(store, server('a'))
    const stop = new AbortController()
    const events: string[] = []
    await collect(store.watch('MCPServer', revision, stop.signal), events, 1, stop)
    assert.equal(events[0], 'ADDED a')
    const gone: string[] = []
    await collect(store.watch('MCPServer', 'elsewhere.7', new AbortController().signal), gone, 1, new AbortController())
    assert.deepEqual(gone, ['GONE'])
  })
}

/** Reads events until `count` changes were received. */
async function collect(
  watch: AsyncIterable<WatchEvent<'MCPServer'>>,
  into: string[],
  count: number,
  stop: AbortController,
): Promise<void> {
  let changes = 0
  for await (const event of watch) {
    into.push('object' in event ? `${event.type} ${event.object.metadata.name}` : event.type)
    if ('object' in event) changes += 1
    if (changes >= count) stop.abort()
  }
}
