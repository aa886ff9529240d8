import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { storeConformance } from './conformance.ts'
import { createFileStore, type FileStore } from './file.ts'

interface Folder {
  readonly dir: string
  readonly clock: TestClock
  open(): FileStore
  put(path: string, text: string): Promise<void>
}

async function inFolder(check: (folder: Folder) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'plat-'))
  const dir = join(root, 'resources')
  const clock = new TestClock()
  const stores: FileStore[] = []
  try {
    await check({
      dir,
      clock,
      open() {
        const store = createFileStore({ dir, clock, log: silentLog })
        stores.push(store)
        return store
      },
      async put(path, text) {
        await mkdir(dirname(join(dir, path)), { recursive: true })
        await writeFile(join(dir, path), text)
      },
    })
  } finally {
    for (const store of stores) store.close()
    await rm(root, { recursive: true })
  }
}

storeConformance('files', async () => {
  const root = await mkdtemp(join(tmpdir(), 'plat-'))
  const store = createFileStore({ dir: join(root, 'resources'), clock: new TestClock(), log: silentLog })
  return {
    store,
    async close() {
      store.close()
      await rm(root, { recursive: true })
    },
  }
})

const manifest = (name: string, spec: string) =>
  `apiVersion: plat.dev/v1alpha1\nkind: MCPServer\nmetadata:\n  name: ${name}\n  namespace: default\nspec:\n${spec}\n`
const good = (name: string) => manifest(name, `  url: http://${name}.example/mcp`)
const key = (name: string) => ({ namespace: 'default', name })

test('an invalid file gives a line with path, line and field, and the other files load', () =>
  inFolder(async ({ open, put }) => {
    await put('mcpservers/default/a.yaml', good('a'))
    await put('mcpservers/default/b.yaml', manifest('b', '  url: http://b\n  trusted: yes'))
    await put('mcpservers/default/c.yaml', good('d'))
    await put('mcpservers/default/e.yml', good('e'))
    await put('mcpservers/default/f.yaml', 'a: [')
    await put('mcpservers/default/.g.yaml.tmp', 'half')
    await put('mcpservers/h.yaml', good('h'))
    await put('connectedaccounts/default/x.yaml', '')
    await put('agent/default/x.yaml', '')
    await put('readme.txt', '')
    const store = open()
    const { items } = await store.list('MCPServer', {})
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ['a'],
    )
    assert.deepEqual(store.problems(), [
      'agent: no kind has this name, did you mean "agents"?',
      'connectedaccounts: ConnectedAccount: a gateway writes it on a cluster; here `/v1/accounts` lists accounts',
      'mcpservers/default/b.yaml:8: spec.trusted: unknown field, did you mean "trust"?',
      'mcpservers/default/c.yaml: metadata names default/d, which belongs into mcpservers/default/d.yaml',
      'mcpservers/default/e.yml: must end in .yaml',
      'mcpservers/default/f.yaml:1: Flow sequence in block collection must be sufficiently indented and end with a ]',
      'mcpservers/h.yaml: must be in a folder of its namespace: mcpservers/<namespace>/<name>.yaml',
      'readme.txt: must be a .yaml file, or a folder of a kind',
    ])
  }))

test('a missing folder is an empty store', () =>
  inFolder(async ({ open }) => {
    assert.deepEqual((await open().list('Agent', {})).items, [])
  }))

test('identity, generation and status survive a restart; a manual edit increments the generation', () =>
  inFolder(async ({ open, put }) => {
    await put('mcpservers/default/a.yaml', good('a'))
    const first = open()
    await first.applyStatus('MCPServer', key('a'), { observedTools: 4 })
    const before = await first.get('MCPServer', key('a'))
    first.close()
    await put('mcpservers/default/a.yaml', `${good('a')}  trust: trusted\n`)
    const after = await open().get('MCPServer', key('a'))
    assert.equal(after?.metadata.uid, before?.metadata.uid)
    assert.deepEqual([before?.metadata.generation, after?.metadata.generation], [1, 2])
    assert.deepEqual(after?.status, { observedTools: 4 })
  }))

test('a file that is invalid for a moment is hidden meanwhile and keeps its identity', () =>
  inFolder(async ({ open, put }) => {
    await put('mcpservers/default/a.yaml', good('a'))
    const store = open()
    const before = await store.get('MCPServer', key('a'))
    await put('mcpservers/default/a.yaml', 'broken: [')
    assert.equal(await store.get('MCPServer', key('a')), null)
    await put('mcpservers/default/a.yaml', good('a'))
    assert.equal((await store.get('MCPServer', key('a')))?.metadata.uid, before?.metadata.uid)
  }))

