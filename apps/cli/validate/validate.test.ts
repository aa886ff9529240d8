import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { writeJournalLine } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { printed, putResource } from '../testing/commands.ts'
import { validateResources } from './validate.ts'

let dir = ''
const put = (path: string, kind: string, spec: object) => putResource(dir, path, kind, spec)
const policy = (...rules: readonly object[]) => put('toolpolicies/default/p.yaml', 'ToolPolicy', { rules })
const allow = (match: object, more: object = {}) => ({ name: 'r', action: 'allow', match, ...more })
const agent = (more: object = {}) =>
  put('agents/default/assistant.yaml', 'Agent', { image: 'i', tier: 'tier-0', policyRef: 'p', ...more })

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(dir, path)), { recursive: true })
  await writeFile(join(dir, path), text)
}

/** Lines about the directory; the last one says that it is valid. */
async function lines(strict = false): Promise<{ code: number; lines: string[] }> {
  const { code, text } = await printed((output) => validateResources({ dir, strict }, output))
  return { code, lines: text.split('\n').filter((line) => !line.startsWith('resources OK')) }
}

beforeEach(async () => {
  dir = tempFolder()
  await agent()
  await put('mcpservers/default/notes.yaml', 'MCPServer', {
    url: 'http://127.0.0.1:1/mcp',
    toolPins: { pins: { add_note: `sha256:${'1'.repeat(64)}`, delete_note: `sha256:${'2'.repeat(64)}` } },
    toolLabels: { add_note: { sinks: ['outside'] } },
  })
  await policy(allow({ servers: ['notes'], tools: ['add_note'] }))
})

test('a directory whose rules match something has no warnings', async () => {
  await policy(
    allow({
      servers: ['notes', 'plat-web', 'n*'],
      tools: ['add_note', 'web_*', '*'],
      agents: ['assistant', 'default/*'],
    }),
    {
      name: 'b',
      action: 'deny',
      match: { tiers: ['tier-0'], dataClasses: ['restricted'], groups: ['anyone'], users: ['x'] },
    },
  )
  assert.deepEqual(await lines(true), { code: 0, lines: [] })
})

test('an entry of a rule that matches nothing is a warning with file, line, field and fix', async () => {
  await write(
    'resources/toolpolicies/default/p.yaml',
    [
      'apiVersion: plat.dev/v1alpha1',
      'kind: ToolPolicy',
      'metadata: {name: p, namespace: default}',
      'spec:',
      '  rules:',
      '    - name: keep',
      '      action: deny',
      '      match:',
      '        servers: [notes]',
      '        tools:',
      '          - add_note',
      '          - delete_nte',
      '    - name: other',
      '      action: deny',
      '      match: {servers: [nots], agents: [asistant], tiers: [tier-9], dataClasses: [secret]}',
    ].join('\n'),
  )
  const at = 'warning: toolpolicies/default/p.yaml'
  const expected = [
    `${at}:12: spec.rules[0].match.tools[1]: no known tool of notes is named "delete_nte"; did you mean "delete_note"?`,
    `${at}:15: spec.rules[1].match.servers[0]: no server that agents of this policy can call is named "nots"; did you mean "notes"?`,
    `${at}:15: spec.rules[1].match.agents[0]: no agent of this policy is named "asistant"; did you mean "assistant"?`,
    `${at}:15: spec.rules[1].match.tiers[0]: no tier is named "tier-9"; did you mean "tier-0"?`,
    `${at}:15: spec.rules[1].match.dataClasses[0]: no data class is named "secret"; declare it, or name one of confidential, internal, public, restricted`,
  ]
  assert.deepEqual(await lines(), { code: 0, lines: expected })
  assert.deepEqual(await lines(true), { code: 3, lines: expected })
})

test('tools are only judged where every server of the rule has known tools', async () => {
  await put('mcpservers/default/other.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/mcp' })
  await policy(allow({ servers: ['*'], tools: ['unheard_of'] }), {
    ...allow({ servers: ['other'], tools: ['x'] }),
    name: 's',
  })
  assert.deepEqual((await lines()).lines, [])
})

