import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRouteEntry } from '@plat/resources/rendered'
import { isDenial } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { ModelDirectories, type ModelDirectory } from './directory.ts'
import { buildRoutes } from './registry.ts'

const upstream = 'http://127.0.0.1:1/v1'
const ROUTES: Readonly<Record<string, Partial<ModelRouteEntry>>> = {
  small: { model: 'gpt-5-mini', aliases: { fast: 'gpt-5-nano', quick: 'gpt-5-nano' } },
  open: { aliases: { quick: 'llama' } },
  claude: { provider: 'anthropic', model: 'claude-5' },
  other: { provider: 'anthropic', model: 'claude-5' },
  secret: { model: 'hidden-1' },
  teamed: { model: 'of-a-team', agents: ['default/another'] },
}
const routes = buildRoutes(
  null,
  Object.fromEntries(Object.entries(ROUTES).map(([name, one]) => [name, { upstream, ...one }])),
)
const identityOf = (...names: string[]) => ({ ...testIdentity, scopes: new Set(names.map((name) => `models:${name}`)) })
const directoryOf = (...names: string[]) => new ModelDirectories().of(routes, identityOf(...names), 'models:')

/** `<route> <model>`, or the reason of the denial. */
function found(directory: ModelDirectory, name: string | null): string {
  const one = directory.find(name)
  return isDenial(one) ? one.reason : `${one.route} ${one.model}`
}

const all = directoryOf('small', 'open', 'claude', 'other', 'teamed', 'gone')

test('a model is found by route, alias, provider and model, route and model, and by itself', () => {
  assert.equal(found(all, 'small'), 'small null')
  assert.equal(found(all, 'fast'), 'small fast')
  assert.equal(found(all, 'openai/gpt-5-mini'), 'small null')
  assert.equal(found(all, 'gpt-5-mini'), 'small null')
  assert.equal(found(all, 'small/gpt-5-mini'), 'small null')
  assert.equal(found(all, 'small/quick'), 'small quick')
  assert.equal(found(all, 'openai/gpt-9'), 'open gpt-9')
  assert.equal(found(all, 'open/anything'), 'open anything')
  assert.equal(found(all, 'vendor/llama-4'), 'open vendor/llama-4')
})

test('a name of several routes is ambiguous and lists the names that are not', () => {
  assert.match(found(all, 'quick'), /^several model routes have quick: use small\/quick or open\/quick$/)
  assert.match(found(all, 'anthropic/claude-5'), /use claude\/anthropic\/claude-5 or other\/anthropic\/claude-5$/)
  assert.equal(found(all, 'claude/anthropic/claude-5'), 'claude null')
})

test('an unknown name gets a suggestion, and nothing reveals routes that the caller may not use', () => {
  const closed = directoryOf('small', 'claude')
  assert.match(found(closed, 'smal'), /has smal; did you mean small\?$/)
  assert.match(found(closed, 'zzzzzzzz'), /has zzzzzzzz; there is small, claude, fast, quick, openai\/gpt-5-mini$/)
  const unknown = (name: string) => found(closed, name).replaceAll(name, '<name>')
  for (const name of ['secret', 'hidden-1', 'teamed', 'of-a-team', 'open'])
    assert.equal(unknown(name).slice(0, 60), unknown('nothing-here').slice(0, 60), name)
  assert.match(found(directoryOf(), 'small'), /^this token may use no model route that has small$/)
  assert.match(found(directoryOf('secret', 'teamed'), 'of-a-team'), /^no model route that this token may use/)
})

test('a request without a model goes to the only route', () => {
  assert.equal(found(directoryOf('small'), null), 'small null')
  assert.match(found(all, null), /^model is required/)
})

test('every listed name is found, and names of several routes are listed with their route', () => {
  const ids = all.list().map(({ id }) => id)
  for (const id of ids) assert.ok(!isDenial(all.find(id)), id)
  assert.ok(ids.includes('small/quick') && ids.includes('open/quick') && !ids.includes('quick'))
  assert.deepEqual([all.nameOf('open', 'llama-5'), all.nameOf('open', 'gpt-5-mini')], ['llama-5', 'open/gpt-5-mini'])
})

test('a directory is built once for the routes in force', () => {
  const directories = new ModelDirectories()
  const identity = identityOf('small')
  const first = directories.of(routes, identity, null)
  assert.equal(directories.of(routes, identity, null), first)
  assert.notEqual(directories.of(buildRoutes(null, {}), identity, null), first)
})
