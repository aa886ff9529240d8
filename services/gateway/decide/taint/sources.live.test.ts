import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import type { TestAgent } from '@plat/testkit/a2a-server'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { testIssuer } from '@plat/testkit/identity'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { type Script, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { ProxyAgent, request } from 'undici'

const SCOPE = `tools:notes tools:web tools:plat-web tools:plat-egress tools:plat-exec tools:plat-memory tools:plat-k8s
  tools:plat-infra models:hosted models:plain models:search agents:helper agents:kept`.replace(/\s+/g, ' ')
const JSON_TYPE = { 'content-type': 'application/json' }
const BAD = 'ATTACK'
/** Clients with this name get attack texts from the server. */
const ATTACKED = 'attacked-client'

const issuer = testIssuer()
let agent: TestAgent
let upstream: ScriptedUpstream
let gateway: GatewayProcess
let sitePort: number

const site = createServer((_, response) => response.end('a page'))
/** Responses of the sandbox and of the API server of a cluster. */
const inside = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString('utf8')
  const resources = [{ name: 'pods', kind: 'Pod', namespaced: true }]
  const pod = {
    metadata: { name: 'web-1', annotations: { note: String(request.url?.includes(BAD) ? BAD : 'a text') } },
  }
  const value = request.url?.endsWith('/exec')
    ? JSON.parse(body).prints
    : request.url === '/api/v1'
      ? { resources }
      : pod
  response.writeHead(200, JSON_TYPE).end(JSON.stringify(value))
})
/** Classifies every text with the word as an attack. */
const classifier = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  response.end(JSON.stringify({ score: Buffer.concat(chunks).includes(BAD) ? 1 : 0 }))
})

const TOOL = { name: 'look', description: 'looks', inputSchema: { type: 'object' } }
const INFO = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }

/** Results by method. */
const results: Readonly<Record<string, object>> = {
  initialize: { ...INFO, instructions: 'read all of it' },
  'tools/list': { tools: [TOOL] },
  'resources/list': { resources: [{ uri: 'a:b', name: 'b', description: 'a text' }] },
  'resources/templates/list': { resourceTemplates: [] },
  'prompts/list': { prompts: [{ name: 'p', description: 'a text' }] },
  'tools/call': { content: [{ type: 'text', text: 'done' }] },
  'resources/read': { contents: [{ uri: 'a:b', text: 'a text' }] },
  'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: 'a text' } }] },
  'completion/complete': { completion: { values: ['a text'] } },
}

/** Messages before the result of a call, by tool name. */
const preceding: Readonly<Record<string, object>> = {
  progress: { method: 'notifications/progress', params: { progressToken: 1, progress: 1, message: 'a text' } },
  log: { method: 'notifications/message', params: { level: 'info', data: 'a text' } },
  elicit: { id: 9, method: 'elicitation/create', params: { message: 'a text', requestedSchema: { type: 'object' } } },
  sample: { id: 9, method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } },
}

const script: Script = (received, response) => {
  const { id, method, params, messages, input } = JSON.parse(received.body)
  if (input !== undefined) {
    const outputs = [{ type: 'logs', logs: String(input) }]
    const output = [...RESPONSE.output, { type: 'code_interpreter_call', id: 'c1', outputs }]
    return void response.writeHead(200, JSON_TYPE).end(JSON.stringify({ ...RESPONSE, output }))
  }
  if (messages !== undefined) return void response.writeHead(200, JSON_TYPE).end(JSON.stringify(COMPLETION))
  if (params?.name === 'fails') {
    const error = { code: -32000, message: 'a text' }
    return void response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }
  const first = preceding[params?.name]
  // The call gets no response, so only the first message can have added labels.
  if (first !== undefined) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    return void response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', ...first })}\n\n`)
  }
  const text = JSON.stringify({ jsonrpc: '2.0', id, result: results[method] })
  const isAttack = received.body.includes(ATTACKED)
  response
    .writeHead(200, JSON_TYPE)
    .end(isAttack ? text.replace(/read all of it|"looks"/, (own) => own.replace(/\w+/, BAD)) : text)
}

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const COMPLETION = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'small-1',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'found', refusal: null } }],
  usage: USAGE,
}
const RESPONSE = {
  id: 'r1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'small-1',
  output: [{ type: 'web_search_call', id: 'w1', status: 'completed' }],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
}

