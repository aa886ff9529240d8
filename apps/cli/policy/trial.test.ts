import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed, putResource } from '../testing/commands.ts'
import { countersOf } from './counters.ts'
import { policyTest } from './test.ts'
import { policyTestFile } from './test-file.ts'

const dir = tempFolder()
before(async () => {
  const put = (path: string, kind: string, spec: object) => putResource(dir, path, kind, spec)
  const models = { small: { upstream: 'http://127.0.0.1:1/v1' } }
  await writeFile(join(dir, 'gateway.json'), JSON.stringify({ models }))
  const url = 'http://127.0.0.1:1/mcp'
  await put('mcpservers/default/notes.yaml', 'MCPServer', { url, toolLabels: { send: { sinks: ['outside'] } } })
  await put('mcpservers/default/hidden.yaml', 'MCPServer', { url })
  const tools = [{ name: 'notes' }, { name: 'gone' }]
  await put('agents/default/assistant.yaml', 'Agent', {
    policyRef: 'p',
    tools,
    scopes: ['models:small', 'tools:notes', 'tools:gone'],
  })
  await put('agents/default/free.yaml', 'Agent', { tools })
  const deny = (name: string, match: object, more: object = {}) => ({ name, action: 'deny', match, ...more })
  await put('toolpolicies/default/p.yaml', 'ToolPolicy', {
    rules: [
      { name: 'all', action: 'allow', match: { servers: ['notes'] } },
      { name: 'hold', action: 'require_approval', match: { tools: ['delete'], groups: ['staff'] } },
      deny('keep', { tools: ['delete'] }, { when: "args.name.startsWith('keep-')" }),
      deny('outside', { sinks: ['outside'], taints: ['untrusted-input'] }),
      deny('night', { tools: ['read'] }, { when: 'now.getHours() < 6' }),
    ],
  })
})

async function tried(call: string, args?: string, more: object = {}) {
  const options = { dir, agent: 'assistant', call, args, output: 'json' as const, ...more }
  const { code, text } = await printed((output) => policyTest(options, output))
  const { verdict, rule = null, code: refusal = null, reason, file } = JSON.parse(text)
  return { exit: code, verdict, rule, code: refusal, reason, file }
}

const noon = { time: '2026-11-20T12:00:00Z' }

test('a call is decided as the gateway would, with the rule that decides', async () => {
  const of = async (...given: Parameters<typeof tried>) => {
    const { exit, verdict, rule, code } = await tried(...given)
    return [exit, verdict, rule, code]
  }
  assert.deepEqual(await of('notes/add', '{}'), [0, 'allow', 'all', null])
  assert.deepEqual(await of('notes/delete', '{"name": "keep-a"}'), [3, 'deny', 'keep', 'policy_denied'])
  assert.deepEqual(await of('notes/delete', '{"name": "a"}', { groups: ['staff'] }), [
    3,
    'require_approval',
    'hold',
    null,
  ])
  assert.deepEqual(await of('notes/delete', '{"name": "a"}', { groups: ['staff'], expect: 'require_approval' }), [
    ...[0, 'require_approval', 'hold', null],
  ])
  assert.deepEqual(await of('notes/delete'), [3, 'allow or deny', null, null])
  assert.deepEqual(await of('notes/send', '{}', { taints: ['untrusted-input'] }), [
    3,
    'deny',
    'outside',
    'tainted_sink',
  ])
  assert.deepEqual(await of('notes/read', '{}', noon), [0, 'allow', 'all', null])
  assert.deepEqual(await of('notes/read', '{}', { time: '2026-11-20T03:00:00Z' }), [
    3,
    'deny',
    'night',
    'policy_denied',
  ])
  assert.deepEqual(await of('hidden/read', '{}'), [3, 'deny', null, 'insufficient_scope'])
  assert.deepEqual(await of('gone/read', '{}'), [3, 'deny', null, 'unknown_server'])
  assert.deepEqual(await of('llm/small/gpt-5'), [0, 'allow', null, null])
  const free = await tried('notes/add', '{}', { agent: 'free' })
  assert.match(free.reason, /no policy governs agent default\/free/)
})

