import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import fc from 'fast-check'
import { type TSchema, Type } from 'typebox'
import { compileExpression } from './cel.ts'
import type { Node } from './check.ts'
import { API_VERSION, type Kind, kinds } from './kinds/kinds.ts'
import { parseResource } from './manifest.ts'
import { checkRules } from './rules.ts'
import { validate, withDefaults } from './validate.ts'

const head = (kind: string) =>
  `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: x, namespace: default}\nspec:\n`

function problemsOf(kind: Kind, spec: string): string[] {
  const { problems } = parseResource(kind, head(kind) + spec)
  return problems.map((problem) => problem.replace(/^\d+: /, ''))
}

const agent = (more: string) => problemsOf('Agent', `  image: i\n  tier: t\n${more}`)
const server = (more: string) => problemsOf('MCPServer', `  url: http://x\n${more}`)

test('problems have the messages of the Kubernetes API server', () => {
  assert.deepEqual(agent('  tools: [{}]'), ['spec.tools[0].name: Required value'])
  assert.deepEqual(agent('  profile: foo'), [
    'spec.profile: Unsupported value: "foo": supported values: "default", "browser", "codeInterpreter"',
  ])
  assert.deepEqual(agent('  maxConcurrentSessions: -1'), [
    'spec.maxConcurrentSessions: Invalid value: -1: spec.maxConcurrentSessions in body should be greater than or equal to 0',
  ])
  assert.deepEqual(agent('  tier: 1'.replace('tier', 'policyRef')), [
    'spec.policyRef: Invalid value: "integer": spec.policyRef in body must be of type string: "integer"',
  ])
})

test('unknown fields are refused at every depth, suggesting the intended field', () => {
  assert.deepEqual(agent('  polcyRef: p'), ['spec.polcyRef: unknown field, did you mean "policyRef"?'])
  assert.deepEqual(agent('  tools: [{name: a, serverref: {name: b}}]'), [
    'spec.tools[0].serverref: unknown field, did you mean "serverRef"?',
  ])
  assert.deepEqual(server('  toolLabels: {search: {taint: [x]}}'), [
    'spec.toolLabels[search].taint: unknown field, did you mean "taints"?',
  ])
})

test('sizes, patterns, ranges and duplicate list keys are checked', () => {
  const refused: string[][] = [
    agent(`  web: {allowedDomains: [${'a,'.repeat(257)}]}`),
    agent('  tools: [{name: A}]'),
    agent(`  tools: [{name: ${'a'.repeat(64)}}]`),
    agent('  tools: [{name: a}, {name: a}]'),
    agent('  workspace: {size: 1Gi, mountPath: work}'),
    agent('  workspace: {size: lots}'),
    agent('  budget: {currency: usd}'),
    agent('  idleTimeout: soon'),
    agent('  maxConcurrentSessions: 2147483648'),
    agent('  maxConcurrentSessions: 1.5'),
    agent('  model: {maxTokensPerRequest: 9223372036854775807}'),
    agent('  model: {endpoint: "ftp://host"}'),
    agent(`  model: {fallbacks: [${'{endpoint: "http://x"},'.repeat(9)}]}`),
    agent('  a2a: {expose: true, endpoint: "http://x", skills: [{id: "-", name: a}]}'),
    agent('  env: [{name: A, valueFrom: {}}]'),
    agent('  env: [{name: A=B}]'),
    server('  timeoutSeconds: 0'),
    server('  timeoutSeconds: 3601'),
    server('  jurisdiction: DEU'),
    server('  transport: sse'),
    problemsOf('MCPServer', '  url: http://@host'),
    problemsOf('ToolPolicy', '  defaultAction: allow'),
    problemsOf('ToolPolicy', '  rules: [{name: a, action: allow}, {name: a, action: deny}]'),
  ]
  for (const [index, problems] of refused.entries()) assert.equal(problems.length, 1, `case ${index}: ${problems}`)
})

