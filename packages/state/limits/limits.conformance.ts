import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Hold, type HoldItem, isShort, type Limits, type Short } from './limits.ts'
import { windowOf } from './window.ts'

/** A backend under test. Every test uses separate keys. */
export interface LimitsBackend {
  readonly name: string
  open(): Promise<Limits>
}

const usd = (key: string, cap: number, amount: number): HoldItem => ({
  key,
  window: 'life',
  cap,
  amount,
  unit: 'micros',
})

function heldOf(answer: Hold | Short): Hold {
  if (isShort(answer)) assert.fail(`short of ${answer.key}`)
  return answer
}

/** A minute from now, by the deciding clock. */
const soon = (limits: Limits) => limits.now() + 60_000

/** Conformance tests of every counter of money, rates and tokens. */
export function limitsPromises(backend: LimitsBackend): void {
  const { name } = backend
  const promise = (what: string, check: (limits: Limits) => Promise<void>) =>
    test(`${name}: ${what}`, async () => check(await backend.open()))
  taking(promise)
  settling(promise)
  counting(promise)

  promise('a window that has ended starts from zero', async (limits) => {
    const inWindow = (window: string) => ({ ...usd('rate/a', 1, 1), window })
    heldOf(await limits.take('1', [inWindow('2099-11-20')], soon(limits)))
    assert.ok(isShort(await limits.take('2', [inWindow('2099-11-20')], soon(limits))))
    heldOf(await limits.take('3', [inWindow('2099-11-21')], soon(limits)))
  })

  promise('an amount counts until its window ends by the deciding clock, and not in the next one', async (limits) => {
    const item = () => ({ ...usd('rate/clock', 2, 1), window: windowOf(limits.now(), 1_000_000) })
    const [first, second, third] = [item(), item(), item()]
    heldOf(await limits.take('w1', [first], soon(limits)))
    heldOf(await limits.take('w2', [second], soon(limits)))
    assert.ok(isShort(await limits.take('w3', [third], soon(limits))))
    const next = { ...third, window: windowOf(limits.now() + 1_000_000_000, 1_000_000) }
    heldOf(await limits.take('w3', [next], soon(limits)))
  })

  promise(
    'an id whose hold was released or refused can be used again, and its older hold has no effect',
    async (limits) => {
      const first = heldOf(await limits.take('again', [usd('usd/again', 10, 6)], soon(limits)))
      await first.release()
      const second = heldOf(await limits.take('again', [usd('usd/again', 10, 7)], soon(limits)))
      await first.release()
      assert.deepEqual(await limits.used('usd/again', 'life'), { spent: 0, held: 7 })
      await second.settle(new Map([['usd/again', 1]]))
      assert.ok(isShort(await limits.take('again', [usd('usd/again', 10, 10)], soon(limits))))
      heldOf(await limits.take('again', [usd('usd/again', 10, 9)], soon(limits)))
      assert.deepEqual(await limits.used('usd/again', 'life'), { spent: 1, held: 9 })
    },
  )

  promise('10,000 concurrent takes never pass the cap and use all of it', async (limits) => {
    const answers = await Promise.all(
      Array.from(
        { length: 10_000 },
        async (_, at) =>
          await limits.take(`p${at}`, [usd('usd/p', 5_000, 5)], soon(limits), [`agent${at % 10}`, `s${at}`]),
      ),
    )
    const holds = answers.filter((answer): answer is Hold => !isShort(answer))
    assert.equal(holds.length, 1_000)
    assert.deepEqual(await limits.used('usd/p', 'life'), { spent: 0, held: 5_000 })
    await Promise.all(holds.map((hold, at) => (at % 2 === 0 ? hold.release() : hold.settle(new Map([['usd/p', 3]])))))
    assert.deepEqual(await limits.used('usd/p', 'life'), { spent: 1_500, held: 0 })
  })
}

type Promised = (what: string, check: (limits: Limits) => Promise<void>) => void

