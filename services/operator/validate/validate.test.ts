import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Kind, type Manifest, parseResource } from '@plat/resources'
import { agentProblems } from './agent.ts'
import { budgetProblems, selectorProblems, templateProblems } from './budget.ts'
import { policyProblems } from './policy.ts'
import { checked, type Problem, partsOfLine, problemLine, shareProblems } from './problem.ts'
import { serverProblems } from './server.ts'

/** The object as a store has it: its schema accepts it, so only the operator can refuse it. */
function object<K extends Kind>(kind: K, spec: object, name = 'x'): Manifest<K> {
  const text = JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata: { name, namespace: 'team' }, spec })
  const { object: found, problems } = parseResource(kind, text)
  return found ?? assert.fail(problems.join('\n'))
}

const lines = (problems: readonly Problem[]) => problems.map(({ path, why }) => `${path}: ${why}`)

/** Each row: what the test is about, the spec, and the lines that the operator writes into its status. */
type Rows = readonly (readonly [about: string, spec: object, problems: readonly string[]])[]

const onFiles = { currency: 'USD', home: null }
const onCluster = { currency: 'USD', home: 'plat-system' }
const agent = (spec: object) => object('Agent', { policyRef: 'p', ...spec })
const modelOf = (model: object) => ({ model: { endpoint: 'https://llm.example', ...model } })

const FILE_NAMES = 'name and key must be usable as file names'
const DOMAIN = 'must be a domain such as example.com or *.example.com'

const models: Rows = [
  [
    'a complete model',
    modelOf({ name: 'm', aliases: { fast: 'm-mini' }, apiKeySecretRef: { name: 'a', key: 'b' } }),
    [],
  ],
  ['an alias of nothing', modelOf({ aliases: { fast: '' } }), ['model.aliases[fast]: must not be empty']],
  [
    'a mode of another adapter',
    modelOf({ adapter: 'bedrock', adapterMode: 'vertex', region: 'eu-west-1' }),
    ['model.adapterMode: is not a mode of the adapter bedrock'],
  ],
  [
    'a mode of an adapter without modes',
    modelOf({ adapter: 'gemini', adapterMode: 'native' }),
    ['model.adapterMode: is not a mode of the adapter gemini'],
  ],
  [
    'keys of other adapters',
    modelOf({ adapter: 'gemini', apiVersion: '2024-10-21', region: 'eu-west-1', project: 'plat-dev' }),
    [
      'model.apiVersion: has no meaning for the adapter gemini',
      'model.region: has no meaning for the adapter gemini',
      'model.project: has no meaning for the adapter gemini',
    ],
  ],
  [
    'a version for the direct mode of Anthropic, which is the default',
    modelOf({ adapter: 'anthropic', apiVersion: '2023-06-01' }),
    [],
  ],
  [
    'a version for Anthropic at Bedrock, which has none',
    modelOf({ adapter: 'anthropic', adapterMode: 'bedrock', apiVersion: '2023-06-01', region: 'eu-west-1' }),
    ['model.apiVersion: has no meaning for the adapter anthropic'],
  ],
  [
    'a model of Google Cloud without its place',
    modelOf({ adapter: 'anthropic', adapterMode: 'vertex', apiKeySecretRef: { name: 'a', key: 'b' } }),
    ['model.region: is required with adapter anthropic', 'model.project: is required with adapter anthropic'],
  ],
  [
    'a region that is not the one of its address',
    modelOf({ adapter: 'bedrock', region: 'us-east-1', endpoint: 'https://bedrock-runtime.eu-west-1.amazonaws.com' }),
    ['model.region: is us-east-1, but the upstream or the model names eu-west-1'],
  ],
  ['a port that is none', modelOf({ endpoint: 'https://llm.example:x' }), ['model.endpoint: not a URL']],
  [
    'a Secret that would lead out of its folder',
    modelOf({ apiKeySecretRef: { name: '..', key: 'b' } }),
    [`model.apiKeySecretRef: ${FILE_NAMES}`],
  ],
  [
    'a fallback, whose own members are checked',
    modelOf({ fallbacks: [{ endpoint: 'https://a.example' }, { endpoint: 'https://u:p@b.example', apiVersion: '1' }] }),
    [
      'model.fallbacks[1].apiVersion: has no meaning for the adapter openai',
      'model.fallbacks[1].endpoint: must not hold credentials',
    ],
  ],
]

