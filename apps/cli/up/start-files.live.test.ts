import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { homeOf } from '../shared/home.ts'
import { changedFiles, readStartFiles } from './start-files.ts'

const PRICES = { version: 1, currency: 'USD', id: 'one', models: { 'openai/*': { input: '1', output: '2' } } }

/** Writes gateway.json and prices.json as given at the start, and returns what `plat up` says of each later version. */
async function lines(file: string, versions: readonly (string | null)[]): Promise<readonly (readonly string[])[]> {
  const home = homeOf(tempFolder())
  const put = (text: string | null) =>
    text === null ? rm(join(home.dir, file), { force: true }) : writeFile(join(home.dir, file), text)
  const [first = null, ...later] = versions
  await put(first)
  const pricingFile = file === 'prices.json' && first !== null ? join(home.dir, file) : ''
  const atStart = await readStartFiles(home)
  const found: (readonly string[])[] = []
  let previous = atStart
  for (const text of later) {
    await put(text)
    const now = await readStartFiles(home)
    const config = { pricingFile, policyReloadSeconds: 2, listen: '127.0.0.1:8080' }
    found.push(
      (await changedFiles({ atStart, previous, now }, { home, config })).map((line) =>
        line.replaceAll(`${home.dir}/`, ''),
      ),
    )
    previous = now
  }
  return found
}

test('each change of prices says that it is in force, or why the previous prices remain', async () => {
  const text = (id: string) => JSON.stringify({ ...PRICES, id })
  const found = await lines('prices.json', [text('a'), text('b'), text('b'), '{', text('c'), null])
  const inForce = ['changed: prices.json; in force within 2 s']
  assert.deepEqual([found[0], found[1], found[3]], [inForce, [], inForce])
  assert.match(found[2]?.join() ?? '', /^prices\.json: .+; the previous prices remain in force until it is fixed$/)
  assert.match(found[4]?.join() ?? '', /^prices\.json: was removed; the previous prices remain in force/)
})

test('prices that were not there at the start need a restart', async () => {
  assert.deepEqual(await lines('prices.json', [null, JSON.stringify(PRICES)]), [
    ['prices.json is new, and is not in force: restart plat up'],
  ])
})

test('a change of gateway.json names its keys, or why plat would not start with it', async () => {
  const route = { upstream: 'http://127.0.0.1:1/v1' }
  const first = { sessionBudgetUSD: 1, models: { small: route, large: route } }
  const next = { $schema: 'x', sessionBudgetUSD: 2, models: { small: { ...route, model: 'm' }, large: route } }
  const versions = [first, next, { ...first, $schema: 'y' }, { sessionBudgetUS: 1 }, first]
  const found = await lines('gateway.json', [...versions.map((one) => JSON.stringify(one, null, 2)), '{,}'])
  assert.deepEqual(found[0], [
    'gateway.json has changed, and is not in force: restart plat up (sessionBudgetUSD, models.small)',
  ])
  assert.deepEqual(found[1], [])
  assert.match(
    found[2]?.join() ?? '',
    /^gateway\.json:2: sessionBudgetUS: unknown key; did you mean sessionBudgetUSD\?; plat up runs on with the previous file/,
  )
  assert.deepEqual(found[3], ['gateway.json is as it was at the start, and in force'])
  assert.match(found[4]?.join() ?? '', /^gateway\.json:1: .+; plat up runs on with the previous file/)
})