test('the rule is named with its file and line', async () => {
  const policy = [
    'apiVersion: plat.dev/v1alpha1',
    'kind: ToolPolicy',
    'metadata: {name: p, namespace: default}',
    'spec:',
    '  rules:',
    '    - {name: a, action: allow}',
    '    - {name: b, action: deny, match: {tools: [x]}}',
  ]
  const other = tempFolder()
  await putResource(other, 'mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/mcp' })
  await putResource(other, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'p', tools: [{ name: 'notes' }] })
  await writeFile(join(other, 'resources/all.yaml'), policy.join('\n'))
  assert.equal((await tried('notes/x', '{}', { dir: other })).file, 'all.yaml:7')
  assert.equal((await tried('notes/y', '{}', { dir: other })).file, 'all.yaml:6')
})

test('a call that is not written right is one line', async () => {
  await assert.rejects(tried('notes', '{}'), { exitCode: 2, message: /"notes" is not a call: write <server>\/<tool>/ })
  await assert.rejects(tried('notes/x', '[1]'), { exitCode: 2, message: /the arguments are not a JSON object/ })
  await assert.rejects(tried('notes/x', '{}', { time: 'noon' }), { exitCode: 2, message: /noon is not a time/ })
  await assert.rejects(tried('notes/x', '{}', { agent: 'asistant' }), /did you mean default\/assistant\?/)
})

async function run(text: string, output: 'table' | 'json' = 'table') {
  const file = join(dir, 'tests.yaml')
  await writeFile(file, text)
  const { code, text: report } = await printed((to) => policyTestFile({ dir, file, output }, to))
  return { code, text: report.replaceAll(file, 'tests.yaml') }
}

test('tests of a file pass, or fail with line, verdict and rule', async () => {
  const tests = `tests:
  - {name: reads, agent: assistant, call: notes/read, args: {}, time: "2026-11-20T12:00:00Z", expect: allow, rule: all}
  - {name: keeps, agent: default/assistant, call: notes/delete, args: {name: keep-a}, expect: deny}
`
  assert.deepEqual(await run(tests), { code: 0, text: '2 tests: 2 passed, 0 failed' })
  const failing = `${tests}  - name: holds
    agent: assistant
    call: notes/delete
    args: {name: a}
    expect: require_approval
  - {name: other rule, agent: assistant, call: notes/delete, args: {name: keep-a}, expect: deny, rule: outside}
  - {name: no agent, agent: missing, call: notes/delete, expect: deny}
`
  const { code, text } = await run(failing)
  assert.equal(code, 3)
  assert.deepEqual(text.split('\n'), [
    'tests.yaml:4: holds: expected require_approval, got allow by rule all (toolpolicies/default/p.yaml:1): rule all of policy default/p',
    'tests.yaml:9: other rule: expected deny by rule outside, got deny by rule keep (toolpolicies/default/p.yaml:1): rule keep of policy default/p',
    text.split('\n')[2],
    '5 tests: 2 passed, 3 failed',
  ])
  assert.match(text, /tests\.yaml:10: no agent: no agent default\/missing/)
  assert.deepEqual(JSON.parse((await run(tests, 'json')).text)[1].passed, true)
})

test('a file that is not a file of tests is refused with line and field', async () => {
  await assert.rejects(run('tests:\n  - {name: a, agent: b, cal: c/d, expect: allow}\n'), {
    message: /tests\.yaml:2: tests\[0\]\.cal: unknown field, did you mean "call"\?/,
  })
  await assert.rejects(
    run('tests:\n  - {name: a, agent: b, call: c/d, expect: maybe}\n'),
    /tests\[0\]\.expect: Unsupported value/,
  )
  await assert.rejects(run('tests: ['), /tests\.yaml:1: /)
})

