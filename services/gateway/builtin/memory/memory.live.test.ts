import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type JsonObject, systemClock } from '@plat/core'
import { openFileJournal } from '@plat/state'
import type { TestIssuer } from '@plat/testkit/identity'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../testing/started.ts'
import { decodeMemoryEvent } from './events.ts'

const SCOPE = 'tools:plat-memory'
/** A number that detectors of credit cards match. */
const CARD = '4111 1111 1111 1111'

const STORES = {
  'default/notes': { scope: 'agent' },
  'default/scratch': { scope: 'session' },
  'default/people': { scope: 'user' },
  'default/careful': { scope: 'agent', dlpProfile: 'cards', taints: ['kept'] },
  'default/lost': { scope: 'agent', dlpProfile: 'nobody' },
  'default/small': { scope: 'agent', maxItems: 1, maxItemBytes: 8 },
  'other/only': { scope: 'agent' },
}

const RULES = [
  { name: 'all', action: 'allow' },
  { name: 'stop', action: 'deny', match: { tools: ['memory_delete'], taints: ['secret', 'kept'] } },
]

/** Calls of one session; `own`: claims of its token. */
function callerOf(url: string, issuer: TestIssuer, own: JsonObject) {
  const { agent = 'assistant', session = 's1', namespace = 'default', ...claims } = own
  const who = { plat_agent: agent, plat_session: session, plat_ns: namespace }
  const sub = `spiffe://plat.local/ns/${namespace}/agent/${agent}/session/${session}`
  const token = issuer.token({ scope: SCOPE, sub, ...who, ...claims })
  const send = async (message: object): Promise<JsonObject> => {
    const response = await fetch(`${url}/mcp/plat-memory`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    })
    return Object(await response.json())
  }
  /** Returns the tool result, `failed: <message>`, or the code of a denial. */
  const call = async (name: string, args: object) => {
    const body = await send({
      method: 'tools/call',
      params: { name: `memory_${name}`, arguments: args },
    })
    const denial = denialIn(body)
    if (denial !== null) return denial.data.error
    const { result } = body
    const [{ text }] = Object(result).content
    return Object(result).isError === true ? `failed: ${text}` : JSON.parse(text)
  }
  return { send, call }
}

/** A gateway with these stores; `dir` holds the files of an earlier one. */
async function governed(t: TestContext, config: object = {}, dir = tempFolder()) {
  const memoryFile = join(dir, 'memory.json')
  const policies = ['default', 'other'].map((namespace) =>
    testPolicy({ name: `${namespace}/all`, namespace, agents: ['assistant', 'helper'], rules: RULES }),
  )
  if (!existsSync(memoryFile)) await writeFile(memoryFile, JSON.stringify({ version: 1, stores: STORES }))
  await writeFile(join(dir, 'policies.json'), policiesFile(policies))
  const auditPath = join(dir, 'audit.jsonl')
  const { gateway, issuer } = await started(
    t,
    {
      auditPath,
      memoryFile,
      policyFile: join(dir, 'policies.json'),
      policyReloadSeconds: 1,
      taintStorePath: join(dir, 'taints.jsonl'),
      dlpProfiles: { cards: { detectors: ['credit_card'] } },
      ...config,
    },
    true,
  )
  let running = true
  const stop = async () => {
    if (running) await gateway.drain()
    running = false
  }
  t.after(stop)
  const admin = async (method: string, path: string) => {
    const response = await fetch(gateway.url + path, { method, headers: { authorization: `Bearer ${TOKEN}` } })
    return Object(await response.json())
  }
  const record = async (wanted: (rec: JsonObject) => boolean): Promise<JsonObject> => {
    const found = () =>
      wholeLines(auditPath)
        .map((line) => JSON.parse(line).rec)
        .find(wanted)
    await until(() => found() !== undefined, 'the record')
    return found()
  }
  const caller = (own: JsonObject = {}) => callerOf(gateway.url, issuer, own)
  return { dir, memoryFile, caller, admin, record, stop }
}