test('rules across fields are enforced', () => {
  const secret = 'secretRef: {name: s, key: k}'
  const cases: [string[], string | null][] = [
    [agent('  a2a: {expose: true}'), 'spec.a2a.endpoint: Required value: expose requires endpoint'],
    [agent('  a2a: {expose: false}'), null],
    [agent('  model: {provider: ctxengine, adapter: openai}'), null],
    [
      agent('  model: {provider: ctxengine, adapter: gemini}'),
      'spec.model: Invalid value: "object": provider ctxengine is OpenAI-compatible: adapter must be unset or openai',
    ],
    [
      agent('  env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: a}}}]'),
      'spec.env[0].valueFrom: Invalid value: "object": may not be specified when `value` is not empty',
    ],
    [
      agent('  env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: a/../b, key: k}}}]'),
      'spec.env[0].valueFrom.fileKeyRef.path: Invalid value: "object": must be a relative path without `..`',
    ],
    [agent('  env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: a..b, key: k}}}]'), null],
    [
      server('  auth: {type: bearerSecret}'),
      'spec.auth.secretRef: Required value: type bearerSecret requires secretRef',
    ],
    [server(`  auth: {type: bearerSecret, ${secret}}`), null],
    [
      server(`  auth: {type: headerSecret, ${secret}}`),
      'spec.auth.headerName: Required value: type headerSecret requires headerName',
    ],
    [
      server('  auth: {type: oauthClientCredentials}'),
      'spec.auth.oauth: Required value: type oauthClientCredentials requires oauth',
    ],
    [
      server('  auth: {type: tokenExchange}'),
      'spec.auth.tokenExchange: Required value: type tokenExchange requires tokenExchange',
    ],
    [server('  auth: {type: mtls}'), 'spec.auth.mtls: Required value: type mtls requires mtls'],
    [server('  auth: {type: none, perUser: true}'), 'spec.auth.provider: Required value: perUser requires provider'],
    [server('  auth: {type: none, perUser: true, provider: github}'), null],
    [
      server(`  auth: {type: bearerSecret, ${secret}, perUser: true, provider: github}`),
      'spec.auth.type: Invalid value: "object": perUser is only valid with type none or mtls',
    ],
    [
      server('  auth: {type: none, provider: github}'),
      'spec.auth.provider: Invalid value: "object": provider is only valid with perUser',
    ],
  ]
  for (const [problems, expected] of cases) assert.deepEqual(problems, expected === null ? [] : [expected])
})

test('a rule that cannot be evaluated counts as violated', () => {
  const schema = Type.Object({}, { 'x-kubernetes-validations': [{ rule: 'self.missing == 1', message: 'no' }] })
  assert.deepEqual(checkRules(schema, {}), [{ path: '', message: 'Invalid value: "object": no' }])
})

test('quantities are accepted in every documented form', () => {
  for (const size of ['1', '1Gi', '1.5Gi', '500m', '1e3', '1E3', '100k', '2Ei', '5']) {
    assert.deepEqual(agent(`  workspace: {size: ${size}}`), [], size)
  }
  for (const size of ['1gi', 'Gi', '1e', '1 Gi', "''"])
    assert.equal(agent(`  workspace: {size: ${size}}`).length, 1, size)
})

test('defaults are filled in', () => {
  const spec = parseResource(
    'Agent',
    `${head('Agent')}  image: i\n  tier: t\n  a2a: {expose: false}\n  workspace: {size: 1}`,
  ).object?.spec
  assert.deepEqual([spec?.idleTimeout, spec?.a2a?.trust, spec?.workspace?.mountPath], ['15m', 'trusted', '/workspace'])
  assert.equal(spec?.budget, undefined)
  const policy = parseResource('ToolPolicy', head('ToolPolicy').replace('spec:', 'spec: {}')).object
  assert.deepEqual(policy?.spec, { mode: 'enforce', defaultAction: 'deny' })
})

test('a text of another kind or version, or with a status, is refused; so are duplicate keys and bombs', () => {
  const good = `${head('MCPServer')}  url: http://x\n`
  assert.deepEqual(parseResource('MCPServer', good).problems, [])
  const bad = [
    good.replace('v1alpha1', 'v1'),
    good.replace('kind: MCPServer', 'kind: Agent'),
    `${good}status: {}\n`,
    `${good}  url: http://y\n`,
    `${good}---\n${good}`,
    '',
    'text',
    `a: &a [x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d]\n`,
    '#'.repeat(2 ** 20 + 1),
  ]
  for (const text of bad) assert.notEqual(parseResource('MCPServer', text).problems.length, 0, text.slice(0, 80))
})