for (const [about, spec, problems] of models) {
  test(`an Agent with ${about}: ${problems.length === 0 ? 'accepted' : 'refused'}`, () => {
    assert.deepEqual(lines(agentProblems(agent(spec), onFiles)), problems)
  })
}

test("a token of the gateway's cloud is lent to no host outside of that cloud", () => {
  const vertex = { adapter: 'vertex', region: 'europe-west1', project: 'plat-dev' }
  const at = (endpoint: string, more: object = {}) =>
    lines(agentProblems(agent(modelOf({ ...vertex, endpoint, ...more })), onFiles)).filter((line) =>
      line.startsWith('model.endpoint'),
    )
  assert.deepEqual(at('https://europe-west1-aiplatform.googleapis.com'), [])
  assert.match(at('https://collector.example').join(), /^model\.endpoint: /)
  assert.deepEqual(at('https://collector.example', { apiKeySecretRef: { name: 'a', key: 'b' } }), [])
})

test('sandboxes need a cluster, and a cluster needs an image and a tier', () => {
  const spec = { maxConcurrentSessions: 2, browser: { liveView: true } }
  assert.deepEqual(lines(agentProblems(agent(spec), onFiles)), [
    'maxConcurrentSessions: sandboxes need a cluster',
    'browser.liveView: sandboxes need a cluster',
  ])
  assert.deepEqual(lines(agentProblems(agent({}), onCluster)), [
    'image: is required on a cluster',
    'tier: is required on a cluster',
  ])
  const complete = { ...spec, image: 'example.com/a:1', tier: 'tier-1' }
  assert.deepEqual(lines(agentProblems(agent(complete), onCluster)), [])
})

test('each list of domains of an Agent names the entry that is no domain', () => {
  const web = { allowedDomains: ['example.com', 'https://example.com'], deniedDomains: ['*.example.com', 'a b'] }
  assert.deepEqual(lines(agentProblems(agent({ web, browser: { allowedDomains: ['a b'] } }), onFiles)), [
    `web.allowedDomains[1]: ${DOMAIN}`,
    `web.deniedDomains[1]: ${DOMAIN}`,
    `browser.allowedDomains[0]: ${DOMAIN}`,
  ])
})

test('no variable of a sandbox names the key of a model or of a fallback', () => {
  const secret = (name: string, key: string) => ({ name: 'KEY', valueFrom: { secretKeyRef: { name, key } } })
  const model = {
    endpoint: 'https://a.example',
    apiKeySecretRef: { name: 'a', key: 'k' },
    fallbacks: [{ endpoint: 'https://b.example', apiKeySecretRef: { name: 'b', key: 'k' } }],
  }
  const env = [secret('a', 'other'), secret('a', 'k'), { name: 'PLAIN', value: 'x' }, secret('b', 'k')]
  assert.deepEqual(
    agentProblems(agent({ model, env }), onFiles).map(({ path }) => path),
    ['env[1].valueFrom.secretKeyRef', 'env[3].valueFrom.secretKeyRef'],
  )
})

test('an exposed Agent has an address, callers that are names, and a version', () => {
  const a2a = {
    expose: true,
    endpoint: 'http:///a.example',
    allowedCallers: ['a', 'team/*', 'a/b/c', 'a b'],
    version: '',
  }
  assert.deepEqual(lines(agentProblems(agent({ a2a }), onFiles)), [
    'a2a.endpoint: must read http(s)://<host>',
    'a2a.allowedCallers[2]: must read <name> or <namespace>/<name>',
    'a2a.allowedCallers[3]: must read <name> or <namespace>/<name>',
    'a2a.version: must not be empty',
  ])
  assert.deepEqual(agentProblems(agent({ a2a: { ...a2a, expose: false } }), onFiles), [], 'nothing is rendered of it')
})

