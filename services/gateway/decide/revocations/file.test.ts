import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import { ListFile, STALE_AFTER_MS } from './file.ts'
import { type DecodedFile, decodeFile, MAX_REVOCATIONS } from './format.ts'

const folder = tempFolder()

const createdAt = '2026-01-01T00:00:00Z'
const text = (...revocations: readonly unknown[]) => JSON.stringify({ version: 1, revocations })
const decode = (source: string) => decodeFile(Buffer.from(source))

test('each target of the format is decoded, with defaults for absent members', () => {
  const targets = [
    { jti: 'a' },
    { session: 'ns/agent/s-1' },
    { agent: 'ns/agent' },
    { namespace: 'ns' },
    { user: 'Ada L. <ada@example.com>' },
    { tenant: 'acme' },
    { all: true },
  ]
  const read = decode(text(...targets.map((target, n) => ({ id: `r${n}`, target, createdAt }))))
  assert.ok('entries' in read)
  assert.deepEqual(
    read.entries.map(({ target, mode, reason, expiresAt }) => ({ target, mode, reason, expiresAt })),
    targets.map((target) => ({ target, mode: 'revoke', reason: '', expiresAt: null })),
  )
})

test('one problem rejects the whole file and is reported with its path', () => {
  const good = { id: 'r1', target: { user: 'ada' }, createdAt }
  const wrong: readonly [string, RegExp][] = [
    ['', /end|empty|JSON/i],
    ['{"version":1}', /revocations/],
    [text({ ...good, target: {} }), /^revocations\[0\]\.target: /],
    [text({ ...good, target: { user: 'ada', all: true } }), /^revocations\[0\]\.target: /],
    [text({ ...good, target: { all: false } }), /^revocations\[0\]\.target\.all: /],
    [text(good, { ...good, id: 'r2', target: { agent: 'ns/*' } }), /^revocations\[1\]\.target\.agent: /],
    [text({ ...good, target: { session: 'ns/agent' } }), /^revocations\[0\]\.target\.session: /],
    [text({ ...good, target: { user: '' } }), /^revocations\[0\]\.target\.user: /],
    [text({ ...good, mode: 'pause' }), /^revocations\[0\]\.mode: /],
    [text({ ...good, expiresAt: 'tomorrow' }), /^revocations\[0\]\.expiresAt: /],
    [text({ ...good, expiresAt: '2026-13-01T00:00:00Z' }), /^revocations\[0\]\.expiresAt: not a valid time/],
    [text({ ...good, createdAt: undefined }), /createdAt/],
    [text(good, good), /^revocations\[1\]\.id: "r1" is a duplicate/],
    [text({ ...good, until: createdAt }), /until|additional/],
    [text(good).replace('"id"', '"id":"r0","id"'), /duplicate|twice/i],
  ]
  for (const [source, expected] of wrong) {
    const read = decode(source)
    assert.ok('problems' in read, source)
    assert.match(read.problems.join('\n'), expected, source)
  }
  const strange = decode(JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`m${at}`, 1]))))
  assert.deepEqual('problems' in strange && strange.problems, [
    'must be an object of version and revocations, and has 50000 members',
  ])
  const long = 'a'.repeat(1_000_000)
  for (const [source, expected] of [
    [
      `{"${long}":1}`,
      'must be an object of version and revocations, and has a member whose name has 1000000 characters',
    ],
    [text({ ...good, [long]: 1 }), 'revocations[0]: has a member whose name has 1000000 characters'],
    [text({ ...good, target: { [long]: 1 } }), 'revocations[0].target: has a member whose name has 1000000 characters'],
    [text({ ...good, target: Array(50).fill({}) }), 'revocations[0].target: is a list of 50 elements'],
  ] as const) {
    const refused = decode(source)
    assert.deepEqual('problems' in refused && refused.problems, [expected])
  }
  assert.ok('problems' in decode('{"version":1,"revocations":[],"more":1}'))
  const many = decode(text(...Array.from({ length: MAX_REVOCATIONS + 1 }, () => good)))
  assert.ok('problems' in many)
})

function watched(path: string, clock: TestClock) {
  const seen: (DecodedFile | readonly string[])[] = []
  const note = (one: DecodedFile | readonly string[]) => void seen.push(one)
  const file = new ListFile({ path, everyMs: 250, clock, onList: note, onLost: note })
  return { file, seen }
}

test('a list is trusted from its first check until the file becomes invalid', async () => {
  const path = join(folder, 'list.json')
  const clock = new TestClock()
  const { file, seen } = watched(path, clock)
  assert.equal(file.ok, false)
  await file.check()
  assert.equal(file.ok, false)
  writeFileSync(path, text())
  await file.check()
  assert.equal(file.ok, true)
  writeFileSync(path, '[]')
  await file.check()
  assert.equal(file.ok, false)
  writeFileSync(path, text())
  await file.check()
  assert.equal(file.ok, true)
  assert.deepEqual(
    seen.map((one) => !Array.isArray(one)),
    [false, true, false, true],
  )
  file.stop()
})

test('a list that could not be checked for too long is not trusted until the next check', async () => {
  const path = join(folder, 'stale.json')
  writeFileSync(path, text())
  const clock = new TestClock()
  const { file } = watched(path, clock)
  await file.check()
  file.stop()
  await clock.advance(250 + STALE_AFTER_MS)
  assert.equal(file.ok, true)
  await clock.advance(1)
  assert.equal(file.ok, false)
  const { file: again } = watched(path, clock)
  await again.check()
  assert.equal(again.ok, true)
  again.stop()
})
