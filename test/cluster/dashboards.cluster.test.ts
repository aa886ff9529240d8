import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { before, test } from 'node:test'
import { parse } from 'yaml'
import { buildHelm } from './binaries.ts'
import { least } from './chart-values.ts'
import { Helm, type Rendered, type Values } from './helm.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const FOLDER = path.join(ROOT, 'deploy/chart/dashboards')

let helm: Helm

before(() => {
  const built = buildHelm(() => {})
  assert.ok(built.ok, built.text)
  helm = new Helm(built.text)
})

const dashboardsOf = (values: Values): readonly Rendered[] =>
  helm.render({ ...least, ...values }).filter(({ metadata }) => metadata.name.startsWith('plat-dashboard-'))

test('the chart has a ConfigMap with each dashboard, as the values of the page say, and none by default', () => {
  const page = readFileSync(path.join(ROOT, 'docs/dashboards.md'), 'utf8')
  const { dashboards } = parse(/```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '')
  const objects = dashboardsOf({ dashboards })
  assert.deepEqual(dashboardsOf({}), [])
  assert.equal(objects.length, readdirSync(FOLDER).length)
  for (const { kind, metadata, data } of objects) {
    assert.equal(kind, 'ConfigMap')
    assert.equal(metadata.labels?.grafana_dashboard, '1')
    assert.deepEqual(Object(metadata).annotations, { grafana_folder: 'plat' })
    const [[file = '', text = ''] = []] = Object.entries<string>(Object(data))
    const written = readFileSync(path.join(FOLDER, file.replace(/^plat-/, '')), 'utf8')
    assert.deepEqual(JSON.parse(text), JSON.parse(written), file)
  }
})

test('labels of the sidecar replace the default', () => {
  const [first] = dashboardsOf({ dashboards: { enabled: true, labels: { grafana_dashboard: null, team: 'a' } } })
  assert.deepEqual([first?.metadata.labels?.team, first?.metadata.labels?.grafana_dashboard], ['a', undefined])
})