const rules = [
  { name: 'all', action: 'allow' },
  { name: 'stop', action: 'deny', match: { taints: ['untrusted-input'], tools: ['probe'] } },
  { name: 'stop-suspects', action: 'deny', match: { taints: ['prompt-injection-suspected'], tools: ['delete'] } },
]

before(async () => {
  const dir = tempFolder()
  ;[agent, upstream] = await Promise.all([startTestAgent(), startScriptedUpstream()])
  upstream.answers(script)
  sitePort = await listening(site)
  const guardPort = await listening(classifier)
  const insideURL = `http://127.0.0.1:${await listening(inside)}`
  const plain = { url: upstream.url, namespaces: [], implicit: false, dataClass: 'internal', auth: { type: 'none' } }
  const servers = { 'default/notes': { ...plain, trust: 'trusted' }, 'default/web': { ...plain, trust: 'untrusted' } }
  const exposure = { endpoint: agent.url, allowedCallers: [], skills: [], streaming: true, version: '1.0.0' }
  const agents = {
    'default/helper': { ...exposure, trust: 'untrusted' },
    'default/kept': { ...exposure, trust: 'trusted' },
  }
  const file = async (name: string, text: string) => {
    await writeFile(path.join(dir, name), text)
    return path.join(dir, name)
  }
  gateway = await startGatewayProcess({
    servers: {},
    issuer,
    config: {
      upstreamsFile: await file('upstreams.json', JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} })),
      policyFile: await file('policies.json', policiesFile([testPolicy({ rules })])),
      a2a: { routesFile: await file('agents.json', JSON.stringify({ version: 1, agents })) },
      taintStorePath: path.join(dir, 'taints.jsonl'),
      auditPath: path.join(dir, 'audit.jsonl'),
      models: {
        hosted: { upstream: upstream.url.replace('/mcp', '/v1'), providerTools: ['web_search'] },
        plain: { upstream: upstream.url.replace('/mcp', '/v1') },
        search: { upstream: upstream.url.replace('/mcp', '/v1'), model: 'gpt-4o-search-preview' },
      },
      egress: { enabled: true },
      exec: { enabled: true, endpointTemplate: `${insideURL}/{session}` },
      k8sOps: { enabled: true, apiServer: insideURL, tokenFile: await file('token', 'the-token') },
      infra: { enabled: true },
      memoryFile: await file(
        'memory.json',
        JSON.stringify({ version: 1, stores: { 'default/kept': { scope: 'agent' } } }),
      ),
      memoryDataDir: path.join(dir, 'memory'),
      web: {
        enabled: true,
        allowedDomains: ['localhost'],
        allowedPorts: [sitePort],
        allowedCIDRs: ['127.0.0.0/8', '::1/128'],
      },
      guards: [
        {
          name: 'reader',
          type: 'http-json',
          url: `http://127.0.0.1:${guardPort}/`,
          servers: ['notes', 'plat-*', 'a2a/default/kept', 'llm/*'],
          timeoutMs: 60_000,
        },
      ],
    },
  })
})

after(async () => {
  await gateway.close()
  await Promise.all([agent.close(), upstream.close(), closed(site), closed(inside), closed(classifier)])
})

function tokenOf(session: string): string {
  const sub = `spiffe://plat.local/ns/default/agent/assistant/session/${session}`
  return issuer.token({ scope: SCOPE, sub, plat_session: session })
}

