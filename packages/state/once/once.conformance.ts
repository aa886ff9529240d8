import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import type { OnceSet, OnceSets } from './once.ts'

/** A backend under test: two replicas with a shared store. For the memory backend both are the same. */
export interface OnceBackend {
  readonly name: string
  open(clock: TestClock): Promise<readonly [OnceSets, OnceSets]>
}

type Check = (clock: TestClock, one: OnceSet, other: OnceSet) => Promise<void>

const CAP = 1000

export function oncePromises(backend: OnceBackend): void {
  let tests = 0
  const promise = (name: string, check: Check) => {
    // Each test uses a separate set.
    const set = `test-${++tests}`
    test(`${backend.name}: ${name}`, async () => {
      const clock = new TestClock()
      const [one, other] = await backend.open(clock)
      try {
        await check(clock, one.set(set, CAP), other.set(set, CAP))
      } finally {
        for (const sets of new Set([one, other])) await sets.close()
      }
    })
  }
  claiming(promise)
  taking(promise)
  sharing(backend)
}

function claiming(promise: (name: string, check: Check) => void): void {
  promise('of many inserts of one key exactly one wins, across replicas', async (clock, one, other) => {
    const until = clock.now() + 1000
    const tries = Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? one : other).insert('key', `value ${n}`, until))
    const verdicts = await Promise.all(tries)
    const winner = verdicts.indexOf('inserted')
    assert.deepEqual(
      verdicts.filter((verdict) => verdict !== 'taken'),
      ['inserted'],
    )
    assert.equal(await other.get('key'), `value ${winner}`)
    assert.equal(await one.get('key'), `value ${winner}`)
  })

  promise('an entry exists until its end, and can be inserted again after it', async (clock, one, other) => {
    assert.equal(await one.insert('key', 'first', clock.now() + 1000), 'inserted')
    await clock.advance(999)
    assert.equal(await other.get('key'), 'first')
    assert.equal(await other.insert('key', 'second', clock.now() + 1000), 'taken')
    await clock.advance(1)
    assert.equal(await other.get('key'), null)
    assert.equal(await other.take('key'), null)
    assert.equal(await other.insert('key', 'second', clock.now() + 1000), 'inserted')
    assert.equal(await one.get('key'), 'second')
  })

  promise('any text is a distinct key', async (clock, one, other) => {
    const keys = [
      '',
      ' ',
      'a',
      'A',
      'a\0',
      'a\0b',
      'ä',
      'a\u0308',
      '\u{1f600}',
      "'; DROP TABLE plat_once; --",
      'x'.repeat(10_000),
    ]
    for (const key of keys)
      assert.equal(await one.insert(key, `of ${keys.indexOf(key)}`, clock.now() + 1000), 'inserted')
    for (const key of keys) assert.equal(await other.get(key), `of ${keys.indexOf(key)}`)
  })
}

function taking(promise: (name: string, check: Check) => void): void {
  promise('of many takes of one key exactly one gets its value', async (clock, one, other) => {
    await one.insert('key', 'value', clock.now() + 1000)
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? one : other).take('key')))
    assert.deepEqual(
      answers.filter((answer) => answer !== null),
      ['value'],
    )
    assert.equal(await one.get('key'), null)
    assert.equal(await other.insert('key', 'again', clock.now() + 1000), 'inserted')
  })
}

function sharing(backend: OnceBackend): void {
  test(`${backend.name}: a caller at its share is refused while another is served, and has room when an entry ends`, async () => {
    const clock = new TestClock()
    const [sets, other] = await backend.open(clock)
    const pool = new SharedPool({ name: 'nonces', total: 10, shares: [2] })
    const set = sets.set('shared', pool)
    const insert = (key: string, caller: string, ms = 1000) => set.insert(key, '', clock.now() + ms, caller)
    try {
      assert.equal(await insert('1', 'a'), 'inserted')
      assert.equal(await insert('2', 'a', 2000), 'inserted')
      assert.equal(await insert('3', 'a'), 'full')
      assert.equal(await insert('4', 'b'), 'inserted')
      assert.equal(await set.take('1'), '')
      assert.equal(await insert('2', 'a'), 'taken')
      assert.equal(await insert('5', 'a'), 'inserted')
      assert.equal(await insert('6', 'a'), 'full')
      await clock.advance(1000)
      assert.equal(await insert('6', 'a'), 'inserted')
      assert.equal(pool.used, 2)
    } finally {
      for (const each of new Set([sets, other])) await each.close()
    }
  })
}
