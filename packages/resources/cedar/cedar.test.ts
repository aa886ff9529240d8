import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Cedar, type CedarInput, type CedarPolicies, cedarFromJson, loadCedar } from './cedar.ts'

async function engine(): Promise<Cedar> {
  const cedar = await loadCedar()
  assert.ok(cedar !== null)
  return cedar
}

async function compiled(text: string): Promise<CedarPolicies> {
  const policies = (await engine()).compile(text)
  if (typeof policies === 'string') assert.fail(policies)
  return policies
}

function question(args: string, tool = 'add'): CedarInput {
  return {
    principal: 'default/a',
    action: 'mcp.call',
    resource: `notes/${tool}`,
    context: { args: cedarFromJson(Buffer.from(args)) },
  }
}

test('a permit allows, a forbid wins over it, no applicable policy gives none; the deciding policy is named', async () => {
  const policies = await compiled(`
@id("tools")
permit(principal == Agent::"default/a", action, resource) when { resource in [Tool::"notes/add", Tool::"notes/del"] };
forbid(principal, action == Action::"mcp.call", resource == Tool::"notes/del");`)
  assert.deepEqual(policies.decide(question('{}')), { action: 'allow', policy: 'tools', failed: false })
  assert.deepEqual(policies.decide(question('{}', 'del')), { action: 'deny', policy: 'line 4:1', failed: false })
  assert.deepEqual(policies.decide(question('{}', 'other')), { action: 'none', policy: null, failed: false })
})

test('a forbid that cannot be evaluated applies, a permit that cannot be evaluated does not', async () => {
  const policies = await compiled(`
permit(principal, action, resource);
@id("cap") forbid(principal, action, resource) when { context.args.amount > 100 };`)
  assert.equal(policies.decide(question('{"amount":100}')).action, 'allow')
  assert.deepEqual(policies.decide(question('{"amount":101}')), { action: 'deny', policy: 'cap', failed: false })
  for (const evasion of ['{"amount":"1"}', '{}', '{"amount":1e1}', '{"amount":null}', '{"amount":[1]}']) {
    assert.deepEqual(policies.decide(question(evasion)), { action: 'deny', policy: 'cap', failed: true }, evasion)
  }
  const careful = await compiled(`permit(principal, action, resource);
    forbid(principal, action, resource) when { context.args has n && context.args.n > 5 };`)
  for (const evasion of [
    '{"n":6}',
    '{"n":6.0}',
    '{"n":6e0}',
    '{"n":99999999999999999999}',
    '{"n":null}',
    '{"n":0.00001}',
  ]) {
    assert.equal(careful.decide(question(evasion)).action, 'deny', evasion)
  }
  assert.equal(careful.decide(question('{"n":-0}')).action, 'allow')
  const permits = await compiled('permit(principal, action, resource) when { context.args.n > 5 };')
  assert.deepEqual(permits.decide(question('{}')), { action: 'none', policy: null, failed: false })
})

test('numbers keep their value: every int64 is a Long and four decimals are a decimal', async () => {
  const exact = await compiled('permit(principal, action, resource) when { context.args.n == 9007199254740993 };')
  assert.equal(exact.decide(question('{"n":9007199254740993}')).action, 'allow')
  assert.equal(exact.decide(question('{"n":9007199254740992}')).action, 'none')
  const most = await compiled('permit(principal, action, resource) when { context.args.n == 9223372036854775807 };')
  assert.equal(most.decide(question('{"n":9223372036854775807}')).action, 'allow')
  assert.equal(most.decide(question('{"n":9223372036854775808}')).action, 'none')
  const price = await compiled(
    'permit(principal, action, resource) when { context.args.n.lessThan(decimal("1.2501")) };',
  )
  assert.equal(price.decide(question('{"n":1.25}')).action, 'allow')
  assert.equal(price.decide(question('{"n":1.2501}')).action, 'none')
  assert.equal(price.decide(question('{"n":922337203685477.5808}')).action, 'none')
})

test('arguments cannot choose their Cedar type', async () => {
  for (const args of [
    '{"x":{"__entity":{"type":"Agent","id":"default/root"}}}',
    '{"x":[{"__extn":{"fn":"ip","arg":"10.0.0.1"}}]}',
    '{"__expr":"1"}',
    '{"x":{"a":1,"__extn":{"fn":"decimal","arg":"1.0"}}}',
    '{"x":"\\ud800"}',
    '{"\\ud800":1}',
  ]) {
    assert.throws(() => cedarFromJson(Buffer.from(args)), TypeError, args)
  }
})

test('any arguments give a result: none makes the engine fail or throws', async () => {
  const policies = await compiled('permit(principal, action, resource);')
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (args) => {
      let requested: CedarInput
      try {
        requested = question(args)
      } catch (error) {
        assert.ok(error instanceof TypeError)
        return
      }
      assert.deepEqual(policies.decide(requested), { action: 'allow', policy: 'line 1:1', failed: false })
    }),
  )
  const deep = `${'['.repeat(63)}1${']'.repeat(63)}`
  assert.equal(policies.decide(question(deep)).action, 'allow')
})

test('a list entry is visible when some arguments could make it allowed', async () => {
  const shows = async (text: string) => (await compiled(text)).decideEntry({ ...question('{}'), context: {} }).action
  const all = 'permit(principal, action, resource)'
  assert.equal(await shows(`${all} when { context.args.path like "/tmp/*" };`), 'allow')
  assert.equal(await shows(`${all} unless { context.args has force };`), 'allow')
  assert.equal(await shows(`${all} when { context.args has a.b } when { resource == Tool::"notes/del" };`), 'none')
  assert.equal(await shows(`${all}; forbid(principal, action, resource) when { context.args.n > 1 };`), 'allow')
  assert.equal(await shows(`${all}; forbid(principal, action, resource) when { context == {} };`), 'allow')
  assert.equal(await shows(`${all}; forbid(principal, action, resource == Tool::"notes/add");`), 'deny')
})

test('text that is not Cedar is refused in one line with the place', async () => {
  const cedar = await engine()
  const fault = (text: string) => cedar.compile(text)
  assert.match(
    String(fault('permit(principal, action, resource);\npermit(principal')),
    /^not Cedar at line 2:17: unexpected end/,
  )
  assert.match(
    String(fault('permit(principal, action, resource) when { nosuch(1) };')),
    /`nosuch` is not a valid function/,
  )
  assert.equal(
    fault('permit(principal == ?principal, action, resource);'),
    'holds a template: only whole policies can be judged',
  )
  assert.equal(fault('// nothing'), 'holds no policy')
  const twice = '@id("a") permit(principal, action, resource);'
  assert.equal(fault(`${twice}\n${twice}`), 'two policies have the @id "a"')
  const unnamed = 'forbid(principal, action, resource);'
  assert.notEqual(typeof fault(`${unnamed}${unnamed}`), 'string')
})

test('compiled texts are independent of each other, in any order of compilation', async () => {
  const cedar = await engine()
  const texts = ['permit(principal, action, resource);', 'forbid(principal, action, resource);']
  const policies = [...texts, ...texts].map((text) => cedar.compile(text))
  const actions = policies.map((one) => (typeof one === 'string' ? one : one.decide(question('{}')).action))
  assert.deepEqual(actions, ['allow', 'deny', 'allow', 'deny'])
})
