import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { silentLog } from '@plat/process'
import { DropFolder } from './drop.ts'
import { setUp } from './testing/fixture.ts'

async function dropping(t: TestContext) {
  const g = await setUp()
  const { bundles, store } = await g.open()
  const dir = path.join(path.dirname(g.dir), 'drop')
  await mkdir(dir)
  const problems: object[] = []
  const log = { ...silentLog, error: (fields: object) => void problems.push(fields) }
  const drop = new DropFolder({ dir, everyMs: 30_000, maxBytes: 1024 * 1024, bundles, clock: g.clock, log })
  t.after(() => drop.close())
  return {
    g,
    drop,
    dir,
    problems,
    revision: () => store.inForce?.revision ?? 0,
    put: (name: string, bytes: Uint8Array) => writeFile(path.join(dir, name), bytes),
  }
}

test('a bundle that is still being copied is checked again, and counted once the copy ends', async (t) => {
  const { g, drop, put, revision } = await dropping(t)
  const whole = g.bundle(1, { a: '1' })
  await put('1.tgz', whole.subarray(0, 300))
  await drop.look()
  assert.deepEqual([revision(), g.refused], [0, []])
  await put('1.tgz', whole)
  await drop.look()
  assert.deepEqual([revision(), g.refused], [1, []])
  await put('2.tgz', g.bundle(2, { a: '2' }).subarray(0, 300))
  await drop.look()
  await drop.look()
  await drop.look()
  assert.deepEqual([revision(), g.refused], [1, ['malformed']])
})

test('each bundle is checked once, in name order, and again when it changes', async (t) => {
  const { g, drop, put, revision } = await dropping(t)
  await put('b.tar.gz', g.bundle(2, { a: '2' }))
  await put('a.tgz', g.bundle(1, { a: '1' }))
  await put('.hidden.tgz', g.bundle(9, { a: '9' }))
  await put('c.tar', g.bundle(9, { a: '9' }))
  await drop.look()
  assert.equal(g.records.length, 2)
  assert.equal(revision(), 2)
  await drop.look()
  assert.deepEqual(g.refused, [])
  await put('a.tgz', g.bundle(3, { a: 'three' }))
  await drop.look()
  assert.equal(revision(), 3)
})

test('a bundle that is not valid yet is applied once it is', async (t) => {
  const { g, drop, put, revision } = await dropping(t)
  const notBefore = Math.floor(g.clock.now() / 1000) + 600
  await put('1.tgz', g.bundle(1, { a: '1' }, { notBefore }))
  await drop.look()
  assert.equal(revision(), 0)
  await g.clock.advance(600_000)
  await drop.look()
  assert.equal(revision(), 1)
})

test('a missing folder is logged once, and used once it appears', async (t) => {
  const { g, drop, dir, put, problems, revision } = await dropping(t)
  await rm(dir, { recursive: true })
  await drop.look()
  await drop.look()
  assert.equal(problems.length, 1)
  await mkdir(dir)
  await put('1.tgz', g.bundle(1, { a: '1' }))
  await drop.look()
  assert.equal(revision(), 1)
})
