import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed, putResource } from '../testing/commands.ts'
import { policyTest } from './test.ts'
import { policyTestFile } from './test-file.ts'

const dir = tempFolder()
before(async () => {
  const put = (path: string, kind: string, spec: object) => putResource(dir, path, kind, spec)
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
  await assert.rejects(tried('notes', '{}'), { exitCode: 2, message: /"notes" is no call: write <server>\/<tool>/ })
  await assert.rejects(tried('notes/x', '[1]'), { exitCode: 2, message: /the arguments are no JSON object/ })
  await assert.rejects(tried('notes/x', '{}', { time: 'noon' }), { exitCode: 2, message: /noon is no time/ })
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

test('a file that is no file of tests is refused with line and field', async () => {
  await assert.rejects(run('tests:\n  - {name: a, agent: b, cal: c/d, expect: allow}\n'), {
    message: /tests\.yaml:2: tests\[0\]\.cal: unknown field, did you mean "call"\?/,
  })
  await assert.rejects(
    run('tests:\n  - {name: a, agent: b, call: c/d, expect: maybe}\n'),
    /tests\[0\]\.expect: Unsupported value/,
  )
  await assert.rejects(run('tests: ['), /tests\.yaml:1: /)
})