test('tools that a gateway has seen are known, also with lines that are damaged', async () => {
  await put('mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/mcp' })
  await policy(allow({ servers: ['notes'], tools: ['unheard_of'] }))
  assert.deepEqual((await lines()).lines, [])
  const event = { t: 'learned', tool: 'add_note', digest: 'sha256:1' }
  const line = writeJournalLine({ seq: 1, version: 1, at: 1, key: 'default/notes', snapshot: false, events: [event] })
  await write('.plat/state/pins.jsonl', `${line}damaged\n${line.slice(0, 20)}`)
  assert.deepEqual((await lines()).lines, [
    'warning: toolpolicies/default/p.yaml:1: spec.rules[0].match.tools[0]: no known tool of notes is named "unheard_of"; declare it, or name one of add_note',
  ])
})

test('groups, taints and sinks are only warned of where they resemble another', async () => {
  await write('gateway.json', JSON.stringify({ adminAuth: { roles: { approver: ['team-leads'] } } }))
  const match = { groups: ['team-lead', 'sales'], taints: ['untrusted-inputs', 'own'], sinks: ['outsides', 'mail'] }
  const quorum = { minApprovers: 1, approverGroups: ['team-leeds'] }
  await policy({ name: 'a', action: 'require_approval', match, quorum })
  const fields = (await lines()).lines.map((line) => line.replace(/^warning: \S+ (\S+): .*; (.*)$/, '$1 $2'))
  assert.deepEqual(fields, [
    'spec.rules[0].match.groups[0] did you mean "team-leads"?',
    'spec.rules[0].match.taints[0] did you mean "untrusted-input"?',
    'spec.rules[0].match.sinks[0] did you mean "outside"?',
    'spec.rules[0].quorum.approverGroups[0] did you mean "team-leads"?',
  ])
})

test('a policy without agents, a budget that selects no agent and a scope that opens nothing are warned of', async () => {
  await agent({ scopes: ['tools:nots', 'models:default.asistant', 'tools:notes', 'custom'] })
  await put('toolpolicies/default/unused.yaml', 'ToolPolicy', { rules: [] })
  const selector = { agents: ['asistant', 'default/assistant'] }
  await put('budgetpolicies/default/b.yaml', 'BudgetPolicy', { selector, tokensPerDay: 5 })
  const selected = { selector: { namespace: 'defualt' }, tokensPerDay: 5 }
  const metadata = { name: 'all', namespace: 'plat-system' }
  await write(
    'resources/budgetpolicies/plat-system/all.yaml',
    JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind: 'BudgetPolicy', metadata, spec: selected }),
  )
  const found = (await lines()).lines.map((line) => line.replace('warning: ', ''))
  assert.deepEqual(found, [
    'agents/default/assistant.yaml:1: spec.scopes[0]: no server that the agent can call is named "nots"; did you mean "notes"?',
    'agents/default/assistant.yaml:1: spec.scopes[1]: no model route is named "default.asistant"; there is none: declare it, or remove this entry',
    'toolpolicies/default/unused.yaml:1: metadata.name: no Agent of namespace default has policyRef "unused", so no rule matches; name the policy in an Agent, or remove it',
    'budgetpolicies/default/b.yaml:1: spec.selector.agents[0]: no agent that this budget can select is named "asistant"; did you mean "assistant"?',
    'budgetpolicies/plat-system/all.yaml:1: spec.selector.namespace: no namespace with resources is named "defualt"; did you mean "default"?',
  ])
})

