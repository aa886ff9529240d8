import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServerEntry, UpstreamsFile } from '@plat/resources/rendered'
import { isDenial } from '../../call/index.ts'
import { decodeUpstreams } from './decode.ts'
import { buildRegistry } from './registry.ts'

const entry = (url: string, more: Partial<ServerEntry> = {}): ServerEntry => ({
  url,
  namespaces: [],
  implicit: false,
  trust: 'untrusted',
  dataClass: 'internal',
  auth: { type: 'none' },
  ...more,
})

const file: UpstreamsFile = {
  version: 1,
  servers: {
    'default/notes': entry('http://own/mcp', {
      trust: 'trusted',
      dataClass: 'confidential',
      jurisdiction: 'DE',
      timeoutSeconds: 5,
      protocolVersions: ['2025-06-18'],
      caPEM: 'a bundle',
      auth: { type: 'bearerSecret', credentialKey: 'default.notes' },
    }),
    'default/two': entry('http://own-two/mcp'),
    'default/gone': entry('http://own-gone/mcp'),
    'tools/implied': entry('http://implied/mcp', { implicit: true, namespaces: ['default'] }),
    'more/implied': entry('http://meant/mcp', { namespaces: ['default'] }),
    'tools/search': entry('http://shared/mcp', { namespaces: ['default', 'team'] }),
    'tools/notes': entry('http://shared-notes/mcp', { namespaces: ['default', 'team'] }),
    'tools/dup': entry('http://dup-1/mcp', { namespaces: ['default'] }),
    'more/dup': entry('http://dup-2/mcp', { namespaces: ['default'] }),
    'private/vault': entry('http://vault/mcp'),
    'default/assistant-legacy': entry('http://legacy/mcp', { implicit: true }),
    'default/assistant-notes': entry('http://never/mcp', { implicit: true }),
    'default/assistant-fixed': entry('http://never-2/mcp', { implicit: true }),
  },
  bindings: {
    'default/assistant/two': 'tools/search',
    'default/assistant/gone': 'default/missing',
    'default/assistant/stolen': 'private/vault',
  },
  agentWeb: {},
}

const registry = buildRegistry(file, {
  notes: 'http://static-notes/mcp',
  fixed: 'http://static/mcp',
  two: 'http://s/mcp',
})
const assistant = { namespace: 'default', agent: 'assistant' }

function answer(name: string, who = assistant): string {
  const found = registry.resolve(who, name)
  return isDenial(found) ? found.code : found.url
}

test('names resolve in the documented order: binding, own, shared, static, implicit', () => {
  // Shows D3.mcp.upstreamsFile, D3.mcp.upstreamsFile.precedence, D3.mcp.upstreams, D3.registry.namespaces,
  // D3.mcp.resolution.binding, D3.mcp.resolution.ownNamespace, D3.mcp.resolution.shared, D3.mcp.resolution.static,
  // D3.mcp.resolution.implicit, D3.mcp.resolution.unknown and D3.error.unknown_server.
  assert.equal(answer('two'), 'http://shared/mcp')
  assert.equal(answer('two', { namespace: 'default', agent: 'other' }), 'http://own-two/mcp')
  assert.equal(answer('notes'), 'http://own/mcp')
  assert.equal(answer('notes', { namespace: 'team', agent: 'assistant' }), 'http://shared-notes/mcp')
  assert.equal(answer('notes', { namespace: 'far', agent: 'assistant' }), 'http://static-notes/mcp')
  assert.equal(answer('search'), 'http://shared/mcp')
  assert.equal(answer('fixed'), 'http://static/mcp')
  assert.equal(answer('legacy'), 'http://legacy/mcp')
  assert.equal(answer('nothing'), 'unknown_server')
})

test('two servers of one name shared with the namespace are ambiguous', () => {
  // Shows D3.mcp.resolution.ambiguous and D3.error.ambiguous_server.
  assert.equal(answer('dup'), 'ambiguous_server')
  assert.equal(answer('dup', { namespace: 'tools', agent: 'x' }), 'http://dup-1/mcp')
  assert.equal(answer('dup', { namespace: 'team', agent: 'x' }), 'unknown_server')
})

test('an implicit server serves its own agent only', () => {
  // Shows D3.registry.implicit.
  assert.equal(answer('legacy', { namespace: 'default', agent: 'other' }), 'unknown_server')
  assert.equal(answer('assistant-legacy'), 'unknown_server')
  assert.equal(answer('implied'), 'http://meant/mcp')
  assert.equal(answer('legacy', { namespace: 'team', agent: 'assistant' }), 'unknown_server')
})

test('the published name of an implicit server is its short name, for its own agent and while no other server has one of both names', () => {
  // Shows D2.tools.upstreamURL.implicitServer.
  const named = (name: string, caller = assistant) => registry.nameOf(caller, name)
  assert.deepEqual([named('assistant-legacy'), named('legacy')], ['legacy', 'legacy'])
  assert.equal(named('assistant-legacy', { namespace: 'default', agent: 'other' }), 'assistant-legacy')
  assert.equal(named('assistant-legacy', { namespace: 'team', agent: 'assistant' }), 'assistant-legacy')
  for (const name of ['assistant-notes', 'assistant-fixed', 'assistant-none', 'assistant-', 'notes'])
    assert.equal(named(name), name, 'another server has the short name, or there is no implicit server')
  const taken = buildRegistry(
    { ...file, servers: { ...file.servers, 'default/assistant-legacy2': entry('http://l/mcp', { implicit: true }) } },
    { 'assistant-legacy2': 'http://static/mcp' },
  )
  assert.equal(taken.nameOf(assistant, 'assistant-legacy2'), 'assistant-legacy2', 'a static server has the name')
  const bound = buildRegistry({ ...file, bindings: { 'default/assistant/assistant-legacy': 'tools/none' } }, {})
  assert.equal(bound.nameOf(assistant, 'assistant-legacy'), 'assistant-legacy', 'a binding never falls through')
})