test('agents store texts with MCP tools, find them after a restart, and each call is recorded', async (t) => {
  // Shows D3.sessions.memoryFile.
  const first = await governed(t)
  const { send, call } = first.caller()
  const { tools } = Object((await send({ method: 'tools/list' })).result)
  assert.deepEqual(
    tools.map(({ name }: { name: string }) => name),
    ['memory_write', 'memory_read', 'memory_search', 'memory_list', 'memory_delete'],
  )
  const store = 'notes'
  assert.deepEqual(await call('write', { store, key: 'tea', text: 'Ada drinks tea' }), {
    ...{ key: 'tea', bytes: 14, redacted: false },
  })
  await call('write', { store, key: 'tea', text: 'Ada drinks green tea' })
  await call('write', { store, key: 'milk', text: 'no milk' })
  const { session, tool, server, argsSha256 } = await first.record(({ tool }) => tool === 'memory_write')
  assert.deepEqual([session, tool, server, String(argsSha256).length], ['s1', 'memory_write', 'plat-memory', 64])
  await first.stop()
  const again = (await governed(t, {}, first.dir)).caller({ session: 's2' })
  const read = await again.call('read', { store, key: 'tea' })
  assert.deepEqual([read.text, read.key], ['Ada drinks green tea', 'tea'])
  const { results, unread } = await again.call('search', { store, query: 'green milk' })
  assert.deepEqual([results.length, results[0].snippet, unread], [2, 'no milk', 0])
  const list = async () => (await again.call('list', { store })).items.map(({ key }: JsonObject) => key)
  assert.deepEqual(await list(), ['milk', 'tea'])
  assert.deepEqual((await again.call('list', { store, prefix: 't', after: 'milk' })).items.length, 1)
  assert.deepEqual(await again.call('delete', { store, key: 'tea' }), { key: 'tea', deleted: true })
  assert.deepEqual(await again.call('delete', { store, key: 'tea' }), { key: 'tea', deleted: false })
  assert.match(await again.call('read', { store, key: 'tea' }), /^failed: arguments\/key: there is no item/)
  assert.deepEqual(await list(), ['milk'])
})

test('items of other agents, sessions, users and namespaces are not visible', async (t) => {
  const { caller } = await governed(t)
  const ada = { act: { sub: 'user:ada' }, plat_principal_verified: 'requester' }
  const me = caller(ada)
  const keys = { notes: 'of the agent', scratch: 'of the session', people: 'of the user' }
  for (const [store, text] of Object.entries(keys)) await me.call('write', { store, key: 'k', text })
  const seen = async (own: JsonObject) => {
    const { call } = caller(own)
    const results = await Promise.all(Object.keys(keys).map((store) => call('read', { store, key: 'k' })))
    const found = await Promise.all(Object.keys(keys).map((store) => call('search', { store, query: 'of' })))
    const [notes, scratch, people] = results.map((one, at) => typeof one === 'object' && found[at].results.length === 1)
    return { notes, scratch, people }
  }
  const all = { notes: true, scratch: true, people: true }
  assert.deepEqual(await seen(ada), all)
  assert.deepEqual(await seen({ ...ada, session: 's2' }), { ...all, scratch: false })
  assert.deepEqual(await seen({ ...ada, agent: 'helper' }), { notes: false, scratch: false, people: true })
  assert.deepEqual(await seen({ ...ada, act: { sub: 'user:bob' } }), { ...all, people: false })
  assert.equal(await caller({ act: { sub: 'user:ada' } }).call('read', { store: 'people', key: 'k' }), 'policy_denied')
  const elsewhere = caller({ ...ada, namespace: 'other' })
  assert.match(await elsewhere.call('read', { store: 'notes', key: 'k' }), /^failed: arguments\/store: .*: only$/)
  assert.match(await elsewhere.call('read', { key: 'k' }), /^failed: arguments\/key/)
  assert.match(await me.call('read', { key: 'k' }), /must be one of: careful, lost, notes, people, scratch, small$/)
  const { tools } = Object((await caller({ namespace: 'none' }).send({ method: 'tools/list' })).result)
  assert.deepEqual(tools ?? [], [])
})

test('items carry the labels of their writer to readers', async (t) => {
  const { caller, record } = await governed(t)
  const tainted = caller({ session: 'dirty', plat_inherited_taints: 'secret' })
  const store = 'notes'
  await tainted.call('write', { store, key: 'k', text: 'a secret word' })
  await caller({ session: 'clean' }).call('write', { store, key: 'plain', text: 'nothing' })
  for (const [name, args] of [
    ['read', { store, key: 'k' }],
    ['search', { store, query: 'word' }],
    ['list', { store }],
  ] as const) {
    const { call } = caller({ session: name })
    assert.deepEqual((await call('read', { store, key: 'plain' })).text, 'nothing')
    assert.deepEqual(await call('delete', { store, key: 'none' }), { key: 'none', deleted: false })
    assert.equal(typeof (await call(name, args)), 'object')
    assert.equal(await call('delete', { store, key: 'none' }), 'policy_denied', name)
    const { taintsAdded } = await record(
      ({ kind, session, taintsAdded }) => kind === 'outcome' && session === name && taintsAdded !== undefined,
    )
    assert.deepEqual(taintsAdded, ['secret'])
    // Later writes of the session carry the labels, in any store.
    await call('write', { store: 'small', key: 'copy', text: name })
    const other = caller({ session: `${name}-2` })
    await other.call('read', { store: 'small', key: 'copy' })
    assert.equal(await other.call('delete', { store, key: 'none' }), 'policy_denied', name)
  }
})