function taking(promise: Promised): void {
  promise('an item that fits is held, one that does not is refused with the remaining amount', async (limits) => {
    const hold = heldOf(await limits.take('1', [usd('usd/a', 10, 7)], soon(limits)))
    assert.deepEqual(hold.items, [usd('usd/a', 10, 7)])
    const short = await limits.take('2', [usd('usd/a', 10, 4)], soon(limits))
    assert.deepEqual(short, { kind: 'short', key: 'usd/a', left: 3, resetsAt: null })
    assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 0, held: 7 })
  })

  promise('a take is all or nothing', async (limits) => {
    heldOf(await limits.take('1', [usd('usd/b', 10, 10)], soon(limits)))
    const short = await limits.take('2', [usd('usd/c', 10, 1), usd('usd/b', 10, 1)], soon(limits))
    assert.ok(isShort(short) && short.key === 'usd/b')
    assert.deepEqual(await limits.used('usd/c', 'life'), { spent: 0, held: 0 })
  })

  promise('the same id gets the same result, and counts once', async (limits) => {
    const first = heldOf(await limits.take('1', [usd('usd/d', 10, 6)], soon(limits)))
    const again = heldOf(await limits.take('1', [usd('usd/d', 10, 6)], soon(limits)))
    assert.deepEqual(again.items, first.items)
    assert.deepEqual(await limits.used('usd/d', 'life'), { spent: 0, held: 6 })
    await assert.rejects(async () => limits.take('1', [usd('usd/d', 10, 1)], soon(limits)))
  })

  promise('an amount or a cap that is not a whole number from 0 on is refused', async (limits) => {
    for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      await assert.rejects(async () => limits.take('1', [usd('usd/e', 10, wrong)], soon(limits)), RangeError)
      await assert.rejects(async () => limits.take('1', [usd('usd/e', wrong, 1)], soon(limits)), RangeError)
    }
    await assert.rejects(async () => limits.take('1', [{ ...usd('usd/e', 1, 1), window: 'tomorrow' }], soon(limits)))
    await assert.rejects(
      async () => limits.take('1', [usd('usd/e', 9, 1), usd('usd/e', 9, 1)], soon(limits)),
      RangeError,
    )
    assert.deepEqual(await limits.used('usd/e', 'life'), { spent: 0, held: 0 })
  })

  promise('a hold can grow, all or nothing', async (limits) => {
    const hold = heldOf(await limits.take('1', [usd('usd/f', 10, 4)], soon(limits)))
    assert.equal(await hold.extend([usd('usd/f', 10, 5), usd('usd/g', 10, 1)]), null)
    assert.deepEqual(hold.items, [usd('usd/f', 10, 9), usd('usd/g', 10, 1)])
    assert.equal((await hold.extend([usd('usd/g', 10, 1), usd('usd/f', 10, 2)]))?.left, 1)
    await hold.settle(new Map([['usd/f', 2]]))
    assert.deepEqual(await limits.used('usd/f', 'life'), { spent: 2, held: 0 })
    assert.deepEqual(await limits.used('usd/g', 'life'), { spent: 1, held: 0 })
  })
}

const SUBJECTS = [
  '',
  'ada',
  'https://idp.example#ada',
  'a/b',
  'ä€😀',
  '%_\\',
  '\0',
  '\n',
  '\ud800',
  '"',
  `sha256:${'0'.repeat(64)}`,
]

function counting(promise: Promised): void {
  promise('subjects of a template are counted separately, whatever characters their names have', async (limits) => {
    const items = SUBJECTS.map((subject) => ({ ...usd(`usd/each/t/${subject}`, 10, 6), window: '2099-11-20' }))
    const holds: Hold[] = []
    for (const [at, item] of items.entries()) holds.push(heldOf(await limits.take(`e${at}`, [item], soon(limits))))
    for (const [at, item] of items.entries())
      assert.ok(isShort(await limits.take(`f${at}`, [item], soon(limits))), JSON.stringify(item.key))
    for (const hold of holds) await hold.settle(new Map([[hold.items[0]?.key ?? '', 1]]))
    for (const { key, window } of items) assert.deepEqual(await limits.used(key, window), { spent: 1, held: 0 })
  })
}

function settling(promise: Promised): void {
  promise('a settle counts the spent amount in every window of the key, once', async (limits) => {
    const days = ['2099-11-20', '2099-11'].map((window) => ({ ...usd('usd/h', 10, 6), window }))
    const hold = heldOf(await limits.take('1', days, soon(limits)))
    assert.equal(hold.settled, null)
    await hold.settle(new Map([['usd/h', 2]]))
    await hold.settle(new Map([['usd/h', 5]]))
    await hold.release()
    for (const { window } of days) assert.deepEqual(await limits.used('usd/h', window), { spent: 2, held: 0 })
    assert.deepEqual(hold.settled, new Map([['usd/h', 2]]))
  })

  promise('a release returns everything, and a key omitted from a settle is spent in full', async (limits) => {
    const given = heldOf(await limits.take('1', [usd('usd/i', 10, 6)], soon(limits)))
    await given.release()
    assert.deepEqual(
      [given.settled, await limits.used('usd/i', 'life')],
      [new Map([['usd/i', 0]]), { spent: 0, held: 0 }],
    )
    await heldOf(await limits.take('2', [usd('usd/i', 10, 6)], soon(limits))).settle(new Map())
    assert.deepEqual(await limits.used('usd/i', 'life'), { spent: 6, held: 0 })
  })

  promise('an overrun counts as spent, and nothing is left of the cap', async (limits) => {
    await heldOf(await limits.take('1', [usd('usd/j', 10, 6)], soon(limits))).settle(new Map([['usd/j', 12]]))
    assert.deepEqual(await limits.used('usd/j', 'life'), { spent: 12, held: 0 })
    const short = await limits.take('2', [usd('usd/j', 10, 1)], soon(limits))
    assert.ok(isShort(short) && short.left === 0)
  })

  promise('a hold whose owner is gone counts as spent in full', async (limits) => {
    heldOf(await limits.take('1', [usd('usd/k', 10, 6)], limits.now()))
    assert.deepEqual(await limits.used('usd/k', 'life'), { spent: 6, held: 0 })
  })
}
