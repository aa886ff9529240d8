import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening } from '@plat/testkit/local'
import { denialOf } from '@plat/testkit/mcp/denial'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'

let dir: string
let upstream: ScriptedUpstream
let model: ModelServer
let gateway: GatewayProcess
/** Texts sent to the classifiers, by guard. */
const classified = new Map<string, string[]>()
/** Responses held until both requests arrived. */
const pair: ServerResponse[] = []

/** Resolves when the client of a stream has received its progress. */
let progressed = Promise.withResolvers<void>()

/** One classifier for all guards: the path names the guard, and ATTACK is flagged. */
const classifier = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const name = request.url?.slice(1) ?? ''
  const { text, target } = JSON.parse(Buffer.concat(chunks).toString())
  classified.set(name, [...(classified.get(name) ?? []), `${target} ${text}`])
  if (name.startsWith('pair')) {
    pair.push(response)
    if (pair.length === 2) for (const one of pair) one.end('{"score":0}')
    return
  }
  if (request.headers.authorization !== undefined && request.headers.authorization !== 'Bearer rotated') {
    return void response.writeHead(401).end()
  }
  response.end(JSON.stringify({ score: text.includes('ATTACK') ? 0.9 : 0.1 }))
})

const rules = [
  { name: 'all', action: 'allow' },
  { name: 'careful', action: 'deny', match: { taints: ['prompt-injection-suspected'], tools: ['delete'] } },
]

before(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  upstream = await startScriptedUpstream()
  model = await startModelServer()
  const port = await listening(classifier)
  upstream.answers((request, response) => {
    const { id, params } = JSON.parse(request.body)
    const text = params?.arguments?.says ?? 'done'
    const result = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })
    if (params?.name !== 'block_stream') return void response.writeHead(200, JSON_TYPE).end(result)
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(progress)}\n\n`)
    progressed.promise.then(() => response.end(`data: ${result}\n\n`))
  })
  const at = (name: string) => ({ name, type: 'http-json', url: `http://127.0.0.1:${port}/${name}`, timeoutMs: 60_000 })
  const dead = (name: string) => ({ ...at(name), url: 'http://127.0.0.1:9/' })
  const guards = [
    { ...at('results'), servers: ['notes'], tools: ['look*'] },
    { ...at('blocks'), tools: ['block*'], action: 'block' },
    { ...at('arguments'), on: ['toolArgs'], tools: ['send'], action: 'block' },
    { ...at('thoughts'), on: ['toolArgs', 'toolResult'], tools: ['think'], label: 'thought' },
    { ...at('prompts'), on: ['llmPrompt'], servers: ['llm/small'], label: 'asked' },
    { ...at('strict-prompts'), on: ['llmPrompt'], servers: ['llm/strict'], action: 'block' },
    { ...at('elsewhere'), namespaces: ['other'], action: 'block' },
    { ...at('pair-1'), tools: ['pair'] },
    { ...at('pair-2'), tools: ['pair'] },
    { ...at('keyed'), tools: ['keyed'], apiKeyFile: path.join(dir, 'key'), failOpen: false },
    { ...dead('closed'), tools: ['closed'], failOpen: false },
    { ...dead('open'), tools: ['open'] },
  ]
  await writeFile(path.join(dir, 'key'), 'first\n')
  const policyFile = path.join(dir, 'policies.json')
  await writeFile(policyFile, policiesFile([testPolicy({ rules })]))
  gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    scopes: ['models:small', 'models:strict'],
    config: {
      policyFile,
      policyReloadSeconds: 1,
      taintStorePath: path.join(dir, 'taints.jsonl'),
      models: { small: { upstream: model.url }, strict: { upstream: model.url } },
      guards,
    },
  })
})

after(async () => {
  await upstream.close()
  await model.close()
  await closed(classifier)
  await gateway.close()
  await rm(dir, { recursive: true })
})

const JSON_TYPE = { 'content-type': 'application/json' }

const post = async (place: string, body: object) => (await send(place, body)).text()

function send(place: string, body: object): Promise<Response> {
  return fetch(gateway.url + place, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })
}

const callOf = (name: string, says: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: { says } },
})
const call = (name: string, says = 'done') => post('/mcp/notes', callOf(name, says))

/** Reads a stream whose end is sent after its beginning was received. */
async function streamed(says: string): Promise<string> {
  progressed = Promise.withResolvers()
  const { body } = await send('/mcp/notes', callOf('block_stream', says))
  let text = ''
  for await (const chunk of body ?? assert.fail()) {
    text += Buffer.from(chunk).toString()
    progressed.resolve()
  }
  return text
}
const errorIn = (text: string) => /"error":"(\w+)"/.exec(text)?.[1] ?? null
const records = async () => (await gateway.ledger()).map((line) => JSON.parse(line).rec)
const outcomesOf = async (tool: string) =>
  (await records()).filter((rec) => rec.kind === 'outcome' && rec.tool === tool)
const stored = () => readFile(path.join(dir, 'taints.jsonl'), 'utf8')