test('an object removed while no process watched comes back as another one', () =>
  inFolder(async ({ open, put, dir }) => {
    await put('mcpservers/default/a.yaml', good('a'))
    const first = open()
    const before = await first.get('MCPServer', key('a'))
    first.close()
    await rm(join(dir, 'mcpservers/default/a.yaml'))
    const second = open()
    await second.check()
    await put('mcpservers/default/a.yaml', good('a'))
    assert.notEqual((await second.get('MCPServer', key('a')))?.metadata.uid, before?.metadata.uid)
  }))

test('a manual edit is detected by the timer, without a request', () =>
  inFolder(async ({ open, put, clock }) => {
    const store = open()
    const { revision } = await store.list('MCPServer', {})
    const stop = new AbortController()
    const seen = (async () => {
      for await (const event of store.watch('MCPServer', revision, stop.signal)) {
        stop.abort()
        return event
      }
      return null
    })()
    await put('mcpservers/default/a.yaml', good('a'))
    await clock.advance(1000)
    assert.equal((await seen)?.type, 'ADDED')
  }))

test('an object written by hand is replaced only by force', () =>
  inFolder(async ({ open, put }) => {
    await put('mcpservers/default/a.yaml', good('a'))
    const store = open()
    const found = await store.get('MCPServer', key('a'))
    assert.ok(found !== null)
    const change = { ...found, metadata: key('a'), spec: { ...found.spec, trust: 'trusted' as const } }
    const manifestOnly = {
      apiVersion: change.apiVersion,
      kind: change.kind,
      metadata: change.metadata,
      spec: change.spec,
    }
    assert.equal((await store.apply(manifestOnly, { owner: 'plat' })).kind, 'conflict')
    assert.equal((await store.apply(manifestOnly, { owner: 'plat', force: true })).kind, 'applied')
  }))