test('a store redacts findings of its profile before it stores a text, and labels readers', async (t) => {
  const { caller, dir, record } = await governed(t)
  const { call } = caller()
  const store = 'careful'
  const results = await call('write', { store, key: 'card', text: `the card is ${CARD}` })
  assert.equal(results.redacted, true)
  assert.equal((await call('read', { store, key: 'card' })).text, 'the card is [REDACTED:credit_card]')
  assert.equal(await call('delete', { store, key: 'card' }), 'policy_denied')
  assert.equal(await call('write', { store, key: CARD.replaceAll(' ', ''), text: '' }), 'dlp_denied')
  const file = await readFile(join(dir, 'memory', 'memory.jsonl'), 'utf8')
  assert.ok(file.includes('REDACTED') && !file.includes('4111'))
  const { dlp } = await record(({ kind, dlp }) => kind === 'outcome' && dlp !== undefined)
  assert.deepEqual(dlp, [{ action: 'redact', count: 1, detector: 'credit_card', direction: 'arguments' }])
  assert.equal(await call('write', { store: 'lost', key: 'a', text: '' }), 'dlp_denied')
})

test('items stored before the profile was set are redacted when read', async (t) => {
  const first = await governed(t)
  await first.caller().call('write', { store: 'notes', key: 'card', text: CARD })
  await first.stop()
  const stores = { 'default/notes': { scope: 'agent', dlpProfile: 'cards' } }
  await writeFile(first.memoryFile, JSON.stringify({ version: 1, stores }))
  const { call } = (await governed(t, {}, first.dir)).caller()
  assert.equal((await call('read', { key: 'card' })).text, '[REDACTED:credit_card]')
  assert.match((await call('search', { query: '4111' })).results[0].snippet, /REDACTED/)
})

/** Makes all entries of a journal a year older. */
async function age(file: string): Promise<void> {
  const journal = await openFileJournal({ path: file, clock: systemClock, decode: decodeMemoryEvent })
  for await (const { key, event } of journal.read(0)) {
    if (event.t === 'written') await journal.append(key, [{ ...event, at: event.at - 31_536_000_000 }])
  }
  await journal.close()
}

test('exceeded limits of a store are described to the model, and expired items are not returned', async (t) => {
  // Shows D3.sessions.memorySweepSeconds and D3.default.computed.memoryDataDir.
  const { caller, dir, memoryFile, stop } = await governed(t)
  const { call } = caller()
  assert.match(await call('write', { store: 'small', key: 'a', text: 'nine chars' }), /at most 8 bytes/)
  assert.equal((await call('write', { store: 'small', key: 'a', text: 'short' })).bytes, 5)
  assert.match(await call('write', { store: 'small', key: 'b', text: 'short' }), /at most 1 items/)
  await stop()
  const file = join(dir, 'memory', 'memory.jsonl')
  await age(file)
  const again = await governed(t, { memorySweepSeconds: 1 }, dir)
  assert.match(await again.caller().call('read', { store: 'small', key: 'a' }), /there is no item/)
  await until(async () => !(await readFile(file, 'utf8')).includes('short'), 'the sweep')
  // A new store applies within about a second, and an invalid file removes none.
  await writeFile(memoryFile, JSON.stringify({ version: 1, stores: { ...STORES, 'default/new': { scope: 'agent' } } }))
  const write = () => again.caller().call('write', { store: 'new', key: 'a', text: 'a' })
  await until(async () => typeof (await write()) === 'object', 'the new store')
  await writeFile(memoryFile, '{"version":2}')
  assert.equal(typeof (await write()), 'object')
})

test('a user can be erased: all memory of and for the user is removed from every file', async (t) => {
  // Shows D3.sessions.memoryDataDir.
  const memoryDataDir = join(tempFolder(), 'elsewhere')
  const { caller, admin, record } = await governed(t, { memoryDataDir })
  const of = (user: string) =>
    caller({ act: { sub: `user:${user}` }, plat_principal_verified: 'requester', session: user })
  for (const user of ['ada', 'bob']) {
    await of(user).call('write', { store: 'people', key: 'k', text: `likes of ${user}` })
    await of(user).call('write', { store: 'notes', key: user, text: `said by ${user}` })
  }
  const { items } = await admin('GET', '/v1/memory')
  assert.deepEqual(
    items.map(({ store, scope, who, items }: JsonObject) => [store, scope, who, items]),
    [
      ['people', 'user', 'bob', 1],
      ['people', 'user', 'ada', 1],
      ['notes', 'agent', 'assistant', 2],
    ],
  )
  assert.equal((await admin('DELETE', '/v1/memory/users/ada?namespace=other')).items, 0)
  assert.equal((await admin('DELETE', '/v1/memory/users/ada?issuer=https://idp')).items, 0)
  assert.equal((await admin('DELETE', '/v1/memory/users/ada')).items, 2)
  const {
    by,
    items: count,
    namespace,
  } = await record(({ action, user, items }) => action === 'memory.forgotten' && user === 'ada' && items === 2)
  assert.deepEqual([by, count, namespace], ['token:admin', 2, undefined])
  const file = await readFile(join(memoryDataDir, 'memory.jsonl'), 'utf8')
  assert.ok(file.includes('likes of bob') && !file.includes('of ada') && !file.includes('by ada'))
  assert.match(await of('ada').call('read', { store: 'people', key: 'k' }), /there is no item/)
  assert.equal((await of('bob').call('read', { store: 'people', key: 'k' })).text, 'likes of bob')
})
