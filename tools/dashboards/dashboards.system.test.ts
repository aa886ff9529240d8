import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { expressionsOf, FOLDER } from './testing/committed.ts'

/** Values that Grafana would set. */
const VARIABLES: readonly (readonly [string, string])[] = [
  ['$__rate_interval', '1m'],
  ['$__range', '6h'],
  ['$job', '.*'],
]

test('Prometheus reads every expression of the dashboards', () => {
  const dir = tempFolder()
  const promtool = path.join(unpackDebianPackage('prometheus', dir), 'usr/bin/promtool')
  const expressions = readdirSync(FOLDER).flatMap((name) =>
    expressionsOf(JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'))),
  )
  const rules = expressions.map((expr, at) => ({
    record: `dashboard:${at}`.replace(/\d+$/, (digits) => `n${digits}`),
    expr: VARIABLES.reduce((text, [name, value]) => text.replaceAll(name, value), expr),
  }))
  const file = path.join(dir, 'dashboards.rules.json')
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboards', rules }] }))
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.match(stdout, new RegExp(`SUCCESS: ${expressions.length} rules found`))
  assert.doesNotMatch(JSON.stringify(rules), /\$/)
})
