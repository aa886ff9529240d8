import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { isKind, parseResource } from '@plat/resources'
import { parse, parseAllDocuments } from 'yaml'
import { operatorFlags } from '../flags.ts'
import { operatorMetrics } from '../metrics.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const page = readFileSync(path.join(ROOT, 'docs/sessions.md'), 'utf8')

const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text)

test('every resource on the page is one that a cluster takes', () => {
  const kinds = blocks.flatMap((block) =>
    block.split('---\n').flatMap((text) => {
      const { kind } = parse(text)
      if (!isKind(kind)) return []
      assert.deepEqual(parseResource(kind, text).problems, [], kind)
      return [kind]
    }),
  )
  assert.deepEqual(kinds, ['TrustTier', 'Agent', 'AgentSession', 'Agent', 'AgentSession', 'TrustTier'])
})

test('the rights on the page are those that the chart gives', () => {
  const role = blocks.map((block) => parseAllDocuments(block)[0]?.toJS()).find(({ kind }) => kind === 'ClusterRole')
  const template = readFileSync(path.join(ROOT, 'deploy/chart/templates/operator/rbac.yaml'), 'utf8')
  const [, rules = ''] = /-sandboxes\n {2}labels:\n.*\nrules:\n([\s\S]*?)\{\{-/.exec(template) ?? []
  assert.deepEqual(role.rules, parse(rules))
})

test('the page names flags and series that there are', () => {
  const flags = [...page.matchAll(/`-([a-z]+(?:-[a-z]+)+)`/g)].map(([, name = '']) => name)
  for (const name of [...flags, 'browser-image', 'code-interpreter-image']) assert.ok(name in operatorFlags, name)
  const series = new Set<string>(operatorMetrics.map(({ name }) => name))
  // Those of views are the gateway's.
  for (const [, name = ''] of page.matchAll(/`(plat_(?!gateway_)[a-z_]+)[`{]/g)) assert.ok(series.has(name), name)
  for (const { name } of operatorMetrics)
    if (/^plat_(session|token|warm)/.test(name)) assert.ok(page.includes(name), name)
})
