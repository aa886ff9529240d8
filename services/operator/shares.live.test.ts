import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { API, setUpOperators } from './testing/operators.ts'

/** Text that compression takes no more than a quarter from. */
const noise = (bytes: number) => randomBytes(bytes).toString('base64url')
const ruleOf = (name: string) => ({ name, action: 'allow', reason: noise(500) })
const at = (namespace: string, plural: string, name: string) => `${API}/namespaces/${namespace}/${plural}/${name}`

interface Condition {
  readonly type: string
  readonly status: string
  readonly message: string
}

/** A cluster whose namespace `greedy` declares more than a ConfigMap holds, beside `team`. */
async function setUp(t: Parameters<typeof setUpOperators>[0]) {
  const cluster = await setUpOperators(t)
  const ready = (path: string): string => {
    const conditions: readonly Condition[] = Object(cluster.server.get(path)).status?.conditions ?? []
    const found = conditions.find(({ type }) => type === 'Ready')
    return found === undefined ? '' : `${found.status} ${found.message}`.trim()
  }
  return { ...cluster, ready }
}

test('policies of one namespace that no ConfigMap holds are left out, the largest first; all others are in force', async (t) => {
  const { server, start, rendered, ready } = await setUp(t)
  const large = Array.from({ length: 1000 }, (_, n) => ruleOf(`r${n}`))
  for (const name of ['p1', 'p2', 'p3']) server.put(at('greedy', 'toolpolicies', name), { spec: { rules: large } })
  server.put(at('greedy', 'toolpolicies', 'small'), { spec: { rules: [ruleOf('r')] } })
  server.put(at('greedy', 'agents', 'a'), {
    spec: { image: 'i', tier: 't', policyRef: 'p1', budget: { perDayUSD: '1' } },
  })
  server.put(at('team', 'toolpolicies', 'p'), { spec: { rules: [ruleOf('r')] } })
  server.put(at('team', 'agents', 'a'), { spec: { image: 'i', tier: 't', policyRef: 'p' } })
  const operator = await start()
  await until(() => ready(at('team', 'agents', 'a')) === 'True', 'the other namespace is in force')
  const names = () => rendered('policies').policies.map(({ name }: { name: string }) => name)
  assert.ok(names().includes('team/p') && names().includes('greedy/small'), names().join())
  const refused = ['p1', 'p2', 'p3'].filter((name) => !names().includes(`greedy/${name}`))
  assert.ok(refused.length > 0 && refused.length < 3, refused.join())
  for (const name of refused) {
    const path = at('greedy', 'toolpolicies', name)
    await until(() => ready(path) !== '', 'its status')
    assert.equal(ready(path), 'False metadata.name: exceeds the share of its namespace in policies.json')
  }
  assert.equal((await fetch(`${operator.url}/readyz`)).status, 200)
  // A change of the other namespace is rendered as well, and what fits is in force again.
  server.put(at('team', 'toolpolicies', 'q'), { spec: { rules: [] } })
  await until(() => names().includes('team/q'), 'the other policy')
  for (const name of ['p2', 'p3']) server.remove(at('greedy', 'toolpolicies', name))
  await until(() => names().includes('greedy/p1'), 'what fits')
  await until(() => ready(at('greedy', 'toolpolicies', 'p1')) === 'True', 'its status')
  await until(() => ready(at('greedy', 'agents', 'a')) === 'True', 'the status of its agent')
})

test('an object whose problem quotes half of a character is refused alone', async (t) => {
  const { server, start, rendered, ready } = await setUp(t)
  server.put(at('greedy', 'toolpolicies', 'p'), { spec: { rules: [{ name: 'r', action: 'allow', when: '😀' }] } })
  server.put(at('greedy', 'toolpolicies', 'q'), {
    spec: { rules: [{ name: 'r', action: 'allow', match: { tools: [''] } }] },
  })
  server.put(at('team', 'toolpolicies', 'p'), { spec: { rules: [{ name: 'r', action: 'allow' }] } })
  await start()
  await until(() => ready(at('team', 'toolpolicies', 'p')) === 'True', 'the other policy is in force')
  const reasons = rendered('policies').policies.map(({ rules }: { rules: { reason?: string }[] }) => rules[0]?.reason)
  assert.match(reasons[0], /^ToolPolicy greedy\/p rules\[0\].when: /)
  assert.equal(reasons[1], 'ToolPolicy greedy/q rules[0].match.tools[0]: must not be empty')
  await until(() => ready(at('greedy', 'toolpolicies', 'p')).startsWith('False rules[0].when: '), 'its status')
})

test('a namespace whose revocations no ConfigMap holds is suspended as a whole; those of others are in force', async (t) => {
  const { server, start, rendered, ready } = await setUp(t)
  const revocation = (namespace: string, name: string, [agent, reason]: readonly [string, string] = ['a', '']) => {
    const target = { agent: `${namespace}/${agent}` }
    server.put(at(namespace, 'agentrevocations', name), { spec: { target, reason } })
  }
  for (let index = 0; index < 1200; index++) revocation('greedy', `r${index}`, [noise(180), noise(760)])
  revocation('team', 'r')
  server.put(at('plat-system', 'agentrevocations', 'r'), { spec: { target: { user: 'mallory' } } })
  await start()
  await until(() => rendered('revocations') !== null, 'the revocations')
  const targets = () =>
    rendered('revocations').revocations.map(({ target }: { target: object }) => JSON.stringify(target))
  assert.deepEqual(targets(), ['{"user":"mallory"}', '{"agent":"team/a"}', '{"namespace":"greedy"}'])
  const path = at('greedy', 'agentrevocations', 'r7')
  await until(() => ready(path) !== '', 'its status')
  assert.match(ready(path), /^False metadata.name: .* the whole namespace is suspended until they fit$/)
  await until(() => ready(at('team', 'agentrevocations', 'r')) === 'True', 'the other one is in force')
  revocation('team', 's')
  await until(() => targets().length === 4, 'a new one is written')
})