const GOVERNED = tempFolder()
before(async () => {
  const put = (path: string, kind: string, spec: object) => putResource(GOVERNED, path, kind, spec)
  const models = {
    small: { upstream: 'http://127.0.0.1:1/v1' },
    claude: { provider: 'anthropic', upstream: 'https://api.anthropic.com/v1' },
  }
  await writeFile(join(GOVERNED, 'gateway.json'), JSON.stringify({ models, modelPolicy: 'policy' }))
  const prices = { 'openai/m': { input: '1', output: '10' }, 'anthropic/*': { input: '100', output: '100' } }
  const tools = { 'default/notes/paid': { perCall: '0.5' } }
  await writeFile(
    join(GOVERNED, 'prices.json'),
    JSON.stringify({ version: 1, currency: 'USD', id: 'p', models: prices, tools }),
  )
  await put('mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/mcp' })
  await put('agents/default/assistant.yaml', 'Agent', {
    policyRef: 'p',
    tools: [{ name: 'notes' }],
    scopes: ['models:small', 'models:claude', 'models:gone', 'tools:notes', 'tools:plat-web', 'agents:helper'],
  })
  await put('agents/default/helper.yaml', 'Agent', {
    policyRef: 'p',
    a2a: {
      expose: true,
      endpoint: 'http://127.0.0.1:1/a2a',
      skills: ['translate', 'summarize'].map((id) => ({ id, name: id })),
    },
  })
  await put('toolpolicies/default/p.yaml', 'ToolPolicy', {
    rules: [
      { name: 'all', action: 'allow', match: { servers: ['notes', 'llm/*', 'a2a/*', 'plat-*'] } },
      {
        ...{ name: 'slow', action: 'allow', match: { servers: ['notes'] } },
        rateLimit: { count: 2, seconds: 60, per: 'user', except: [{ names: ['boss'], count: 5 }] },
      },
      { name: 'no-summary', action: 'deny', match: { skills: ['summarize'] } },
      { name: 'no-search', action: 'deny', match: { servers: ['plat-web'], tools: ['web_search'] } },
    ],
  })
  await put('budgetpolicies/default/each.yaml', 'BudgetPolicy', {
    each: [{ per: 'user', perDay: 1, tokensPerDay: 5000, except: [{ names: ['boss'], perDay: 10 }] }],
  })
})

const DAY = 'BudgetPolicy/default/each/user/day'
const governed = (call: string, more: object = {}) => tried(call, '{}', { dir: GOVERNED, user: 'ada', ...more })

test('servers of the gateway, agents and models are decided by their policies and names', async () => {
  const of = async (call: string) => {
    const { verdict, rule, code } = await governed(call)
    return [verdict, rule, code]
  }
  assert.deepEqual(await of('plat-web/web_fetch'), ['allow', 'all', null])
  assert.deepEqual(await of('plat-web/web_search'), ['deny', 'no-search', 'policy_denied'])
  assert.deepEqual(await of('plat-memory/search'), ['deny', null, 'insufficient_scope'])
  assert.deepEqual(await of('a2a/default/helper/translate'), ['allow', 'all', null])
  assert.deepEqual(await of('a2a/default/helper/summarize'), ['deny', 'no-summary', 'policy_denied'])
  assert.deepEqual(await of('a2a/default/helper/sing'), ['deny', null, 'unknown_skill'])
  assert.deepEqual(await of('a2a/default/assistant/translate'), ['deny', null, 'insufficient_scope'])
  assert.deepEqual(await of('llm/small/m'), ['allow', 'all', null])
  assert.deepEqual(await of('llm/gone/m'), ['deny', null, 'unknown_route'])
})

test('rates are judged by the given calls of the window, with exceptions', async () => {
  const of = async (used: number, more: object = {}) => {
    const { verdict, code, reason } = await governed('notes/read', {
      used: { slow: used },
      time: '2026-11-20T12:00:30Z',
      ...more,
    })
    return [verdict, code, reason.split(' is ')[0]]
  }
  assert.deepEqual((await of(1)).slice(0, 2), ['allow', null])
  assert.deepEqual(await of(2), [
    'deny',
    'rate_limited',
    'the limit of 2 calls in 60 s of user ada (rule slow of policy default/p)',
  ])
  assert.deepEqual((await of(4, { user: 'boss' })).slice(0, 2), ['allow', null])
  assert.deepEqual((await of(5, { user: 'boss' })).slice(0, 2), ['deny', 'rate_limited'])
})

