import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { homeOf } from '../shared/home.ts'
import { StartFileChanges } from './start-files.ts'

const PRICES = { version: 1, currency: 'USD', id: 'one', models: { 'openai/*': { input: '1', output: '2' } } }

interface Followed {
  readonly lines: readonly (readonly string[])[]
  readonly restarts: number
}

/** Writes a file as given at the start, and returns what `plat up` says of each later version. `refusal`: why the gateway does not start again. */
async function follow(
  file: string,
  versions: readonly (string | null)[],
  refusal: string | null = null,
): Promise<Followed> {
  const home = homeOf(tempFolder())
  const put = (text: string | null) =>
    text === null ? rm(join(home.dir, file), { force: true }) : writeFile(join(home.dir, file), text)
  const [first = null, ...later] = versions
  await put(first)
  const pricingFile = file === 'prices.json' && first !== null ? join(home.dir, file) : ''
  let restarts = 0
  const files = new StartFileChanges(home, {
    config: { pricingFile, policyReloadSeconds: 2, listen: '127.0.0.1:8080' },
    restart: async () => {
      restarts++
      return refusal
    },
  })
  await files.begin()
  const lines: (readonly string[])[] = []
  for (const text of later) {
    await put(text)
    lines.push((await files.find()).map((line) => line.replaceAll(`${home.dir}/`, '')))
  }
  return { lines, restarts }
}

test('each change of prices says that it is in force, or why the previous prices remain', async () => {
  const text = (id: string) => JSON.stringify({ ...PRICES, id })
  const { lines, restarts } = await follow('prices.json', [text('a'), text('b'), text('b'), '{', text('c'), null])
  const inForce = ['changed: prices.json; in force within 2 s']
  assert.deepEqual([lines[0], lines[1], lines[3], restarts], [inForce, [], inForce, 0])
  assert.match(lines[2]?.join() ?? '', /^prices\.json: .+; the previous prices remain in force until it is fixed$/)
  assert.match(lines[4]?.join() ?? '', /^prices\.json: was removed; the previous prices remain in force/)
})

test('the gateway starts again with prices that were not there before, the broker with nothing', async () => {
  assert.deepEqual(await follow('prices.json', [null, JSON.stringify(PRICES)]), {
    lines: [['prices.json is new, and is in force: the gateway was started again']],
    restarts: 1,
  })
  assert.deepEqual(await follow('exchange.json', [null, '{}']), {
    lines: [['exchange.json is new, and is not in force: restart plat up']],
    restarts: 0,
  })
})

test('the gateway starts again with changed keys of gateway.json, and not with a file that is wrong', async () => {
  const route = { upstream: 'http://127.0.0.1:1/v1' }
  const first = { sessionBudgetUSD: 1, models: { small: route, large: route } }
  const next = { $schema: 'x', sessionBudgetUSD: 2, models: { small: { ...route, model: 'm' }, large: route } }
  const versions = [first, next, { ...next, $schema: 'y' }, { sessionBudgetUS: 1 }, next, first]
  const { lines, restarts } = await follow('gateway.json', [
    ...versions.map((one) => JSON.stringify(one, null, 2)),
    '{,}',
  ])
  const inForce =
    'gateway.json has changed (sessionBudgetUSD, models.small), and is in force: the gateway was started again'
  assert.deepEqual([lines[0], lines[1], lines[4], restarts], [[inForce], [], [inForce], 2])
  const wrong = lines[2]?.join() ?? ''
  assert.match(
    wrong,
    /^gateway\.json:2: sessionBudgetUS: unknown key; did you mean sessionBudgetUSD\?; the gateway runs on/,
  )
  assert.deepEqual(lines[3], ['gateway.json is as it was before, and in force'])
  assert.match(lines[5]?.join() ?? '', /^gateway\.json:1: .+; the gateway runs on with the previous file/)
})

test('a gateway that does not start again with a file says why, each time that the file changes', async () => {
  const versions = [null, '{"sessionBudgetUSD": 2}', '{"sessionBudgetUSD": 3}']
  const { lines } = await follow('gateway.json', versions, 'restart plat up (listen)')
  const line = 'gateway.json is new (sessionBudgetUSD), and is not in force: restart plat up (listen)'
  assert.deepEqual(lines, [[line], [line]])
})
