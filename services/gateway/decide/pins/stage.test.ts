import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { createMemoryJournal } from '@plat/state'
import { deny, isDenial } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { PinBook, SERVERS_MAX } from './book.ts'
import { definitionDigest, offeredTools } from './definition.ts'
import type { PinEvent } from './events.ts'
import type { PinRules } from './rules.ts'
import { createPinStage, type PinnedCall } from './stage.ts'

const CACHE_MS = 60_000
const READ = { name: 'read' }

function callOf(tool: string | null): PinnedCall {
  return testCall({ identity: testIdentity, target: { ...testTarget, tool } }, { name: tool })
}

/** The stage over a server that offers `tools`, or fails while it is null. */
async function setUp(rules: Partial<PinRules>) {
  const clock = new TestClock()
  const journal = createMemoryJournal<PinEvent>(() => clock.now())
  const book = await PinBook.open({ journal, clock, onNotice() {}, onFault: (error) => assert.fail(String(error)) })
  const server: { tools: readonly object[] | null; lists: number } = { tools: [READ], lists: 0 }
  const reported: string[] = []
  const all: PinRules = { mode: 'enforce', onChange: 'hide', allowUnpinned: false, pins: new Map(), ...rules }
  const stage = createPinStage({
    book,
    clock,
    rules: () => all,
    async list() {
      server.lists++
      return server.tools ?? deny('upstream_error', 'down')
    },
    cacheMs: CACHE_MS,
    onFault: (error) => void reported.push(String(error)),
    onRefused: (name, event) => void reported.push(`${name} ${event}`),
  })
  const admit = async (tool: string | null) => {
    const verdict = await stage.admit(callOf(tool))
    if (isDenial(verdict)) return verdict.code
    return 'pin' in Object(verdict) ? 'passed' : assert.fail('neither facts nor denial')
  }
  return { clock, book, all, server, reported, admit }
}

const pinned = { pins: new Map([['read', new Set([definitionDigest(READ) ?? ''])]]) }

test('the tools of a server are fetched once per pinCacheSeconds for any number of calls', async () => {
  // Shows D3.mcp.pinCacheSeconds.
  const { clock, server, admit } = await setUp(pinned)
  assert.deepEqual(await Promise.all([admit('read'), admit('read'), admit('read')]), ['passed', 'passed', 'passed'])
  assert.equal(server.lists, 1)
  await clock.advance(CACHE_MS)
  assert.equal(await admit('read'), 'passed')
  assert.equal(server.lists, 1)
  await clock.advance(1)
  server.tools = [{ ...READ, description: 'changed' }]
  assert.equal(await admit('read'), 'tool_pin_mismatch')
  assert.equal(server.lists, 2)
})

test('a tool that the server does not list is refused without repeated fetches', async () => {
  const { clock, server, reported, admit } = await setUp(pinned)
  for (let calls = 0; calls < 3; calls++) assert.equal(await admit('gone'), 'tool_pin_mismatch')
  assert.deepEqual([server.lists, reported.length], [1, 3])
  await clock.advance(CACHE_MS + 1)
  assert.equal(await admit('gone'), 'tool_pin_mismatch')
  assert.equal(server.lists, 2)
})

test('while a server cannot list its tools, enforce refuses and retries, and learn passes calls and fetches once', async () => {
  const strict = await setUp(pinned)
  strict.server.tools = null
  assert.equal(await strict.admit('read'), 'upstream_error')
  assert.equal(await strict.admit('read'), 'upstream_error')
  assert.equal(strict.server.lists, 2)
  strict.server.tools = [READ]
  assert.equal(await strict.admit('read'), 'passed')
  const learning = await setUp({ mode: 'learn' })
  learning.server.tools = null
  for (let calls = 0; calls < 3; calls++) assert.equal(await learning.admit('read'), 'passed')
  assert.equal(learning.server.lists, 1)
})

test('a definition without a canonical form is never learned: another one does not match it', async () => {
  const { book, all } = await setUp({ mode: 'learn' })
  const formless = (description: string) => offeredTools([{ ...READ, description }])
  assert.deepEqual(book.observe('default/notes', all, await formless('\ud800')), ['unpinned'])
  assert.deepEqual(book.observe('default/notes', { ...all, mode: 'enforce' }, await formless('other \udfff')), [
    'unpinned',
  ])
  assert.deepEqual(book.observe('default/notes', all, await offeredTools([READ])), ['pinned'])
  assert.deepEqual(book.observe('default/notes', all, await formless('\ud800')), ['drifted'])
})

test('beyond SERVERS_MAX the least recently seen server is evicted', async () => {
  const { book, all } = await setUp({})
  for (let number = 0; number < SERVERS_MAX; number++) book.observe(`default/s${number}`, all, [])
  book.observe('default/s0', all, [])
  book.observe('default/more', all, [])
  assert.notEqual(book.seenAt('default/s0'), null)
  assert.equal(book.seenAt('default/s1'), null)
  assert.equal([...book.servers()].length, SERVERS_MAX)
})

test('calls that name no tool fetch no list', async () => {
  const { server, admit } = await setUp(pinned)
  assert.equal(await admit(null), 'passed')
  assert.equal(server.lists, 0)
})

test('definitions learned or accepted on one replica apply on the others', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<PinEvent>(() => clock.now())
  const open = () => PinBook.open({ journal, clock, onNotice() {}, onFault: (error) => assert.fail(String(error)) })
  const [one, other] = [await open(), await open()]
  const rules: PinRules = { mode: 'learn', onChange: 'hide', allowUnpinned: false, pins: new Map() }
  const [first] = await offeredTools([READ])
  const [changed] = await offeredTools([{ ...READ, description: 'another' }])
  assert.ok(first !== undefined && changed !== undefined)
  assert.deepEqual(one.observe('s', rules, [first]), ['pinned'])
  assert.equal(other.standing('s', rules, first), 'pinned')
  assert.deepEqual(other.observe('s', rules, [changed]), ['drifted'])
  await other.decide('s', 'accepted', { tool: 'read', digest: changed.digest, by: 'user:ada' })
  assert.deepEqual([one.standing('s', rules, changed), one.standing('s', rules, first)], ['pinned', 'drifted'])
  for (const book of [one, other]) book.close()
})