const servers: Rows = [
  ['only a URL', { url: 'https://notes.example/mcp' }, []],
  ['credentials in its URL', { url: 'https://u:p@notes.example/mcp' }, ['url: must not hold credentials']],
  ['a text as URL', { url: 'http://[' }, ['url: not a URL']],
  [
    'a query in the base of an API',
    { url: 'https://api.example/v1?x=1', openapi: { documentURL: 'https://api.example/openapi.json' } },
    ['url: with openapi it is the base of paths: without ? and #'],
  ],
  [
    'a document outside of the directory',
    { url: 'https://api.example', openapi: { file: '../openapi.yaml' } },
    ['openapi.file: must be a path below the directory of plat up'],
  ],
  [
    'a document at an address with credentials',
    { url: 'https://api.example', openapi: { documentURL: 'https://u:p@api.example/openapi.json' } },
    ['openapi.documentURL: must not hold credentials'],
  ],
  [
    'a ConfigMap that would lead out of its folder',
    { url: 'https://api.example', openapi: { configMapRef: { name: '..', key: 'openapi.yaml' } } },
    [`openapi.configMapRef: ${FILE_NAMES}`],
  ],
  [
    'Secrets, bundles and pins that are none',
    {
      url: 'http://a.example',
      auth: { type: 'mtls', mtls: { certSecretRef: { name: '..' } } },
      caBundleRef: { name: '..', key: 'ca.crt' },
      toolPins: { pins: { read: 'sha256:1' } },
    },
    [
      'auth.type: mtls needs a url that begins with https://',
      `auth.mtls.certSecretRef: ${FILE_NAMES}`,
      `caBundleRef: ${FILE_NAMES}`,
      'toolPins.pins[read]: must read sha256:<64 hex digits>',
    ],
  ],
  [
    'a token whose Secret would lead out of its folder',
    { url: 'https://a.example', auth: { type: 'bearerSecret', secretRef: { name: 'a', key: '..' } } },
    [`auth.secretRef: ${FILE_NAMES}`],
  ],
  [
    'a program and what needs a URL',
    {
      stdio: {
        command: 'a',
        env: [
          { name: 'A', value: '\0' },
          { name: 'B', valueFrom: { secretKeyRef: { name: '..', key: 'b' } } },
        ],
      },
      auth: { type: 'bearerSecret', secretRef: { name: 'a', key: 'b' } },
      caBundleRef: { name: 'a', key: 'ca.crt' },
    },
    [
      'auth.type: needs a url; a stdio server gets its secrets by stdio.env',
      'caBundleRef: needs a url',
      'stdio.env[0].value: must not contain the character NUL',
      `stdio.env[1].valueFrom.secretKeyRef: ${FILE_NAMES}`,
    ],
  ],
  ['a folder with NUL', { stdio: { command: 'a', cwd: 'b\0' } }, ['stdio.cwd: must not contain the character NUL']],
  [
    'a header that the gateway writes',
    {
      url: 'https://a.example',
      auth: { type: 'headerSecret', headerName: 'Host', secretRef: { name: 'a', key: 'b' } },
    },
    ['auth.headerName: the gateway writes this header itself'],
  ],
  [
    'a grant with Secrets that are no file names',
    {
      url: 'https://a.example',
      auth: {
        type: 'oauthClientCredentials',
        oauth: {
          tokenURL: 'https://login.example/token',
          clientIdRef: { name: '..', key: 'id' },
          clientSecretRef: { name: 'a', key: '.' },
        },
      },
    },
    [`auth.oauth.clientIdRef: ${FILE_NAMES}`, `auth.oauth.clientSecretRef: ${FILE_NAMES}`],
  ],
  [
    'labels that a token cannot carry',
    {
      url: 'https://a.example',
      toolLabels: { a: { taints: ['*'] }, b: { clearTaints: ['*'] }, c: { sinks: ['a b'] } },
    },
    ['a', 'c'].map(
      (tool) =>
        `toolLabels[${tool}].${tool === 'a' ? 'taints' : 'sinks'}: a label is printable ASCII without spaces, and * stands for all only in clearTaints`,
    ),
  ],
]

for (const [about, spec, problems] of servers) {
  test(`an MCPServer with ${about}: ${problems.length === 0 ? 'accepted' : 'refused'}`, () => {
    assert.deepEqual(lines(serverProblems(object('MCPServer', spec))), problems)
  })
}