test('a name of the form of a number without digits before its exponent is text, as kubectl reads it', () => {
  for (const name of ['e2', 'e401', '1-2']) {
    const { object, problems } = parseResource(
      'MCPServer',
      `${head('MCPServer').replace('name: x', `name: ${name}`)}  url: http://x\n`,
    )
    assert.deepEqual([object?.metadata.name, problems], [name, []])
  }
})

test('no text makes the parser throw', () => {
  const piece = fc.constantFrom(
    'a',
    ': ',
    '\n',
    '  ',
    '- ',
    '{',
    '}',
    '[',
    ']',
    '&a',
    '*a',
    '|',
    '>',
    '"',
    '?',
    '!!',
    '---',
    '\u2028',
    '<<',
  )
  fc.assert(
    fc.property(fc.array(piece), (pieces) => void parseResource('Agent', head('Agent') + pieces.join(''))),
    { numRuns: 500 },
  )
})

test('every schema stays structural: described types, closed objects, bounded texts and lists, rules that compile', () => {
  const walk = (schema: TSchema, at: string): void => {
    const node: Node = schema
    assert.ok(node.type !== undefined || node['x-kubernetes-int-or-string'] === true, `${at} has a type`)
    if (node.type === 'string' && node.enum === undefined) assert.ok(node.maxLength !== undefined, `${at} has a limit`)
    if (node.type === 'array') assert.ok(node.maxItems !== undefined, `${at} has a limit`)
    if (node.pattern !== undefined) assert.ok(!node.pattern.includes('(?'), `${at} has a pattern of RE2`)
    for (const { rule } of node['x-kubernetes-validations'] ?? []) {
      assert.equal(typeof compileExpression(rule, ['self', 'oldSelf']), 'object', `${at}: ${rule}`)
    }
    if (node.items !== undefined) walk(node.items, `${at}[]`)
    for (const [name, child] of Object.entries(node.properties ?? {})) walk(child, `${at}.${name}`)
    if (isObject(node.additionalProperties)) walk(node.additionalProperties, `${at}[*]`)
    else if (node.type === 'object' && node['x-kubernetes-preserve-unknown-fields'] !== true)
      assert.equal(node.additionalProperties, false, `${at} is closed`)
    assert.ok(!('anyOf' in node) && !('patternProperties' in node), `${at} is structural`)
  }
  for (const [kind, { spec, status }] of Object.entries(kinds)) {
    walk(spec, `${kind}.spec`)
    walk(status, `${kind}.status`)
  }
})

test('a BudgetPolicy needs a cap, and alerts at 50, 80 and 100 percent by default', () => {
  const budget = (spec: string) => problemsOf('BudgetPolicy', `  ${spec}`)
  assert.deepEqual(budget('currency: EUR'), [
    'spec: Invalid value: "object": a cap is required: perSession, perDay, perMonth, tokensPerDay or each',
  ])
  for (const cap of ['perSession: "0.50"', 'perDay: 5', 'perMonth: 1k', 'tokensPerDay: 1000']) {
    assert.deepEqual(budget(cap), [])
  }
  const refused = ['perDay: lots', 'tokensPerDay: 0', 'perDay: 1\n  alerts: [0]', 'perDay: 1\n  alerts: [101]']
  for (const spec of refused) assert.equal(budget(spec).length, 1, spec)
  assert.deepEqual(budget('perDay: 1\n  selector: {agent: [a]}'), [
    'spec.selector.agent: unknown field, did you mean "agents"?',
  ])
  const { object } = parseResource('BudgetPolicy', `${head('BudgetPolicy')}  perDay: 5`)
  assert.deepEqual(object?.spec, { perDay: 5, currency: 'USD', alerts: [50, 80, 100] })
})

