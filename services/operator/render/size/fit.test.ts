import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Kind, Manifest } from '@plat/resources'
import { BUDGETS_MAX } from '@plat/resources/rendered'
import { resource } from '../../sessions/testing/resource.ts'
import type { Declared } from '../declared.ts'
import { renderWithinShares } from './fit.ts'

const nothing: Declared = {
  ...{ agents: [], servers: [], policies: [], budgets: [], memory: [], sovereignty: [], tiers: [] },
  ...{ home: 'plat-system', currency: 'USD', cedar: null, bundles: { texts: new Map(), withheld: new Map() } },
}
const context = { keyFileOf: () => '/key', previous: null }

function many<K extends Kind>(first: Manifest<K>, namespace: string, count: number): Manifest<K>[] {
  const named = (name: string) => ({ ...first, metadata: { ...first.metadata, namespace, name } })
  return Array.from({ length: count }, (_, at) => named(`n${at}`))
}

const contentOf = async (declared: Declared, name: string) => {
  const { files, refused } = await renderWithinShares(declared, context)
  return { content: JSON.parse(files.find((file) => file.name === name)?.compact() ?? ''), refused }
}

test('more budgets than a gateway accepts leave out some of one namespace, in which nothing may be spent', async () => {
  const policy = resource('BudgetPolicy', 'b', { perSession: '1', perDay: '1', perMonth: '1' })
  const budgets = [...many(policy, 'greedy', 7000), ...many(policy, 'team', 3)]
  const { content, refused } = await contentOf({ ...nothing, budgets }, 'budgets.json')
  assert.ok(content.budgets.length > 10_000 && content.budgets.length <= BUDGETS_MAX)
  const of = (namespace: string) =>
    content.budgets.filter(({ source }: { source: string }) => source.startsWith(`BudgetPolicy/${namespace}/`))
  assert.equal(of('team').length, 9)
  const caps = of('greedy').filter(({ source }: { source: string }) => source.endsWith('/share.exceeded'))
  assert.deepEqual(
    caps.map(({ match, capMicros, tokens }: Record<string, unknown>) => [match, capMicros ?? tokens]),
    [
      [{ namespaces: ['greedy'] }, 0],
      [{ namespaces: ['greedy'] }, 0],
    ],
  )
  assert.ok(refused.length > 0)
  for (const line of refused)
    assert.match(line, /^BudgetPolicy greedy\/n\d+ metadata.name: exceeds the share of its namespace in budgets.json$/)
})

test('MemoryStores beyond what a gateway accepts are refused, of the namespace that has most', async () => {
  const store = resource('MemoryStore', 'm', { scope: 'user' })
  const memory = [...many(store, 'greedy', 10_000), ...many(store, 'team', 10)]
  const { content, refused } = await contentOf({ ...nothing, memory }, 'memory.json')
  const keys = Object.keys(content.stores)
  assert.deepEqual([keys.length <= 10_000, keys.filter((key) => key.startsWith('team/')).length], [true, 10])
  assert.equal(keys.length + refused.length, 10_010)
})

test('a server whose pins no ConfigMap holds keeps its name from leading to another', async () => {
  const noise = () => randomBytes(32).toString('hex')
  const pins = Object.fromEntries(Array.from({ length: 500 }, () => [noise(), `sha256:${noise()}`]))
  const large = resource('MCPServer', 's', { url: 'http://large.example/mcp', toolPins: { pins } })
  const shared = resource('MCPServer', 'n0', {
    ...{ url: 'http://shared.example/mcp', shared: true, allowedNamespaces: ['greedy'] },
  })
  const servers = [...many(large, 'greedy', 60), shared]
  const { content } = await contentOf({ ...nothing, servers }, 'upstreams.json')
  assert.deepEqual(content.servers['team/n0']?.namespaces, content.servers['greedy/n0'] === undefined ? [] : ['greedy'])
  assert.ok(Object.keys(content.servers).length < 61)
})

test('the own namespace of the operator comes first, and what it fills alone is not cut', async () => {
  const store = resource('MemoryStore', 'm', { scope: 'user' })
  const own = many(store, 'plat-system', 9000)
  const both = [...own, ...many(store, 'greedy', 2000)]
  const { content } = await contentOf({ ...nothing, memory: both }, 'memory.json')
  const keys = Object.keys(content.stores)
  assert.equal(keys.filter((key) => key.startsWith('plat-system/')).length, 9000)
  assert.ok(keys.length < 10_000)
  const alone = await renderWithinShares({ ...nothing, memory: many(store, 'plat-system', 10_001) }, context)
  assert.ok((alone.files.find(({ name }) => name === 'memory.json')?.fullness ?? 0) > 1)
})
