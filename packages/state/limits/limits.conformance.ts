import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestClock } from '@plat/core'
import { type Hold, type HoldItem, isShort, type Limits, type Short } from './limits.ts'

/** A backend under test. Every test asks for keys of its own. */
export interface LimitsBackend {
  readonly name: string
  readonly clock: TestClock
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

/** What every counter of money, rates and tokens promises, whatever keeps it. */
export function limitsPromises(backend: LimitsBackend): void {
  const { clock, name } = backend
  const soon = () => clock.now() + 60_000
  const promise = (what: string, check: (limits: Limits) => Promise<void>) =>
    test(`${name}: ${what}`, async () => check(await backend.open()))
  taking(promise, soon)
  settling(promise, soon)

  promise('a window that is over starts from nothing', async (limits) => {
    const inWindow = (window: string) => ({ ...usd('rate/a', 1, 1), window })
    heldOf(await limits.take('1', [inWindow('2026-11-20')], soon()))
    assert.ok(isShort(await limits.take('2', [inWindow('2026-11-20')], soon())))
    heldOf(await limits.take('3', [inWindow('2026-11-21')], soon()))
  })

  promise('10,000 takes at once never pass the cap and use all of it', async (limits) => {
    const answers = await Promise.all(
      Array.from({ length: 10_000 }, async (_, at) => await limits.take(`p${at}`, [usd('usd/p', 5_000, 5)], soon())),
    )
    const holds = answers.filter((answer): answer is Hold => !isShort(answer))
    assert.equal(holds.length, 1_000)
    assert.deepEqual(await limits.used('usd/p', 'life'), { spent: 0, held: 5_000 })
    await Promise.all(holds.map((hold, at) => (at % 2 === 0 ? hold.release() : hold.settle(new Map([['usd/p', 3]])))))
    assert.deepEqual(await limits.used('usd/p', 'life'), { spent: 1_500, held: 0 })
  })
}

type Promised = (what: string, check: (limits: Limits) => Promise<void>) => void

function taking(promise: Promised, soon: () => number): void {
  promise('what fits is held, and what does not is refused with what is left', async (limits) => {
    const hold = heldOf(await limits.take('1', [usd('usd/a', 10, 7)], soon()))
    assert.deepEqual(hold.items, [usd('usd/a', 10, 7)])
    const short = await limits.take('2', [usd('usd/a', 10, 4)], soon())
    assert.deepEqual(short, { kind: 'short', key: 'usd/a', left: 3, resetsAt: null })
    assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 0, held: 7 })
  })

  promise('a take is all or nothing', async (limits) => {
    heldOf(await limits.take('1', [usd('usd/b', 10, 10)], soon()))
    const short = await limits.take('2', [usd('usd/c', 10, 1), usd('usd/b', 10, 1)], soon())
    assert.ok(isShort(short) && short.key === 'usd/b')
    assert.deepEqual(await limits.used('usd/c', 'life'), { spent: 0, held: 0 })
  })

  promise('the same id gets the same answer, and counts once', async (limits) => {
    const first = heldOf(await limits.take('1', [usd('usd/d', 10, 6)], soon()))
    const again = heldOf(await limits.take('1', [usd('usd/d', 10, 6)], soon()))
    assert.deepEqual(again.items, first.items)
    assert.deepEqual(await limits.used('usd/d', 'life'), { spent: 0, held: 6 })
    await assert.rejects(async () => limits.take('1', [usd('usd/d', 10, 1)], soon()))
  })

  promise('an amount or a cap that is no whole number from 0 on is refused', async (limits) => {
    for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      await assert.rejects(async () => limits.take('1', [usd('usd/e', 10, wrong)], soon()), RangeError)
      await assert.rejects(async () => limits.take('1', [usd('usd/e', wrong, 1)], soon()), RangeError)
    }
    await assert.rejects(async () => limits.take('1', [{ ...usd('usd/e', 1, 1), window: 'tomorrow' }], soon()))
    await assert.rejects(async () => limits.take('1', [usd('usd/e', 9, 1), usd('usd/e', 9, 1)], soon()), RangeError)
    assert.deepEqual(await limits.used('usd/e', 'life'), { spent: 0, held: 0 })
  })

  promise('a hold can grow, all or nothing', async (limits) => {
    const hold = heldOf(await limits.take('1', [usd('usd/f', 10, 4)], soon()))
    assert.equal(await hold.extend([usd('usd/f', 10, 5), usd('usd/g', 10, 1)]), null)
    assert.deepEqual(hold.items, [usd('usd/f', 10, 9), usd('usd/g', 10, 1)])
    assert.equal((await hold.extend([usd('usd/g', 10, 1), usd('usd/f', 10, 2)]))?.left, 1)
    await hold.settle(new Map([['usd/f', 2]]))
    assert.deepEqual(await limits.used('usd/f', 'life'), { spent: 2, held: 0 })
    assert.deepEqual(await limits.used('usd/g', 'life'), { spent: 1, held: 0 })
  })
}

function settling(promise: Promised, soon: () => number): void {
  promise('a settle counts what was spent in every window of the key, once', async (limits) => {
    const days = ['2026-11-20', '2026-11'].map((window) => ({ ...usd('usd/h', 10, 6), window }))
    const hold = heldOf(await limits.take('1', days, soon()))
    assert.equal(hold.settled, null)
    await hold.settle(new Map([['usd/h', 2]]))
    await hold.settle(new Map([['usd/h', 5]]))
    await hold.release()
    for (const { window } of days) assert.deepEqual(await limits.used('usd/h', window), { spent: 2, held: 0 })
    assert.deepEqual(hold.settled, new Map([['usd/h', 2]]))
  })

  promise('a release gives everything back, and a key that a settle leaves out is spent whole', async (limits) => {
    const given = heldOf(await limits.take('1', [usd('usd/i', 10, 6)], soon()))
    await given.release()
    assert.deepEqual(
      [given.settled, await limits.used('usd/i', 'life')],
      [new Map([['usd/i', 0]]), { spent: 0, held: 0 }],
    )
    await heldOf(await limits.take('2', [usd('usd/i', 10, 6)], soon())).settle(new Map())
    assert.deepEqual(await limits.used('usd/i', 'life'), { spent: 6, held: 0 })
  })

  promise('more than was held counts as spent, and nothing is left of the cap', async (limits) => {
    await heldOf(await limits.take('1', [usd('usd/j', 10, 6)], soon())).settle(new Map([['usd/j', 12]]))
    assert.deepEqual(await limits.used('usd/j', 'life'), { spent: 12, held: 0 })
    const short = await limits.take('2', [usd('usd/j', 10, 1)], soon())
    assert.ok(isShort(short) && short.left === 0)
  })

  promise('a hold whose owner is gone counts as spent whole', async (limits) => {
    heldOf(await limits.take('1', [usd('usd/k', 10, 6)], soon() - 60_000))
    assert.deepEqual(await limits.used('usd/k', 'life'), { spent: 6, held: 0 })
  })
}