test('a namespace with which a server is shared is a name, and names of built-in servers are reserved', () => {
  const spec = { url: 'https://a.example', shared: true, allowedNamespaces: ['team', 'Team', '*'] }
  assert.deepEqual(lines(serverProblems(object('MCPServer', spec, 'plat-notes'))), [
    'metadata.name: names that begin with "plat-" are built in',
    'allowedNamespaces[1]: must be the name of a namespace',
    'allowedNamespaces[2]: must be the name of a namespace',
  ])
})

test('a ToolPolicy names the rule and the member that the gateway could not enforce', () => {
  const rules = [
    { name: 'a', action: 'allow', match: { tools: ['read', ''] } },
    { name: 'b', action: 'deny', quorum: { minApprovers: 1 } },
    { name: 'c', action: 'require_approval', quorum: { minApprovers: 0, approverGroups: [''] } },
    { name: 'd', action: 'allow', when: 'args.amount <' },
    { name: 'e', action: 'allow', when: 'args.amount < 10' },
    { name: 'f', action: 'require_approval', quorum: { minApprovers: 0, userConfirmation: 'ciba' } },
    {
      name: 'g',
      action: 'allow',
      rateLimit: { count: 5, seconds: 60, per: 'agent', except: [{ names: [''], count: 9 }] },
    },
  ]
  const problems = policyProblems(object('ToolPolicy', { rules, toolPins: { notes: { pins: { read: 'sha256:1' } } } }))
  assert.deepEqual(
    problems.map(({ path }) => path),
    [
      'toolPins[notes].pins[read]',
      'rules[0].match.tools[1]',
      'rules[1].quorum',
      'rules[2].quorum.approverGroups[0]',
      'rules[2].quorum.minApprovers',
      'rules[3].when',
      'rules[6].rateLimit.except[0].names[0]',
    ],
  )
})

test('amounts of budgets are not negative and in the currency that the gateway counts in', () => {
  assert.deepEqual(lines(budgetProblems({ currency: 'USD', perDay: '5', tokensPerDay: 10 }, 'USD')), [])
  assert.deepEqual(
    budgetProblems({ currency: 'EUR', perDay: '-5', perMonth: -1 }, 'USD').map(({ path }) => path),
    ['currency', 'perDay', 'perMonth'],
  )
})

test('an exception from a budget has a cap that the template has as well', () => {
  const each = [
    { per: 'user', perDay: '5', names: ['ada', ''], except: [{ names: ['bob'], perMonth: '9' }, { names: ['eve'] }] },
  ]
  assert.deepEqual(lines(templateProblems(object('BudgetPolicy', { each }).spec, 'USD')), [
    'each[0].names[1]: must not be empty',
    'each[0].except[0].perMonth: needs the default of all others: perMonth of the template',
    'each[0].except[1].names: have no cap: add perDay, perMonth or tokensPerDay',
  ])
})

test('a selector with an empty name is refused, because the gateway would refuse the whole file', () => {
  const selector = { agents: ['a', ''], users: [''], groups: ['staff'] }
  assert.deepEqual(lines(selectorProblems(object('BudgetPolicy', { selector, perDay: '1' }).spec)), [
    'selector.agents[1]: must not be empty',
    'selector.users[0]: must not be empty',
  ])
})

test('a check that throws refuses its object, and a line of a problem can be taken apart again', () => {
  const [problem] = checked(() => assert.fail('no such member'))
  assert.deepEqual(problem, { path: 'spec', why: 'cannot be checked: no such member' })
  const line = problemLine(object('ToolPolicy', {}), { path: 'rules[0].when', why: 'half \ud83d of a character: no' })
  assert.equal(line, 'ToolPolicy team/x rules[0].when: half \ufffd of a character: no')
  assert.deepEqual(partsOfLine(line), {
    object: 'ToolPolicy team/x',
    why: 'rules[0].when: half \ufffd of a character: no',
  })
})

test('an object beyond the share of its namespace is refused by its name', () => {
  const policy = object('ToolPolicy', {})
  assert.deepEqual(shareProblems(policy, {}), [])
  const oversized = new Map([['ToolPolicy team/x', 'policies.json']])
  assert.match(lines(shareProblems(policy, { oversized })).join(), /^metadata\.name: .+ in policies\.json$/)
})
