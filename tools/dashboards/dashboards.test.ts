import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { dashboardFiles, tables } from './build.ts'
import { type Committed, expressionsOf, FOLDER } from './testing/committed.ts'

/** Labels that Prometheus adds, and those of functions. */
const OTHERS = ['job', 'instance', 'le']
const BUILD = ['component', 'version', 'commit', 'goversion', 'tags']

const committed = readdirSync(FOLDER).map((name) => {
  const dashboard: Committed = JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'))
  return { name, dashboard }
})
const expressions = committed.flatMap(({ name, dashboard }) =>
  expressionsOf(dashboard).map((expr) => ({ name, expr, series: seriesIn(expr) })),
)

/** Series of an expression, without what a histogram adds to their names. */
function seriesIn(expr: string): readonly string[] {
  const names = expr.match(
    /\b(?:plat|gen_ai|mcp|controller_runtime|workqueue|rest_client|leader_election|process|nodejs)_[a-z0-9_]+/g,
  )
  const known = (name: string) => (tables.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, ''))
  // Without the labels of the same beginnings.
  return (names ?? []).filter((name) => !isLabel(expr, name)).map(known)
}

function isLabel(expr: string, name: string): boolean {
  return (/by \(([^)]*)\)/.exec(expr)?.[1] ?? '').split(', ').includes(name)
}

test('the dashboards are what the metric tables say; node tools/dashboards/run.ts writes them again', () => {
  const files = dashboardFiles()
  assert.deepEqual(readdirSync(FOLDER).sort(), Object.keys(files).sort())
  assert.equal(Object.keys(files).length, 6)
  for (const [name, text] of Object.entries(files))
    assert.equal(readFileSync(path.join(FOLDER, name), 'utf8'), text, name)
})

test('every series that a dashboard reads is in a table, and every series of the tables is in a dashboard', () => {
  const read = new Set(expressions.flatMap(({ series }) => series))
  assert.deepEqual(
    [...read].filter((name) => !tables.has(name) && name !== 'plat_build_info'),
    [],
  )
  assert.deepEqual(
    [...tables.keys()].filter((name) => !read.has(name)),
    [],
  )
})

test('every label that a dashboard reads is one of its series', () => {
  for (const { name, expr, series } of expressions) {
    const labels = series.flatMap((one) => Object.keys(tables.get(one)?.labels ?? {}))
    const known = new Set([...OTHERS, ...labels, ...(series.includes('plat_build_info') ? BUILD : [])])
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
    const matched = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
      list.split(', ').map((one) => one.split(/[=!]/)[0] ?? ''),
    )
    for (const label of [...grouped, ...matched]) assert.ok(known.has(label), `${name}: ${label} in ${expr}`)
    assert.ok(grouped.length + matched.length > 0, `${name}: ${expr} has no filter`)
  }
})

test('counters and histograms are read as rates, and gauges are not', () => {
  for (const { expr, series } of expressions) {
    for (const one of series) {
      const type = tables.get(one)?.type ?? 'gauge'
      assert.equal(/\b(?:rate|increase)\(/.test(expr), type !== 'gauge', expr)
    }
  }
})

test('every panel has an id, a title, a description and a place of its dashboard that no other panel has', () => {
  for (const { name, dashboard } of committed) {
    const taken = new Set<string>()
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length, name)
    for (const { title, description, type, gridPos } of dashboard.panels) {
      assert.ok(title !== '' && (type === 'row' || description !== ''), name)
      assert.ok(gridPos.x + gridPos.w <= 24, `${name}: ${title}`)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x},${y}`), `${name}: ${title} lies over another panel`)
          taken.add(`${x},${y}`)
        }
    }
  }
})
