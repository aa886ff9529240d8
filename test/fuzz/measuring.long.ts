import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costTarget } from './cost.ts'

// A step of `npm run long`: measured time depends on the machine and on what else it runs.

const KIB = 1024
const MIB = 1024 * KIB
/** A text of one byte a character, in one piece. */
const families = { text: (n: number) => Buffer.alloc(n, 'a').toString('latin1') }

const faultsOf = async (run: (text: string) => unknown, limit = 40 * KIB) =>
  (await costTarget('test', [{ parser: 'globs', limit, families, run }]).run(60, 1)).failures

/** Uses the processor, by the thread's own clock, so that other processes make no difference. */
function spin(ms: number): void {
  const spent = () => {
    process.cpuUsage()
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  const start = spent()
  while (spent() - start < ms * 1000);
}

const yielded = () => new Promise((resolve) => setImmediate(resolve))

test('an unbroken stretch, memory that is not linear and nothing else are reported', async () => {
  assert.match(String(await faultsOf((text) => spin((text.length / (40 * KIB)) ** 2 * 120))), /stretch of/)
  assert.match(String(await faultsOf((text) => new Array(Math.floor((text.length / 40) ** 2)).fill(0))), /allocates/)
  const sliced = async () => {
    for (let slice = 0; slice < 10; slice++) {
      spin(5)
      await yielded()
    }
  }
  assert.deepEqual(await faultsOf(sliced), [])
  assert.deepEqual(await faultsOf((text) => text.length), [])
})

test('waiting for another thread is not work', async () => {
  const waiting = (text: string) => new Promise((resolve) => setTimeout(resolve, text.length === 40 * KIB ? 200 : 1))
  assert.deepEqual(await faultsOf(waiting), [])
})

/** Work of `ms` in turns of the event loop. */
async function spinInTurns(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 4) {
    spin(Math.min(4, left))
    await yielded()
  }
}

for (const { limit, power, ms } of [
  { limit: 40 * KIB, power: 1.5, ms: 48 },
  { limit: 40 * KIB, power: 2, ms: 48 },
  { limit: 4 * MIB, power: 1.5, ms: 120 },
  { limit: 16 * MIB, power: 2, ms: 120 },
])
  test(`work in turns that grows with n^${power} is reported for a limit of ${limit} characters`, async () => {
    const run = (text: string) => spinInTurns(ms * (text.length / limit) ** power)
    assert.match(String(await faultsOf(run, limit)), /grows from/)
  })

test('three copies of a large text are not reported, whatever new memory costs', async () => {
  const copies = async ({ length }: string) => {
    for (let copy = 0; copy < 3; copy++) {
      const bytes = Buffer.allocUnsafeSlow(length)
      for (let at = 0; at < length; at += MIB) {
        bytes.fill('a', at, at + MIB)
        await yielded()
      }
    }
  }
  assert.deepEqual(await faultsOf(copies, 40 * MIB), [])
})