test('a flagged result labels its session, durably before it is sent, and policies see the label', async () => {
  // Shows D3.guards.on.toolResult, D3.guards.action.taint.
  // Shows D3.dlp.guards, D3.guards.name, D3.guards.on, D3.guards.label, D3.guards.action, D3.guards.servers, D3.guards.tools.
  assert.ok((await call('look', 'a recipe')).includes('a recipe'))
  assert.ok(!(await stored()).includes('prompt-injection-suspected'))
  assert.equal(errorIn(await call('delete')), null)
  assert.ok((await call('look_again', 'ATTACK')).includes('ATTACK'))
  assert.ok((await stored()).includes('prompt-injection-suspected'))
  assert.equal(errorIn(await call('delete')), 'policy_denied')
  assert.deepEqual(classified.get('results'), ['toolResult text\na recipe', 'toolResult text\nATTACK'])
  await until(async () => (await outcomesOf('look_again')).length > 0, 'the record')
  assert.deepEqual((await outcomesOf('look_again'))[0]?.taintsAdded, ['prompt-injection-suspected'])
})

test('a blocked result is never sent, also in a stream, while earlier messages are', async () => {
  // Shows D3.guards.action.block.
  const whole = await call('block', 'ATTACK')
  assert.deepEqual([errorIn(whole), whole.includes('ATTACK')], ['guard_blocked', false])
  assert.equal(denialOf(JSON.parse(whole)).code, 403)
  const bad = await streamed('ATTACK')
  assert.ok(bad.includes('notifications/progress'))
  assert.deepEqual([errorIn(bad), bad.includes('ATTACK')], ['guard_blocked', false])
  assert.ok((await streamed('a recipe')).includes('a recipe'))
})

test('flagged arguments are blocked before the tool gets them, or label the session', async () => {
  // Shows D3.guards.on.toolArgs.
  const seen = upstream.received.length
  assert.equal(errorIn(await call('send', 'ATTACK')), 'guard_blocked')
  assert.equal(upstream.received.length, seen)
  assert.equal(errorIn(await call('send', 'a recipe')), null)
  assert.equal(errorIn(await call('think', 'ATTACK')), null)
  assert.deepEqual(classified.get('thoughts'), ['toolArgs ATTACK', 'toolResult text\nATTACK'])
  await until(async () => (await outcomesOf('think')).length > 0, 'the record')
  assert.deepEqual((await outcomesOf('think'))[0]?.taintsAdded, ['thought'])
})

test('a prompt is classified before the model gets it', async () => {
  // Shows D3.guards.on.llmPrompt.
  const ask = (route: string, content: string) =>
    post(`/llm/${route}/v1/chat/completions`, { model: 'm', messages: [{ role: 'user', content }] })
  assert.ok((await ask('small', 'ATTACK')).includes('Hello'))
  assert.ok((await stored()).includes('"asked"'))
  assert.match(classified.get('prompts')?.[0] ?? '', /^llmPrompt .*ATTACK/s)
  const seen = model.calls.length
  assert.match(await ask('strict', 'ATTACK'), /guard_blocked/)
  assert.equal(model.calls.length, seen)
  assert.ok((await ask('strict', 'a recipe')).includes('Hello'))
})

test('a guard for other namespaces, servers or tools is never called', () => {
  // Shows D3.guards.namespaces.
  assert.equal(classified.get('elsewhere'), undefined)
  assert.ok(classified.get('results')?.every((text) => !text.startsWith('toolArgs')))
})

test('several guards classify one text concurrently', async () => {
  assert.equal(errorIn(await call('pair')), null)
  assert.equal(pair.length, 2)
})

test('without a response a call passes and is audited, or is refused, by failOpen', async () => {
  // Shows D3.guards.failOpen, D3.error.guard_unavailable.
  const refused = await call('closed')
  assert.deepEqual([errorIn(refused), denialOf(JSON.parse(refused)).code], ['guard_unavailable', 503])
  assert.equal(errorIn(await call('open')), null)
  const alerts = async () => (await records()).filter(({ alert }) => alert === 'guard_unavailable')
  await until(async () => (await alerts()).length > 0, 'the record')
  const [first, ...more] = await alerts()
  const { guard, target, server, tool, session, call: id } = first ?? {}
  assert.deepEqual([guard, target, server, tool, session, more], ['open', 'toolResult', 'notes', 'open', 's1', []])
  await until(async () => (await outcomesOf('open')).length > 0, 'the record')
  assert.equal((await outcomesOf('open'))[0]?.call, id)
})

test('a rotated key applies without a restart', async () => {
  assert.equal(errorIn(await call('keyed')), 'guard_unavailable')
  await writeFile(path.join(dir, 'key'), 'rotated\n')
  await until(async () => errorIn(await call('keyed')) === null, 'the new key')
})

test('metrics count checks, blocked texts and durations', async () => {
  // Shows D3.metric.plat_gateway_guard_checks_total, D3.metric.plat_gateway_guard_blocked_total.
  // Shows D3.metric.plat_gateway_guard_latency_seconds.
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  const has = (line: RegExp) => assert.match(text, line)
  has(/^plat_gateway_guard_checks_total\{guard="results",target="toolResult",outcome="clean"\} 1$/m)
  has(/^plat_gateway_guard_checks_total\{guard="results",target="toolResult",outcome="flagged"\} 1$/m)
  has(/^plat_gateway_guard_checks_total\{guard="closed",target="toolResult",outcome="unavailable"\} 1$/m)
  has(/^plat_gateway_guard_checks_total\{guard="prompts",target="llmPrompt",outcome="flagged"\} 1$/m)
  has(/^plat_gateway_guard_blocked_total\{guard="arguments",target="toolArgs"\} 1$/m)
  has(/^plat_gateway_guard_blocked_total\{guard="blocks",target="toolResult"\} 2$/m)
  has(/^plat_gateway_guard_latency_seconds_count\{guard="results"\} 2$/m)
})