test('missing keys and prices of what a budget limits are warned of', async () => {
  const model = {
    name: 'small',
    endpoint: 'http://127.0.0.1:1/v1',
    apiKeySecretRef: { name: 'openai', key: 'api-key' },
  }
  await agent({ model, tools: [{ name: 'notes' }], budget: { perDayUSD: 5 } })
  const missing = [
    'warning: agents/default/assistant.yaml:1: spec.model.apiKeySecretRef: no Secret default/openai/api-key; write the key into .plat/secrets/default/openai/api-key',
    'warning: agents/default/assistant.yaml:1: spec.model: openai/small has no price, so its calls are refused under spec.budget; add it to "models" of the pricing file, or run plat pricing update',
  ]
  assert.deepEqual((await lines()).lines, missing)
  await write('.plat/secrets/default/openai/api-key', 'k')
  const prices = {
    version: 1,
    currency: 'USD',
    id: 'x',
    models: { 'openai/*': { input: '1' } },
    tools: { 'default/other/*': { perCall: '1' } },
  }
  await write('prices.json', JSON.stringify(prices))
  assert.deepEqual((await lines()).lines, [
    'warning: agents/default/assistant.yaml:1: spec.tools[0].name: no tool of default/notes has a price, so its calls cost nothing under spec.budget; add "default/notes/*" to "tools" of the pricing file',
  ])
  await write('prices.json', JSON.stringify({ ...prices, tools: { 'default/notes/*': { perCall: '1' } } }))
  assert.deepEqual(await lines(true), { code: 0, lines: [] })
})

test('errors name file, line and field: of rules, of gateway.json, of a file that is not a resource', async () => {
  await policy(allow({ servers: ['nots'] }, { when: 'arg.x == 1' }))
  await write('resources/agents/default/broken.yaml', 'kind: Agent\nspec: [')
  assert.deepEqual(await lines(), {
    code: 3,
    lines: [
      'agents/default/broken.yaml:2: Flow sequence in block collection must be sufficiently indented and end with a ]',
      'toolpolicies/default/p.yaml:1: spec.rules[0].when: unknown variable "arg", did you mean "args"?',
      'warning: toolpolicies/default/p.yaml:1: spec.rules[0].match.servers[0]: no server that agents of this policy can call is named "nots"; did you mean "notes"?',
    ],
  })
  await write(
    'gateway.json',
    '{\n  "sessionBudgetUS": 1,\n  "dlpProfiles": {\n    "x": { "custom": [{ "id": "a", "regex": "(" }] }\n  }\n}',
  )
  const { code, lines: found } = await lines()
  assert.equal(code, 3)
  assert.deepEqual(found.slice(0, 2), [
    'gateway.json:2: sessionBudgetUS: unknown key; did you mean sessionBudgetUSD?',
    'gateway.json:4: dlpProfiles.x.custom[0].regex: invalid expression: error parsing regexp: missing closing ): `(`',
  ])
})

test('static routes of gateway.json that name no agent or an unset variable are warned of', async () => {
  const auth = { type: 'bearer', tokenEnv: 'PLAT_TEST_NOT_SET' }
  const small = {
    upstream: 'http://127.0.0.1:1/v1',
    agents: ['asistant', 'default/assistant'],
    namespaces: ['default'],
    auth,
  }
  await write('gateway.json', JSON.stringify({ models: { small } }, null, 1))
  assert.deepEqual((await lines()).lines, [
    'warning: gateway.json:6: models.small.agents[0]: no Agent is named "asistant"; did you mean "assistant"?',
    'warning: gateway.json:14: models.small.auth.tokenEnv: the variable PLAT_TEST_NOT_SET is not set; set it where plat up is started',
  ])
})

test('a server of plat up needs its program, its folder and its Secrets', async () => {
  await put('mcpservers/default/files.yaml', 'MCPServer', {
    stdio: {
      command: 'no-such-program',
      cwd: 'missing',
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'files', key: 'token' } } }],
    },
  })
  await put('mcpservers/default/other.yaml', 'MCPServer', { stdio: { command: './data.txt' } })
  await write('data.txt', 'no program')
  const at = (file: string) => `warning: mcpservers/default/${file}.yaml:`
  assert.deepEqual((await lines()).lines.map((line) => line.replace(/yaml:\d+:/, 'yaml:')).toSorted(), [
    `${at('files')} spec.stdio.command: no program "no-such-program" is on the PATH; install it, or write its path`,
    `${at('files')} spec.stdio.cwd: ${join(dir, 'missing')} does not exist: the server cannot be started`,
    `${at('files')} spec.stdio.env[0].valueFrom.secretKeyRef: no Secret default/files/token: the server cannot be started; write the value into .plat/secrets/default/files/token`,
    `${at('other')} spec.stdio.command: ${join(dir, 'data.txt')} cannot be executed; make it executable`,
  ])
})