test('a binding never falls through: a missing or unshared server is unknown', () => {
  assert.equal(answer('gone'), 'unknown_server')
  assert.equal(answer('stolen'), 'unknown_server')
})

test('a name with a slash reaches no key of another namespace', () => {
  for (const name of ['private/vault', '../private/vault', 'assistant/two', 'default/notes', '']) {
    assert.equal(answer(name), 'unknown_server', name)
  }
})

test('names that begin with plat- are built in and never looked up', () => {
  const sly = buildRegistry(
    { ...file, servers: { 'default/plat-web': entry('http://x/mcp') } },
    { 'plat-exec': 'http://y' },
  )
  for (const name of ['plat-web', 'plat-exec']) {
    const found = sly.resolve(assistant, name)
    assert.ok(isDenial(found) && found.code === 'unknown_server')
  }
})

test('the revisions of a restricted server are those of the name that the caller uses', () => {
  const revisions = (name: string, who = assistant) => registry.protocolVersions(who, name)
  assert.deepEqual(
    ['notes', 'two', 'missing'].map((name) => revisions(name)),
    [['2025-06-18'], null, null],
  )
  assert.equal(revisions('notes', { namespace: 'team', agent: 'assistant' }), null)
  const implied = entry('http://x/mcp', { implicit: true, protocolVersions: ['2025-11-25'] })
  const other = buildRegistry({ ...file, servers: { 'default/assistant-legacy': implied } }, {})
  assert.deepEqual(other.protocolVersions(assistant, 'legacy'), ['2025-11-25'])
})

test('a target resolves to its server by key, with the settings of the file', () => {
  const { labels, ...notes } = registry.upstream('default/notes') ?? assert.fail()
  assert.equal(labels.clears, false)
  assert.deepEqual(notes, {
    key: 'default/notes',
    url: 'http://own/mcp',
    stdio: false,
    stdioService: false,
    timeoutSeconds: 5,
    caPEM: 'a bundle',
    protocolVersions: ['2025-06-18'],
    trust: 'trusted',
    dataClass: 'confidential',
    jurisdiction: 'DE',
    auth: { type: 'bearerSecret', credentialKey: 'default.notes' },
    published: null,
    pins: null,
    dlpProfile: null,
    builtin: null,
  })
  assert.equal(registry.upstream('fixed')?.url, 'http://static/mcp')
  assert.equal(registry.upstream('default/missing'), null)
  assert.equal(registry.size, 16)
})

test('web access of an agent is looked up by its name, and lists domains', () => {
  const read = (agentWeb: object) => decodeUpstreams(Buffer.from(JSON.stringify({ ...file, agentWeb })))
  const own = { allowedDomains: ['example.com'], deniedDomains: ['*.example.com'] }
  const good = read({ 'default/assistant': own })
  assert.ok(good.ok)
  const built = buildRegistry(good.file, {})
  assert.deepEqual(built.web(assistant), own)
  assert.equal(built.web({ namespace: 'default', agent: 'other' }), null)
  const bad = read({ assistant: {}, 'default/a': { deniedDomains: ['http://example.com'] } })
  assert.deepEqual(bad, {
    ok: false,
    problems: [
      'agentWeb[assistant]: must read <namespace>/<agent>',
      'agentWeb[default/a]: "http://example.com" is not a domain',
    ],
  })
})

test('a server with auth per user names its provider, and can require a client certificate', () => {
  // Shows D3.registry.auth.
  const auth = (wish: ServerEntry['auth']) => {
    const read = decodeUpstreams(
      Buffer.from(JSON.stringify({ ...file, servers: { 'a/b': entry('https://x', { auth: wish }) }, bindings: {} })),
    )
    return read.ok ? buildRegistry(read.file, {}).upstream('a/b')?.auth : read.problems
  }
  const perUser = { perUser: true, provider: 'github' }
  const mtls = { type: 'mtls', credentialKey: 'a.b' } as const
  assert.deepEqual(auth({ type: 'none', ...perUser }), { type: 'perUser', provider: 'github', mtls: null })
  assert.deepEqual(auth({ ...mtls, ...perUser }), { type: 'perUser', provider: 'github', mtls })
  assert.deepEqual(auth({ type: 'none', perUser: true }), ['servers[a/b].auth.provider: Required value'])
  assert.deepEqual(auth({ type: 'none', provider: 'github' }), ['servers[a/b].auth.provider: goes with perUser alone'])
  assert.deepEqual(auth({ type: 'bearerSecret', credentialKey: 'a.b', ...perUser }), [
    'servers[a/b].auth.type: perUser goes with type none or mtls alone',
  ])
})

test('invalid keys, reserved names, unknown fields and invalid URLs refuse the file', () => {
  const bad = [
    { ...file, servers: { notes: entry('http://x') } },
    { ...file, servers: { 'a/plat-web': entry('http://x') } },
    { ...file, servers: { 'a/b': entry('ftp://x') } },
    { ...file, servers: { 'a/b': entry('http://[x') } },
    { ...file, servers: { 'a/b': { ...entry('http://x'), extra: 1 } } },
    { ...file, bindings: { 'a/b': 'c/d' } },
    { ...file, version: 2 },
    { version: 1 },
  ]
  for (const one of bad) assert.ok(!decodeUpstreams(Buffer.from(JSON.stringify(one))).ok)
})