test('budgets are judged by what was spent and the price of the call', async () => {
  const of = async (call: string, more: object) => {
    const { verdict, code, reason } = await governed(call, more)
    return [verdict, code, / of user \w+/.exec(reason)?.[0] ?? '']
  }
  assert.deepEqual(await of('notes/paid', { spent: { [DAY]: '0.5' } }), ['allow', null, ''])
  assert.deepEqual(await of('notes/paid', { spent: { [DAY]: '0.500001' } }), [
    'deny',
    'budget_exceeded',
    ' of user ada',
  ])
  assert.deepEqual(await of('notes/paid', { spent: { [DAY]: 9 }, user: 'boss' }), ['allow', null, ''])
  const tokens = { input: 1000, output: 1000 }
  assert.deepEqual(await of('llm/small/m', { tokens, spent: { [DAY]: '0.98' } }), ['allow', null, ''])
  assert.deepEqual(await of('llm/small/m', { tokens, spent: { [DAY]: '0.99' } }), [
    'deny',
    'budget_exceeded',
    ' of user ada',
  ])
  assert.deepEqual(await of('llm/claude/opus', { tokens: { input: 6000, output: 5000 } }), [
    'deny',
    'budget_exceeded',
    ' of user ada',
  ])
  assert.deepEqual(await of('llm/small/unpriced', { tokens }), ['deny', 'price_unknown', ''])
  assert.deepEqual(await of('llm/small/m', { tokens, spent: { [`${DAY}-tokens`]: 3001 } }), [
    'deny',
    'budget_exceeded',
    ' of user ada',
  ])
})

test('a counter that no limit of the call has is refused in one line, which names the counters of its limits', async () => {
  await assert.rejects(governed('notes/read', { used: { fast: 1 } }), {
    message: /no limit of this call is named fast; it has slow/,
  })
  await assert.rejects(governed('notes/paid', { spent: { [DAY]: 'much' } }), { message: /much is not an amount/ })
})

test('tests of a file have counters and the code of the refusal', async () => {
  const file = join(GOVERNED, 'limits.yaml')
  await writeFile(
    file,
    `tests:
  - {name: third, agent: assistant, call: notes/read, args: {}, user: ada, used: {slow: 2}, expect: deny, code: rate_limited}
  - {name: poor, agent: assistant, call: llm/small/m, user: ada, tokens: {input: 10, output: 10}, spent: {${DAY}: "1"}, expect: deny, code: budget_exceeded}
  - {name: skill, agent: assistant, call: a2a/default/helper/translate, expect: allow}
  - {name: wrong code, agent: assistant, call: notes/read, args: {}, user: ada, used: {slow: 2}, expect: deny, code: budget_exceeded}
  - {name: no counter, agent: assistant, call: a2a/default/helper/translate, used: {slow: 2}, expect: deny}
`,
  )
  const { code, text } = await printed((to) => policyTestFile({ dir: GOVERNED, file, output: 'table' }, to))
  const lines = text.replaceAll(file, 'limits.yaml').split('\n')
  assert.equal(code, 3)
  assert.match(
    lines[0] ?? '',
    /^limits\.yaml:5: wrong code: expected deny with budget_exceeded, got deny by rule \w+ \(.*\) with rate_limited: the limit of 2 calls/,
  )
  assert.match(lines[1] ?? '', /^limits\.yaml:6: no counter: no limit of this call is named slow; it has none/)
  assert.equal(lines[2], '5 tests: 3 passed, 2 failed')
})

test('counters of the command line are names with amounts', () => {
  assert.deepEqual(countersOf({ used: ['slow=2'], spent: ['BudgetPolicy/a/b/day=4.99'], tokens: '20,5' }), {
    used: { slow: 2 },
    spent: { 'BudgetPolicy/a/b/day': '4.99' },
    tokens: { input: 20, output: 5 },
  })
  assert.throws(() => countersOf({ used: ['slow'] }), { exitCode: 2, message: '-used slow: must read <rule>=<calls>' })
  assert.throws(() => countersOf({ used: ['slow=many'] }), /-used: "many" is not a whole number/)
  assert.throws(() => countersOf({ tokens: '1,2,3' }), /-tokens 1,2,3: must read <input>,<output>/)
})