test('files are written atomically, with access for their owner only', () =>
  inFolder(async ({ open, dir }) => {
    const spec = { url: 'http://a.example/mcp' }
    const object = { apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer' as const, metadata: key('a'), spec }
    await open().apply(object, { owner: 'plat' })
    const path = join(dir, 'mcpservers/default/a.yaml')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.match(await readFile(path, 'utf8'), /^apiVersion: plat\.dev\/v1alpha1\nkind: MCPServer\n/)
  }))

test('a cluster-scoped object is in the folder of its kind, has no namespace, and keeps its identity like any other', () =>
  inFolder(async ({ dir, open, put }) => {
    const text = (metadata: string) =>
      `apiVersion: plat.dev/v1alpha1\nkind: SovereigntyPolicy\nmetadata: ${metadata}\nspec: {allowedJurisdictions: [EU]}\n`
    await put('sovereigntypolicies/eu.yaml', text('{name: eu}'))
    await put('sovereigntypolicies/other.yaml', text('{name: other, namespace: default}'))
    await put('sovereigntypolicies/default/deep.yaml', text('{name: deep}'))
    await put('sovereigntypolicies/named.yaml', text('{name: another}'))
    const store = open()
    const { items } = await store.list('SovereigntyPolicy', {})
    assert.deepEqual(
      items.map(({ metadata: { namespace, name, generation } }) => [namespace, name, generation]),
      [['', 'eu', 1]],
    )
    assert.deepEqual(store.problems(), [
      'sovereigntypolicies/default: objects of this kind have no namespace: sovereigntypolicies/<name>.yaml',
      'sovereigntypolicies/named.yaml: metadata names another, which belongs into sovereigntypolicies/another.yaml',
      'sovereigntypolicies/other.yaml:3: metadata.namespace: Unsupported value: "default": supported values: ""',
    ])
    const key = { namespace: '', name: 'eu' }
    assert.equal((await store.applyStatus('SovereigntyPolicy', key, { observedGeneration: 1 }))?.kind, 'applied')
    const eu = await store.get('SovereigntyPolicy', key)
    assert.ok(eu !== null)
    assert.deepEqual([eu.status?.observedGeneration, eu.metadata.uid], [1, items[0]?.metadata.uid])
    const { apiVersion, kind, spec } = eu
    const manifest = { apiVersion, kind, metadata: { name: 'eu', namespace: '' as const }, spec }
    const applied = await store.apply(manifest, { owner: 'me', force: true })
    assert.equal(applied.kind, 'applied')
    assert.equal(await store.remove('SovereigntyPolicy', key), 'removed')
    await assert.rejects(stat(join(dir, 'sovereigntypolicies/eu.yaml')), /ENOENT/)
  }))

const documents = `# All of it.
${good('a')}---
# The second.
${good('b')}--- # The third.
${manifest('c', '  url: http://c.example/mcp # a note')}`

test('a file may have several documents, and a problem names its file and line', () =>
  inFolder(async ({ open, put, dir }) => {
    await put('all.yaml', `${documents}---\n${manifest('d', '  url: http://d\n  trusted: yes')}---\nkind: Agnt\n---\n`)
    await put('mcpservers/default/e.yaml', `${good('e')}---\n${good('f')}`)
    await put('mcpservers/default/g.yaml', `${good('h')}---\n${good('i')}`)
    const store = open()
    const names = async () => (await store.list('MCPServer', {})).items.map(({ metadata }) => metadata.name)
    assert.deepEqual(await names(), ['a', 'b', 'c', 'e', 'f'])
    assert.deepEqual(store.problems(), [
      'all.yaml:34: spec.trusted: unknown field, did you mean "trust"?',
      'all.yaml:36: kind: "Agnt" is not a kind of plat, did you mean "Agent"?',
      'mcpservers/default/g.yaml: none of its documents is the MCPServer of that path; move them to g.yaml',
    ])
    assert.deepEqual(await store.locate('MCPServer', key('c'), ['spec.url']), ['all.yaml:25'])
    await rm(join(dir, 'mcpservers/default/g.yaml'))
    await put('all.yaml', '# Nothing yet.\n')
    assert.deepEqual([await names(), store.problems()], [['e', 'f'], []])
  }))

test('a write or a removal through the store leaves every byte of the other documents', () =>
  inFolder(async ({ open, put, dir }) => {
    await put('all.yaml', documents)
    const store = open()
    const spec = { url: 'http://other.example/mcp' }
    const changed = { apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer' as const, metadata: key('b'), spec }
    assert.equal((await store.apply(changed, { owner: 'me', force: true })).kind, 'applied')
    const text = await readFile(join(dir, 'all.yaml'), 'utf8')
    assert.equal(text, documents.replace(good('b'), manifest('b', '  url: http://other.example/mcp')))
    assert.equal((await store.get('MCPServer', key('b')))?.metadata.generation, 2)
    assert.equal(await store.remove('MCPServer', key('b')), 'removed')
    const [first = '', , third = ''] = documents.split(/(?=^---)/m)
    assert.equal(await readFile(join(dir, 'all.yaml'), 'utf8'), first + third)
    for (const name of ['c', 'a']) assert.equal(await store.remove('MCPServer', key(name)), 'removed')
    await assert.rejects(stat(join(dir, 'all.yaml')), /ENOENT/)
  }))

test('an object that is declared twice is not loaded, and keeps its identity', () =>
  inFolder(async ({ open, put, dir }) => {
    await put('mcpservers/default/a.yaml', good('a'))
    const store = open()
    const before = await store.get('MCPServer', key('a'))
    await put('all.yaml', `${good('b')}---\n${manifest('a', '  url: http://other.example/mcp')}`)
    assert.equal(await store.get('MCPServer', key('a')), null)
    assert.deepEqual(store.problems(), [
      'all.yaml:8: MCPServer default/a is also in mcpservers/default/a.yaml:1; remove one of them',
      'mcpservers/default/a.yaml:1: MCPServer default/a is also in all.yaml:8; remove one of them',
    ])
    await rm(join(dir, 'mcpservers/default/a.yaml'))
    const moved = await store.get('MCPServer', key('a'))
    assert.deepEqual([moved?.metadata.uid, moved?.metadata.generation], [before?.metadata.uid, 2])
  }))

test('an object of a broken file keeps its identity over a restart, and is not created in another file', () =>
  inFolder(async ({ open, put }) => {
    await put('all.yaml', documents)
    const first = open()
    const before = await first.get('MCPServer', key('b'))
    await put('all.yaml', documents.replace('kind: MCPServer\nmetadata:\n  name: b', 'kind: [\n  name: b'))
    await first.check()
    const spec = { url: 'http://other.example/mcp' }
    const again = { apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer' as const, metadata: key('b'), spec }
    const refused = await first.apply(again, { owner: 'me' })
    assert.deepEqual(refused, {
      kind: 'conflict',
      reason: 'all.yaml does not load: mend it or remove it first',
    })
    first.close()
    const second = open()
    await second.check()
    await put('all.yaml', documents)
    assert.equal((await second.get('MCPServer', key('b')))?.metadata.uid, before?.metadata.uid)
  }))
