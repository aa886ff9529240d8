import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed } from '../testing/commands.ts'
import { validateResources } from './validate.ts'

const HEAD = { apiVersion: 'plat.dev/v1alpha1', namespace: 'default' }
const doc = (kind: string, name: string, spec: string) =>
  `apiVersion: ${HEAD.apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n  namespace: ${HEAD.namespace}\nspec:\n${spec}\n`
const DIGEST = `sha256:${'1'.repeat(64)}`
const AGENT = doc('Agent', 'a', '  policyRef: p\n  tools:\n    - name: notes')
const SERVER = doc(
  'MCPServer',
  'notes',
  `  url: http://127.0.0.1:1/mcp\n  toolPins: {pins: {read: "${DIGEST}", write: "${DIGEST}"}}`,
)
const POLICY = doc('ToolPolicy', 'p', '  rules:\n    - name: all\n      action: allow\n      match: {servers: [notes]}')
const RIGHT: Readonly<Record<string, string>> = {
  'resources/agents/default/a.yaml': AGENT,
  'resources/mcpservers/default/notes.yaml': SERVER,
  'resources/toolpolicies/default/p.yaml': POLICY,
}
const [A, S, P] = ['agents/default/a.yaml', 'mcpservers/default/notes.yaml', 'toolpolicies/default/p.yaml']

/** Lines of `plat validate` about the right folder with these changes. */
async function linesOf(changes: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const dir = tempFolder()
  for (const [path, text] of Object.entries({ ...RIGHT, ...changes })) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
  }
  const { text } = await printed((output) => validateResources({ dir }, output))
  return text
    .split('\n')
    .filter((line) => !line.startsWith('resources OK'))
    .map((line) => line.replaceAll(`${dir}/`, ''))
}

const agent = (from: string, to: string) => ({ [`resources/${A}`]: AGENT.replace(from, to) })
const server = (from: string, to: string) => ({ [`resources/${S}`]: SERVER.replace(from, to) })
const policy = (from: string, to: string) => ({ [`resources/${P}`]: POLICY.replace(from, to) })
const rule = (text: string) => policy('      action: allow\n      match: {servers: [notes]}', text)
const budget = (spec: string) => ({ 'resources/budgetpolicies/default/b.yaml': doc('BudgetPolicy', 'b', `  ${spec}`) })
const gateway = (text: string) => ({ 'gateway.json': text })

