import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { encodeBase64url, systemIds, TestClock } from '@plat/core'
import { loadSealKeys } from './key.ts'
import { createSealer, SEAL_KINDS, type SealBinding } from './seal.ts'

const clock = new TestClock()
const ids = systemIds(clock)
const key = (byte: number) => new Uint8Array(32).fill(byte)
const binding: SealBinding = { kind: 'mcp-session', tenant: '', session: 'ns/a/s', server: 'notes' }
const content = { id: 'upstream-1', target: 'ns/notes' }

test('a sealed id opens only for its binding', () => {
  const sealer = createSealer([key(1)], clock, ids)
  const text = sealer.seal(binding, content)
  assert.match(text, /^p1\.[A-Za-z0-9_-]+$/)
  assert.doesNotMatch(Buffer.from(text.slice(3), 'base64url').toString('latin1'), /upstream-1/)
  assert.deepEqual(sealer.open(binding, text), content)
  for (const other of [{ tenant: 't' }, { session: 'ns/a/s2' }, { server: 'other' }]) {
    assert.equal(sealer.open({ ...binding, ...other }, text), null)
  }
  assert.equal(sealer.open({ ...binding, session: 'ns/a', server: 's/notes' }, text), null)
})

test('a sealed value opens only as its kind, and contains the call that issued it', () => {
  const sealer = createSealer([key(1)], clock, ids)
  const origin = { call: 'c1', operation: 'mcp.call', method: 'tools/call', tool: 'add' } as const
  for (const kind of SEAL_KINDS) {
    const text = sealer.seal({ ...binding, kind }, { ...content, origin })
    const opening = SEAL_KINDS.filter((other) => sealer.open({ ...binding, kind: other }, text) !== null)
    assert.deepEqual(opening, [kind])
    assert.deepEqual(sealer.open({ ...binding, kind }, text), { ...content, origin })
  }
})

test('a sealed id with any byte changed does not open', () => {
  const sealer = createSealer([key(1)], clock, ids)
  const bytes = Buffer.from(sealer.seal(binding, content).slice(3), 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(sealer.open(binding, `p1.${encodeBase64url(changed)}`), null, `byte ${at}`)
    assert.equal(sealer.open(binding, `p1.${encodeBase64url(bytes.subarray(0, at))}`), null, `first ${at} bytes`)
  }
  for (const odd of ['', 'p1.', 'p2.AAAA', 'upstream-1', `p1.${bytes.toString('base64')}=`]) {
    assert.equal(sealer.open(binding, odd), null)
  }
})

test('the first key seals, all open', () => {
  const before = createSealer([key(1)], clock, ids).seal(binding, content)
  const rotated = createSealer([key(2), key(1)], clock, ids)
  assert.deepEqual(rotated.open(binding, before), content)
  const after = rotated.seal(binding, content)
  assert.equal(createSealer([key(1)], clock, ids).open(binding, after), null)
  assert.deepEqual(createSealer([key(2)], clock, ids).open(binding, after), content)
})

test('a seal key is generated once in the state folder, readable only by its owner; an error names a malformed key', async () => {
  const stateDir = await mkdtemp(join(tmpdir(), 'plat-'))
  const made = await loadSealKeys({ env: {}, stateDir, ids })
  assert.deepEqual(await loadSealKeys({ env: {}, stateDir, ids }), made)
  assert.equal((await stat(join(stateDir, 'seal-key'))).mode & 0o777, 0o600)
  assert.equal((await readFile(join(stateDir, 'seal-key'), 'utf8')).trim().length, 43)
  const two = `${encodeBase64url(key(1))},${encodeBase64url(key(2))}`
  assert.deepEqual(
    (await loadSealKeys({ env: { PLAT_SEAL_KEY: two }, stateDir, ids })).map((one) => one[0]),
    [1, 2],
  )
  await assert.rejects(loadSealKeys({ env: { PLAT_SEAL_KEY: 'c2hvcnQ' }, stateDir, ids }), /PLAT_SEAL_KEY: key 1/)
  await writeFile(join(stateDir, 'seal-key'), 'broken')
  await assert.rejects(loadSealKeys({ env: {}, stateDir, ids }), /seal-key: key 1/)
  await rm(stateDir, { recursive: true })
})