test('a SovereigntyPolicy names jurisdictions, address ranges and classes of data in their own spelling', () => {
  const problems = (spec: object) =>
    validate('SovereigntyPolicy', {
      apiVersion: 'plat.dev/v1alpha1',
      kind: 'SovereigntyPolicy',
      metadata: { name: 'eu', namespace: '' },
      spec,
    }).map(({ path }) => path)
  assert.deepEqual(
    problems({
      allowedJurisdictions: ['EU', 'US-CA'],
      deniedJurisdictions: ['us-ny'],
      requireJurisdiction: true,
      dataClassRules: { restricted: { allowedJurisdictions: ['DE'], requireJurisdiction: true } },
      allowedCIDRs: ['10.0.0.0/8', 'fd00::/8'],
      auditRetentionDays: 365,
    }),
    [],
  )
  const wrong = { allowedJurisdictions: ['Europe'], dataClassRules: { secret: {} }, allowedCIDRs: ['10.0.0.1'] }
  assert.deepEqual(problems(wrong), [
    'spec.allowedJurisdictions[0]',
    'spec.dataClassRules.secret',
    'spec.allowedCIDRs[0]',
  ])
  assert.deepEqual(problems({ auditRetentionDays: -1 }), ['spec.auditRetentionDays'])
})

test('a TrustTier, a session and a revocation require their fields, and accept no others', () => {
  const lines = (kind: Kind, spec: object, namespace = 'default') =>
    validate(kind, withDefaults(kind, { apiVersion: API_VERSION, kind, metadata: { name: 'a', namespace }, spec })).map(
      ({ path, message }) => `${path}: ${message}`,
    )
  assert.deepEqual(lines('TrustTier', { isolation: 'gvisor' }, ''), [
    'spec.runtimeClassName: Required value: isolation requires runtimeClassName',
  ])
  const podDefaults = { tolerations: [{ key: 'a', operator: 'Exists' }], securityContext: { runAsUser: 1000 } }
  assert.deepEqual(lines('TrustTier', { isolation: 'kata', runtimeClassName: 'kata', podDefaults }, ''), [])
  assert.deepEqual(lines('AgentSession', { agentRef: 'a', user: 'ada@example.com', ttl: '1h' }), [])
  assert.deepEqual(lines('AgentSession', {}), ['spec.agentRef: Required value'])
  assert.deepEqual(lines('AgentRevocation', { target: { all: true } }), [])
  assert.equal(lines('AgentRevocation', { target: { all: true, user: 'ada' } }).length, 1)
  assert.equal(lines('AgentRevocation', { target: { agent: 'no-namespace' } }).length, 1)
})

test('texts are counted in code points, have no lone surrogates, and times are as a gateway reads them', () => {
  const lines = (spec: object) =>
    validate('AgentRevocation', {
      apiVersion: API_VERSION,
      kind: 'AgentRevocation',
      metadata: { name: 'a', namespace: 'default' },
      spec: { target: { namespace: 'default' }, ...spec },
    }).map(({ path }) => path)
  assert.deepEqual(lines({ reason: '😀'.repeat(1024) }), [])
  assert.deepEqual(lines({ reason: '😀'.repeat(1025) }), ['spec.reason'])
  assert.deepEqual(lines({ reason: 'x'.repeat(5000) }), ['spec.reason'])
  assert.deepEqual(lines({ reason: '\ud83d' }), ['spec.reason'])
  for (const expiresAt of ['2026-01-01T00:00:00Z', '2026-01-01T23:59:59.123456789+05:30'])
    assert.deepEqual(lines({ expiresAt }), [], expiresAt)
  for (const expiresAt of ['2026-01-01T00:00:00.1234567890Z', '2026-01-01t00:00:00z', '2026-01-01T24:00:00Z'])
    assert.ok(lines({ expiresAt }).includes('spec.expiresAt'), expiresAt)
})

test('the first hundred of very many problems are listed, each with its line', () => {
  const fields = (count: number) => Array.from({ length: count }, (_, at) => `  x${at}: 1\n`).join('')
  const problems = (count: number) => parseResource('ToolPolicy', head('ToolPolicy') + fields(count)).problems
  assert.equal(problems(100).length, 100)
  assert.deepEqual(problems(100).at(-1), '104: spec.x99: unknown field')
  for (const count of [101, 5000]) {
    assert.equal(problems(count).length, 101)
    assert.deepEqual(problems(count).slice(-2), ['104: spec.x99: unknown field', '1: more than 100 problems'])
  }
  const list = parseResource('ToolPolicy', `${head('ToolPolicy')}  rules: [${'1,'.repeat(200)}]\n`).problems
  assert.equal(list.length, 101)
})