async function post(token: string, at: string, body: object): Promise<string> {
  const headers = {
    ...JSON_TYPE,
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
    'a2a-version': '1.0',
  }
  const response = await fetch(`${gateway.url}${at}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return response.text()
}

const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params })
const mcp =
  (method: string, params: object = {}, server = 'web') =>
  (token: string) =>
    post(token, `/mcp/${server}`, rpc(method, params))
const tool = (name: string) => mcp('tools/call', { name, arguments: {}, _meta: { progressToken: 1 } })
const saying = (text: string) => ({ message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text }] } })
const a2a =
  (method: string, params: object, name = 'helper') =>
  (token: string) =>
    post(token, `/a2a/default/${name}`, rpc(method, params))
const hello = (more: object) => ({ model: 'small-1', messages: [{ role: 'user', content: 'hi' }], ...more })
const chat = (more: object) => (token: string) => post(token, '/llm/hosted/v1/chat/completions', hello(more))
const capabilities = { elicitation: {}, sampling: {} }
const initialize = (name: string, server = 'web') =>
  mcp('initialize', { protocolVersion: '2025-06-18', capabilities, clientInfo: { name, version: '1' } }, server)

/** Reads a task that another session of the agent began: its content comes from the agent all the same. */
async function pollTask(token: string): Promise<string> {
  const text = await a2a('SendMessage', saying('work x'))(tokenOf(`began-${sessions++}`))
  const id = JSON.parse(text).result.task.id
  return a2a('GetTask', { id })(token)
}

async function tunnel(token: string): Promise<string> {
  const dispatcher = new ProxyAgent({ uri: gateway.url, token: `Bearer ${token}`, proxyTunnel: true })
  const answer = await request(`http://localhost:${sitePort}/`, { dispatcher })
  const text = await answer.body.text()
  await dispatcher.close()
  return text
}

/** Makes the session's code print an output. */
const exec = (prints: object) => (token: string) => {
  const { plat_session: session } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  return post(token, `/v1/sessions/${session}/exec`, { prints })
}

const cluster = (name: string) =>
  mcp('tools/call', { name: 'k8s_get', arguments: { kind: 'Pod', namespace: 'default', name } }, 'plat-k8s')

const memory = (tool: string, args: object) => mcp('tools/call', { name: tool, arguments: args }, 'plat-memory')

/** Reads, from another session of the agent, an item written by a session with labels. */
const remembered = (tool: string, args: object) => async (token: string) => {
  const writer = tokenOf(`wrote-${sessions++}`)
  await mcp('tools/call', { name: 'look', arguments: {} })(writer)
  await memory('memory_write', { key: 'read', text: 'a text' })(writer)
  return memory(tool, args)(token)
}

const plan = {
  format_version: '1.2',
  terraform_version: '1.10.5',
  resource_changes: [],
  configuration: {},
  complete: true,
}

const response =
  (body: object, route = 'plain') =>
  (token: string) =>
    post(token, `/llm/${route}/v1/responses`, { model: 'small-1', input: 'hi', ...body })

let sessions = 0

/** A response that names one that another session of the agent caused before. */
const followingResponse = (body: object) => async (token: string) => {
  await response({})(tokenOf(`stored-${sessions++}`))
  return response(body)(token)
}

/** Whether the session is refused what sessions with foreign content must not call. */
async function isLabelled(token: string, probe = 'probe'): Promise<boolean> {
  const text = await mcp('tools/call', { name: probe, arguments: {} }, 'notes')(token)
  return text.includes('"error":"policy_denied"')
}

const FOREIGN: Readonly<Record<string, (token: string) => Promise<string>>> = {
  'the instructions of a server': initialize('client'),
  'the descriptions of tools': mcp('tools/list'),
  'the descriptions of resources': mcp('resources/list'),
  'the descriptions of resource templates': mcp('resources/templates/list'),
  'the descriptions of prompts': mcp('prompts/list'),
  'the result of a tool': tool('look'),
  'the error of a tool': tool('fails'),
  'a resource': mcp('resources/read', { uri: 'a:b' }),
  'a prompt': mcp('prompts/get', { name: 'p' }),
  'a completion': mcp('completion/complete', {
    ref: { type: 'ref/prompt', name: 'p' },
    argument: { name: 'a', value: 'b' },
  }),
  'a progress message': tool('progress'),
  'a log message': tool('log'),
  'an elicitation': tool('elicit'),
  'a sampling request': tool('sample'),
  'a page of the web tool': (token) =>
    post(
      token,
      '/mcp/plat-web',
      rpc('tools/call', { name: 'web_fetch', arguments: { url: `http://localhost:${sitePort}/` } }),
    ),
  'a tunnel': tunnel,
  'a message of an agent': a2a('SendMessage', saying('hello')),
  'a stream of an agent': a2a('SendStreamingMessage', saying('work x')),
  'a task that is read later': pollTask,
  'a list of tasks': a2a('ListTasks', {}),
  'the output of code': exec({ stdout: 'a text' }),
  'an object of a cluster': cluster('web-1'),
  'an item of memory': remembered('memory_read', { key: 'read' }),
  'a search of memory': remembered('memory_search', { query: 'text' }),
  'the keys of memory': remembered('memory_list', {}),
  'a chat completion with web search': chat({ web_search_options: {} }),
  'a response that follows one at the provider': followingResponse({ previous_response_id: 'r1' }),
  'a response to an item at the provider': followingResponse({ input: [{ type: 'item_reference', id: 'w1' }] }),
  'a model that searches by itself': (token) => post(token, '/llm/search/v1/chat/completions', hello({})),
  'a response with web search': (token) =>
    post(token, '/llm/hosted/v1/responses', { model: 'small-1', input: 'hi', tools: [{ type: 'web_search' }] }),
}

for (const [name, read] of Object.entries(FOREIGN))
  test(`${name} from an untrusted source labels the session before it is delivered`, async () => {
    const token = tokenOf(`s${sessions++}`)
    assert.equal(await isLabelled(token), false)
    const text = await read(token)
    assert.equal(await isLabelled(token), true, text)
  })

const OWN: Readonly<Record<string, (token: string) => Promise<string>>> = {
  'a message of a trusted agent': a2a('SendMessage', saying('hello'), 'kept'),
  'the result of a trusted tool': mcp('tools/call', { name: 'look', arguments: {} }, 'notes'),
  'an answer of a model without tools': chat({}),
  'a response without tools': response({}),
  'an item of memory that a session without labels wrote': async (token) => {
    await memory('memory_write', { key: 'own', text: 'a text' })(tokenOf(`wrote-${sessions++}`))
    return memory('memory_read', { key: 'own' })(token)
  },
  'the judgement of an infrastructure plan': (token) => post(token, '/v1/infra/plans', plan),
}

for (const [name, read] of Object.entries(OWN))
  test(`${name} labels nothing`, async () => {
    const token = tokenOf(`s${sessions++}`)
    const text = await read(token)
    assert.equal(await isLabelled(token), false, text)
    assert.doesNotMatch(text, /"error":/)
  })

/** Ways to deliver a text to the session. Texts that contain the first word are attacks. */
const ATTACKS: Readonly<Record<string, (text: string) => (token: string) => Promise<string>>> = {
  'instructions of initialize': (text) => initialize(text, 'notes'),
  'descriptions of tools': (progressToken) => mcp('tools/list', { _meta: { progressToken } }, 'notes'),
  'the output of code': (stdout) => exec({ stdout: resultOf(stdout) }),
  'the output of code that looks like a message': (text) => exec({ result: 1, method: 'a', stdout: resultOf(text) }),
  'an item of memory': (text) => async (token) => {
    const key = `item-${sessions++}`
    await memory('memory_write', { key, text: resultOf(text) })(tokenOf(`wrote-${sessions++}`))
    return memory('memory_read', { key })(token)
  },
  'an object of a cluster': (text) => cluster(text === ATTACKED ? BAD : 'web-1'),
  'a message of an agent': (text) => a2a('SendMessage', saying(`work ${resultOf(text)}`), 'kept'),
  'a result of a tool at the provider': (text) =>
    response({ tools: [{ type: 'web_search' }], input: `print ${resultOf(text)}` }, 'hosted'),
  'a stream of an agent': (text) => a2a('SendStreamingMessage', saying(`work ${resultOf(text)}`), 'kept'),
}

function resultOf(text: string): string {
  return text === ATTACKED ? BAD : 'a text'
}

for (const [name, read] of Object.entries(ATTACKS))
  test(`a guard judges the ${name}`, async () => {
    const [attacked, other] = [tokenOf(`s${sessions++}`), tokenOf(`s${sessions++}`)]
    assert.match(await read(ATTACKED)(attacked), new RegExp(BAD))
    await read('client')(other)
    assert.deepEqual([await isLabelled(attacked, 'delete'), await isLabelled(other, 'delete')], [true, false])
  })
