import assert from 'node:assert/strict'
import { readdir, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { systemFiles } from '@plat/state'
import { type BundleFixture, setUp, type Texts } from './testing/fixture.ts'

/** The files of the bundle folder, as the gateway reads them. */
async function seen({ dir }: BundleFixture): Promise<Texts> {
  const names = (await readdir(dir, { recursive: true })).filter((name) => !name.startsWith('.'))
  const texts: Record<string, string> = {}
  for (const name of names.toSorted()) {
    const text = await readFile(path.join(dir, name), 'utf8').catch(() => null)
    if (text !== null) texts[name] = text
  }
  return texts
}

test('a bundle is applied as a whole, recorded, and replaced as a whole by the next', async () => {
  // Shows D3.configBundle.dir and D3.configBundle.trustedKeyFiles.
  const g = await setUp()
  const { take, store } = await g.open()
  assert.equal(g.revision(), 0)
  const one = { 'policies.json': 'p1', 'upstreams.json': 'u1' }
  assert.deepEqual(await take(g.bundle(1, one)), { kind: 'applied', issuer: 'ops', revision: 1 })
  assert.deepEqual(await seen(g), one)
  await take(g.bundle(2, { 'policies.json': 'p2', 'budgets.json': 'b2' }))
  assert.deepEqual(await seen(g), { 'policies.json': 'p2', 'budgets.json': 'b2' })
  assert.equal(g.revision(), 2)
  assert.equal((await readdir(path.join(g.dir, '.revisions'))).length, 1)
  const { id } = store.inForce ?? assert.fail()
  assert.deepEqual(g.records.at(-1), { kind: 'config', bundle: 2, issuer: 'ops', id, source: 'push' })
})

test('files in subfolders keep their paths', async () => {
  const g = await setUp()
  const { take } = await g.open()
  await take(g.bundle(1, { 'a/b/c.json': 'deep', 'a/d.json': 'near' }))
  assert.equal(await readFile(path.join(g.dir, 'a/b/c.json'), 'utf8'), 'deep')
  assert.equal(await readFile(path.join(g.dir, 'a/d.json'), 'utf8'), 'near')
})

test('a revision must follow the one in force; the same bundle again changes nothing', async () => {
  const g = await setUp()
  const { verdict } = await g.open()
  const five = g.bundle(5, { a: '5' })
  assert.equal(await verdict(five), 'applied')
  assert.equal(await verdict(five), 'unchanged')
  assert.equal(await verdict(g.bundle(5, { a: 'other' })), 'revision')
  assert.equal(await verdict(g.bundle(4, { a: '4' })), 'revision')
  assert.deepEqual(await seen(g), { a: '5' })
  assert.equal(await verdict(g.bundle(9, { a: '9' })), 'applied')
  assert.deepEqual(g.refused, ['revision', 'revision'])
  assert.equal(g.records.length, 2)
})

test('a restart keeps the bundle in force and still refuses older ones', async () => {
  // Shows D3.configBundle.statePath.
  const g = await setUp()
  const five = g.bundle(5, { a: '5' })
  await (await g.open()).take(five)
  const { verdict, store } = await g.open()
  assert.deepEqual([store.inForce?.revision, g.revision()], [5, 5])
  assert.deepEqual(await seen(g), { a: '5' })
  assert.equal(await verdict(g.bundle(4, { a: '4' })), 'revision')
  assert.equal(await verdict(five), 'unchanged')
})

test('bundles with untrusted or too few signatures are refused', async () => {
  // Shows D3.configBundle.signaturePolicy.classical, D3.configBundle.signaturePolicy.hybrid, D3.configBundle.signaturePolicy.pq.
  // Shows D3.configBundle.signaturePolicy.
  const pq = ephemeralSigner('ML-DSA-65')
  const stranger = ephemeralSigner()
  const verdictsOf = async (signaturePolicy: 'classical' | 'hybrid' | 'pq') => {
    const g = await setUp({ signaturePolicy, keys: [pq] })
    const { verdict } = await g.open()
    const kinds = [[stranger], [g.signer], [pq], [stranger, g.signer, pq]]
    return Promise.all(kinds.map((signers, index) => verdict(g.bundle(index + 1, { a: 'x' }, {}, signers))))
  }
  assert.deepEqual(await verdictsOf('classical'), ['signature', 'applied', 'signature', 'applied'])
  assert.deepEqual(await verdictsOf('pq'), ['signature', 'signature', 'applied', 'applied'])
  assert.deepEqual(await verdictsOf('hybrid'), ['signature', 'signature', 'signature', 'applied'])
})

test('only configured issuers are accepted, any if none is configured', async () => {
  // Shows D3.configBundle.trustedIssuers.
  const any = await (await setUp()).open()
  const g = await setUp({ trustedIssuers: ['ops', 'security'] })
  const { verdict } = await g.open()
  assert.equal(await verdict(g.bundle(1, { a: 'x' }, { issuer: 'somebody' })), 'issuer')
  assert.equal(await verdict(g.bundle(1, { a: 'x' }, { issuer: 'security' })), 'applied')
  assert.equal(any.store.inForce, null)
})

test('a bundle that has expired is refused, one that is not valid yet waits, both with leeway', async () => {
  // Shows D3.configBundle.leewaySeconds.
  const g = await setUp({ leewaySeconds: 60 })
  const { verdict, take } = await g.open()
  const now = Math.floor(g.clock.now() / 1000)
  assert.equal(await verdict(g.bundle(1, { a: '1' }, { expiresAt: now - 61 })), 'time')
  assert.equal(await verdict(g.bundle(2, { a: '2' }, { expiresAt: now - 59 })), 'applied')
  const early = g.bundle(3, { a: '3' }, { notBefore: now + 100 })
  assert.equal(await verdict(early), 'waits')
  assert.equal(await verdict(g.bundle(3, { a: '3' }, { issuedAt: now + 61 })), 'waits')
  await g.clock.advance(41_000)
  assert.equal(await verdict(early), 'applied')
  // A bundle in force does not expire.
  const short = g.bundle(4, { a: '4' }, { expiresAt: now + 60 })
  await take(short)
  await g.clock.advance(600_000)
  assert.equal(await verdict(short), 'unchanged')
  assert.deepEqual(g.refused, ['time'])
})

test('a bundle with a file that does not validate is refused with the problems of the file', async () => {
  const problemsOf = (files: ReadonlyMap<string, Uint8Array>) => (files.has('bad') ? ['bad: is bad', 'bad: very'] : [])
  const g = await setUp({ options: { problemsOf } })
  const { take } = await g.open()
  await take(g.bundle(1, { good: '1' }))
  const result = await take(g.bundle(2, { good: '2', bad: 'x' }))
  assert.deepEqual(result, { kind: 'refused', reason: 'content', message: 'bad: is bad; bad: very' })
  assert.deepEqual(await seen(g), { good: '1' })
})

test('an unreadable bundle is refused, and one that is still being copied waits', async () => {
  // Shows D3.configBundle.maxBytes and D3.limit.bundles.
  const g = await setUp({ maxBytes: 4096 })
  const { verdict, take } = await g.open()
  const whole = g.bundle(1, { a: '1' })
  assert.equal((await take(whole.subarray(0, whole.length - 8), false)).kind, 'waits')
  assert.equal(await verdict(whole.subarray(0, whole.length - 8)), 'malformed')
  assert.equal(await verdict(g.bundle(1, { a: 'x'.repeat(10_000) })), 'size')
  assert.equal(await verdict(Buffer.alloc(5000)), 'size')
  assert.deepEqual(await seen(g), {})
})

test('a bundle that the ledger cannot record is not applied', async () => {
  const record = () => Promise.reject(new Error('the disk is full'))
  const g = await setUp({ options: { record } })
  const { take, store } = await g.open()
  await assert.rejects(take(g.bundle(1, { a: '1' })), /the disk is full/)
  assert.deepEqual([store.inForce, await seen(g)], [null, {}])
})

test('while the state cannot be written nothing changes, and the bundle can be offered again', async () => {
  const g = await setUp()
  let isFull = false
  const replace: typeof systemFiles.replace = (file, bytes) => {
    if (isFull) throw new Error('no space')
    systemFiles.replace(file, bytes)
  }
  const { take } = await g.open({ files: { ...systemFiles, replace } })
  await take(g.bundle(1, { a: '1' }))
  isFull = true
  const two = g.bundle(2, { a: '2' })
  await assert.rejects(take(two), /no space/)
  assert.deepEqual([await seen(g), g.revision()], [{ a: '1' }, 1])
  isFull = false
  assert.equal((await take(two)).kind, 'applied')
  assert.deepEqual(await seen(g), { a: '2' })
})

test('concurrent bundles are applied one after the other', async () => {
  const g = await setUp()
  const { take } = await g.open()
  const kinds = await Promise.all([3, 1, 7, 5].map((revision) => take(g.bundle(revision, { a: String(revision) }))))
  assert.deepEqual(
    kinds.map(({ kind }) => kind),
    ['applied', 'refused', 'applied', 'refused'],
  )
  assert.deepEqual(await seen(g), { a: '7' })
})

test('a file modified on disk is disabled at start, and the same bundle restores it', async () => {
  const g = await setUp()
  const one = g.bundle(1, { 'policies.json': 'good', other: 'x' })
  await (await g.open()).take(one)
  await writeFile(path.join(g.dir, 'policies.json'), 'evil')
  const { store, verdict } = await g.open()
  assert.equal(store.isPlaced, false)
  assert.deepEqual(await seen(g), {})
  assert.equal(await verdict(g.bundle(1, { 'policies.json': 'evil', other: 'x' })), 'revision')
  assert.equal(await verdict(one), 'applied')
  assert.deepEqual(await seen(g), { 'policies.json': 'good', other: 'x' })
})

test('links with wrong targets are repaired at start', async () => {
  const g = await setUp()
  await (await g.open()).take(g.bundle(1, { a: '1' }))
  await unlink(path.join(g.dir, '.current'))
  await symlink('.revisions/0-elsewhere', path.join(g.dir, '.current'))
  await g.open()
  assert.deepEqual(await seen(g), { a: '1' })
})

test('a gateway with missing or modified state does not start: it would accept an older bundle', async () => {
  const g = await setUp()
  await (await g.open()).take(g.bundle(1, { a: '1' }))
  const state = await readFile(g.statePath, 'utf8')
  await writeFile(g.statePath, state.replace('"revision":1', '"revision":"0"'))
  await assert.rejects(g.open(), /configBundle\.statePath .*is damaged; restore it from a backup/)
  await rm(g.statePath)
  await assert.rejects(g.open(), /configBundle\.statePath .*missing, though .* holds a bundle; put it back/)
})

test('a folder with foreign files is refused: they would be used as if they were signed', async () => {
  const g = await setUp()
  await g.open()
  await writeFile(path.join(g.dir, 'policies.json'), 'x')
  await assert.rejects(g.open(), /configBundle\.dir .*holds policies\.json, which belongs to no bundle; remove it/)
  await rm(path.join(g.dir, 'policies.json'))
  await symlink('/etc/passwd', path.join(g.dir, 'policies.json'))
  await assert.rejects(g.open(), /holds policies\.json/)
})