/** Typical mistakes, each with the one line that names file, line and fix. */
const MISTAKES: readonly (readonly [mistake: string, changes: Readonly<Record<string, string>>, line: RegExp])[] = [
  [
    'a misspelt field',
    agent('policyRef', 'polcyRef'),
    /^agents\/default\/a\.yaml:7: spec\.polcyRef: unknown field, did you mean "policyRef"\?/,
  ],
  [
    'a misspelt kind',
    { 'resources/x.yaml': 'kind: Agnt\n' },
    /^x\.yaml:1: kind: "Agnt" is not a kind of plat, did you mean "Agent"\?/,
  ],
  [
    'a misspelt model route',
    {
      ...agent('  tools:', '  modelRoutes: [smal]\n  tools:'),
      ...gateway('{"models": {"small": {"upstream": "http://127.0.0.1:1/v1"}}}'),
    },
    /^warning: agents\/default\/a\.yaml:8: spec\.modelRoutes\[0\]: no model route of gateway\.json is named "smal"; did you mean "small"\?/,
  ],
  [
    'a provider whose wire format is not named',
    agent('  tools:', '  model: {provider: anthropic, endpoint: "https://api.anthropic.com"}\n  tools:'),
    /^warning: agents\/default\/a\.yaml:8: spec\.model\.provider: anthropic is sent requests in OpenAI's format; add adapter: anthropic/,
  ],
  ['no kind', { 'resources/x.yaml': 'spec: {}\n' }, /^x\.yaml:1: kind: Required value/],
  [
    'another API version',
    agent('plat.dev/v1alpha1', 'plat.dev/v1'),
    /^agents\/default\/a\.yaml:1: apiVersion: Unsupported value: "plat\.dev\/v1": supported values: "plat\.dev\/v1alpha1"/,
  ],
  [
    'a name that differs from the file',
    agent('name: a\n', 'name: b\n'),
    /^agents\/default\/a\.yaml: metadata names default\/b, which belongs into agents\/default\/b\.yaml/,
  ],
  [
    'a name with capitals',
    { 'resources/x.yaml': AGENT.replace('name: a\n', 'name: Big\n') },
    /^x\.yaml:4: metadata\.name: /,
  ],
  [
    'no namespace',
    agent('  namespace: default\n', ''),
    /^agents\/default\/a\.yaml:3: metadata\.namespace: Required value/,
  ],
  [
    'a folder of no kind',
    { 'resources/agent/default/x.yaml': AGENT },
    /^agent: no kind has this name, did you mean "agents"\?/,
  ],
  [
    'a file without its namespace',
    { 'resources/agents/x.yaml': AGENT },
    /^agents\/x\.yaml: must be in a folder of its namespace: agents\/<namespace>\/<name>\.yaml/,
  ],
  [
    'a file that ends in .yml',
    { 'resources/agents/default/x.yml': AGENT },
    /^agents\/default\/x\.yml: must end in \.yaml/,
  ],
  [
    'the same object in two files',
    { 'resources/all.yaml': AGENT },
    /^agents\/default\/a\.yaml:1: Agent default\/a is also in all\.yaml:1; remove one of them/,
  ],
  ['a tab as indentation', agent('  policyRef', '\tpolicyRef'), /^agents\/default\/a\.yaml:7: .*[Tt]ab/],
  [
    'a key that is there twice',
    agent('  policyRef: p\n', '  policyRef: p\n  policyRef: q\n'),
    /^agents\/default\/a\.yaml:8: policyRef: duplicate key/,
  ],
  ['an open bracket', policy('[notes]', '[notes'), /^toolpolicies\/default\/p\.yaml:\d+: /],
  [
    'a policy that does not exist',
    agent('policyRef: p', 'policyRef: q'),
    /^warning: toolpolicies\/default\/p\.yaml:4: metadata\.name: no Agent of namespace default has policyRef "p"/,
  ],
  [
    'a server that does not exist',
    policy('[notes]', '[nots]'),
    /^warning: toolpolicies\/default\/p\.yaml:10: .*servers\[0\]: no server .* "nots"; did you mean "notes"\?/,
  ],
  [
    'a tool that does not exist',
    policy('[notes]}', '[notes], tools: [wrte]}'),
    /^warning: toolpolicies\/default\/p\.yaml:10: .*tools\[0\]: no known tool of notes is named "wrte"; did you mean "write"\?/,
  ],
  [
    'an agent that does not exist',
    policy('{servers', '{agents: [aa], servers'),
    /^warning: toolpolicies\/default\/p\.yaml:10: .*agents\[0\]: no agent of this policy is named "aa"; did you mean "a"\?/,
  ],
  [
    'an action that does not exist',
    policy('allow', 'permit'),
    /^toolpolicies\/default\/p\.yaml:9: spec\.rules\[0\]\.action: Unsupported value: "permit": supported values: "allow"/,
  ],
  [
    'an unknown variable',
    rule('      action: deny\n      when: arg.x == 1'),
    /^toolpolicies\/default\/p\.yaml:10: spec\.rules\[0\]\.when: unknown variable "arg", did you mean "args"\?/,
  ],
  [
    'an expression that does not parse',
    rule('      action: deny\n      when: args.x =='),
    /^toolpolicies\/default\/p\.yaml:10: spec\.rules\[0\]\.when: /,
  ],
  [
    'a rule without an action',
    policy('      action: allow\n', ''),
    /^toolpolicies\/default\/p\.yaml:8: spec\.rules\[0\]\.action: Required value/,
  ],
  [
    'a server without an address',
    server('  url: http://127.0.0.1:1/mcp\n', ''),
    /^mcpservers\/default\/notes\.yaml:\d+: spec\.(?:url|stdio): Required value/,
  ],
  [
    'an address without http',
    server('http://127.0.0.1:1/mcp', '127.0.0.1:1/mcp'),
    /^mcpservers\/default\/notes\.yaml:7: spec\.url: Invalid value/,
  ],
  [
    'a missing secret of a server',
    server('  url', '  auth: {type: bearerSecret, secretRef: {name: s, key: k}}\n  url'),
    /^mcpservers\/default\/notes\.yaml:7: spec\.auth\.secretRef: no Secret default\/s\/k/,
  ],
  [
    'a credential without its secret',
    server('  url', '  auth: {type: bearerSecret}\n  url'),
    /^mcpservers\/default\/notes\.yaml:7: spec\.auth\.secretRef: Required value: type bearerSecret requires secretRef/,
  ],
  [
    'a scope that opens nothing',
    agent('  policyRef', "  scopes: ['tools:nots']\n  policyRef"),
    /^warning: agents\/default\/a\.yaml:7: spec\.scopes\[0\]: no server .* "nots"; did you mean "notes"\?/,
  ],
  [
    'a missing key of a model',
    agent(
      '  policyRef',
      '  model: {endpoint: "http://127.0.0.1:1/v1", apiKeySecretRef: {name: m, key: k}}\n  policyRef',
    ),
    /^warning: agents\/default\/a\.yaml:7: spec\.model\.apiKeySecretRef: no Secret default\/m\/k; write the key into \.plat\/secrets\/default\/m\/k/,
  ],
  [
    'a model without a price',
    agent(
      '  policyRef',
      '  budget: {perDayUSD: 5}\n  model: {name: m, endpoint: "http://127.0.0.1:1/v1"}\n  policyRef',
    ),
    /^warning: agents\/default\/a\.yaml:8: spec\.model: openai\/m has no price, .*; add it .*, or run plat pricing update/,
  ],
  [
    'a budget in another currency',
    agent('  policyRef', '  budget: {currency: EUR, perDayUSD: 5}\n  policyRef'),
    /^agents\/default\/a\.yaml:7: spec\.budget\.currency: /,
  ],
  [
    'an exception without a default',
    budget('each: [{per: user, perDay: 5, except: [{names: [ada], perMonth: 9}]}]'),
    /^budgetpolicies\/default\/b\.yaml:7: spec\.each\[0\]\.except\[0\]\.perMonth: needs the default of all others: perMonth of the template/,
  ],
  [
    'a template of something that is not counted',
    budget('each: [{per: usr, perDay: 5}]'),
    /^budgetpolicies\/default\/b\.yaml:7: spec\.each\[0\]\.per: Unsupported value: "usr"/,
  ],
  [
    'a template without a cap',
    budget('each: [{per: user}]'),
    /^budgetpolicies\/default\/b\.yaml:7: spec\.each\[0\]: .*a cap is required: perDay, perMonth or tokensPerDay/,
  ],
  [
    'a misspelt agent in a template',
    budget('each: [{per: agent, names: [aa], tokensPerDay: 5}]'),
    /^warning: budgetpolicies\/default\/b\.yaml:7: spec\.each\[0\]\.names\[0\]: no agent that this budget can select is named "aa"; did you mean "a"\?/,
  ],
  [
    'an empty name in an exception of a rate',
    rule('      action: allow\n      rateLimit: {count: 1, seconds: 9, per: group, except: [{names: [""], count: 2}]}'),
    /^toolpolicies\/default\/p\.yaml:10: spec\.rules\[0\]\.rateLimit\.except\[0\]\.names\[0\]: must not be empty/,
  ],
  [
    'a misspelt key of gateway.json',
    gateway('{\n  "sessionBudgetUS": 1\n}'),
    /^gateway\.json:2: sessionBudgetUS: .*sessionBudgetUSD/,
  ],
  [
    'a value of another type in gateway.json',
    gateway('{\n  "sessionBudgetUSD": "1"\n}'),
    /^gateway\.json:2: sessionBudgetUSD: must be/,
  ],
]

test('a folder without a mistake has no line', async () => {
  assert.deepEqual(await linesOf({}), [])
})

for (const [mistake, changes, line] of MISTAKES) {
  test(`${mistake} is one line with file, line and fix`, async () => {
    const lines = await linesOf(changes)
    assert.ok(
      lines.some((one) => line.test(one)),
      lines.join('\n') || 'no line',
    )
    for (const one of lines) assert.ok(one.length < 400 && !/^\s+at /.test(one), one)
  })
}
