import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { type PoolRow, type PoolService, poolTable } from '@plat/core'
import { EACH, poolTests } from './pool-tests.ts'
import { assertTest } from './test-places.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const FOLDER: Readonly<Record<PoolService, string>> = {
  gateway: 'services/gateway',
  broker: 'services/identity',
  attestation: 'services/attestation',
  stdio: 'apps/cli/stdio',
}

function sourcesOf(folder: string): readonly string[] {
  return globSync(`${folder}/**/*.ts`, { cwd: ROOT })
    .filter((file) => !/\.test\.ts$|\.fuzz\.ts$|\/testing\/|node_modules/.test(file))
    .map((file) => readFileSync(path.join(ROOT, file), 'utf8'))
}

const sources = Object.entries(FOLDER).map(([service, folder]) => ({ service, text: sourcesOf(folder).join('\n') }))

test('every pool of the table is observed by each service that has it', () => {
  for (const [name, { services }] of Object.entries<PoolRow>(poolTable)) {
    for (const { service, text } of sources) {
      const isObserved = text.includes(`.of('${name}')`)
      assert.equal(
        isObserved,
        services.some((one) => one === service),
        `${name} in ${service}`,
      )
    }
  }
})

test('docs/reference/pools.md has a row for every pool', () => {
  const page = readFileSync(path.join(ROOT, 'docs/reference/pools.md'), 'utf8')
  for (const name of Object.keys(poolTable)) assert.ok(page.includes(`| \`${name}\` |`), name)
})

test('every pool has a test in which one caller uses its share while another is served', () => {
  assert.deepEqual(Object.keys(poolTests).toSorted(), Object.keys(poolTable).toSorted())
  for (const [name, place] of Object.entries(poolTests)) {
    const source = assertTest(name, place)
    if (place[1] === EACH) assert.match(source, new RegExp(`\\b${name}\\b`), `${name} in ${place[0]}`)
  }
})
