import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { denialIn } from '@plat/testkit/mcp/denial'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { JWT, PEM, random } from './testing/samples.ts'

const PAGE = new URL('../../../../docs/dlp.md', import.meta.url)
const CARD = '4111 1111 1111 1111'
const TOKEN = `ghp_${random(36)}`
const SERVERS = ['notes', 'payments', 'crm', 'public', 'lost', 'own', 'bare']

const ADMIN = 'a-token-of-the-test'

/** Allows everything, but payments need an approval. */
const policies = policiesFile([
  testPolicy({
    rules: [
      { name: 'all', action: 'allow' },
      { name: 'ask', action: 'require_approval', match: { tools: ['pay'] } },
    ],
  }),
])

let dir: string
let upstream: ScriptedUpstream
let gateway: GatewayProcess

before(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  upstream = await startScriptedUpstream()
  // The configuration of the page.
  const example = JSON.parse(/```json\n([^`]+)```/.exec(await readFile(PAGE, 'utf8'))?.[1] ?? '{}')
  const plain = { namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal', auth: { type: 'none' } }
  const own: Record<string, object> = {
    lost: { dlpProfile: 'gone' },
    own: { dlpProfile: 'payments' },
    bare: { dlpProfile: 'none' },
  }
  const servers = Object.fromEntries(
    SERVERS.map((name) => [`default/${name}`, { url: upstream.url, ...plain, ...own[name] }]),
  )
  const upstreamsFile = path.join(dir, 'upstreams.json')
  await writeFile(upstreamsFile, JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  const policyFile = path.join(dir, 'policies.json')
  await writeFile(policyFile, policies)
  // The server's own `none` takes precedence over the binding of the gateway.
  const dlp = { ...example.dlp, servers: { ...example.dlp.servers, bare: 'payments' } }
  gateway = await startGatewayProcess({
    servers: Object.fromEntries(SERVERS.map((name) => [name, upstream.url])),
    env: { PLAT_ADMIN_TOKEN: ADMIN },
    config: { ...example, dlp, upstreamsFile, policyFile, adminAuth: { devTokenApprovers: true } },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
  await rm(dir, { recursive: true })
})

const call = (args: string, more = '') =>
  `{"jsonrpc":"2.0","id":"4111111111111111","method":"tools/call","params":{"name":"add","arguments":${args}${more}}}`

async function ask(server: string, body: string, headers: Record<string, string> = {}): Promise<string> {
  return await (await post(server, body, headers)).text()
}

function post(server: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${gateway.url}/mcp/${server}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body,
  })
}

function answers(result: string): void {
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)
  })
}

const sent = () => upstream.received.at(-1)?.body ?? ''
const errorOf = (text: string): string => String(denialIn(JSON.parse(text))?.data.error ?? '')

async function hits(detector: string, direction: string, action: string): Promise<number> {
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
  const series = `plat_gateway_dlp_hits_total{detector="${detector}",direction="${direction}",action="${action}"} `
  return Number(
    metrics
      .split('\n')
      .find((line) => line.startsWith(series))
      ?.slice(series.length) ?? 0,
  )
}

test('arguments are forwarded with hits replaced, and all other bytes unchanged', async () => {
  // Shows D3.dlp.profile.requestAction.redact, D3.label.plat_gateway_dlp_hits_total.direction.arguments.
  // Shows D3.dlp.dlpProfiles, D3.dlp.defaultProfile, D3.dlp.profile.detectors, D3.dlp.profile.requestAction,
  // D3.metric.plat_gateway_dlp_hits_total.
  answers('{"content":[]}')
  const before = await hits('credit_card', 'arguments', 'redact')
  const args = `{ "n": 1.0, "big": 12345678901234567890, "to": "x\\u00e9 ${CARD}!", "card":4111111111111111, "t": "${TOKEN}" , "e":"\\u0041" }`
  await ask('notes', call(args, ',"_meta":{"progressToken":"4111 1111 1111 1111"}'))
  const mark = '[REDACTED:credit_card]'
  const expected = `{ "n": 1.0, "big": 12345678901234567890, "to": "xé ${mark}!", "card":"${mark}", "t": "[REDACTED:github_token]" , "e":"\\u0041" }`
  assert.equal(sent(), call(expected, ',"_meta":{"progressToken":"4111 1111 1111 1111"}'))
  assert.equal((await hits('credit_card', 'arguments', 'redact')) - before, 2)
})

test('a message without a hit is forwarded byte for byte', async () => {
  answers('{"content":[]}')
  const body = call(' { "a" : [ 1.50 , 1e3,-0 ], "\\u0061b":"\\/ \\ud83d\\ude00", "n": 4111111111111112 } ')
  await ask('notes', body)
  assert.equal(sent(), body)
})

test('member names are redacted, and refused if two would become equal', async () => {
  answers('{"content":[]}')
  await ask('notes', call(`{"${CARD}":1,"b":2}`))
  assert.equal(sent(), call('{"[REDACTED:credit_card]":1,"b":2}'))
  const count = upstream.received.length
  assert.equal(errorOf(await ask('notes', call(`{"${CARD}":1,"5555 5555 5555 4444":2}`))), 'dlp_denied')
  assert.equal(upstream.received.length, count)
})

test('hits in the name of a call cannot be redacted, and are refused', async () => {
  answers('{"contents":[]}')
  const count = upstream.received.length
  const read = (uri: string) => `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"${uri}"}}`
  assert.equal(errorOf(await ask('notes', read(`file:///tokens/${TOKEN}`))), 'dlp_denied')
  const meta = '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'add' }
  const mirrored = call(`{"card":"${CARD}"}`, `,"_meta":{${meta}}`)
  assert.equal(errorOf(await ask('notes', mirrored, { ...modern, 'mcp-param-card': CARD })), 'dlp_denied')
  assert.equal(upstream.received.length, count)
  await ask('notes', mirrored, modern)
  assert.match(sent(), /"card":"\[REDACTED:credit_card\]"/)
})

test('a profile with deny refuses the call, and reveals nothing of it', async () => {
  // Shows D3.dlp.profile.requestAction.deny.
  // Shows D3.dlp.servers.
  answers('{"content":[]}')
  const count = upstream.received.length
  const answer = await ask('payments', call(`{"card":"${CARD}"}`))
  assert.equal(errorOf(answer), 'dlp_denied')
  assert.match(answer, /credit_card/)
  assert.ok(!answer.includes(CARD))
  assert.equal(upstream.received.length, count)
  assert.equal(await hits('credit_card', 'arguments', 'deny'), 1)
  await until(async () => (await gateway.ledger()).some((line) => line.includes('dlp_denied')), 'the record')
})

test('a profile with audit allows and counts hits, and refuses secrets with onSecret', async () => {
  // Shows D3.dlp.profile.requestAction.audit.
  // Shows D3.dlp.profile.onSecret, D3.dlp.profile.custom.
  answers('{"content":[]}')
  const body = call('{"to":"alice@example.com","nr":"KD-123456"}')
  await ask('crm', body)
  assert.equal(sent(), body)
  assert.equal(await hits('email', 'arguments', 'audit'), 1)
  assert.equal(await hits('customer_number', 'arguments', 'audit'), 1)
  assert.equal(errorOf(await ask('crm', call(`{"t":"${TOKEN}"}`))), 'dlp_denied')
  const jwt = call(`{"t":"${JWT}"}`)
  await ask('crm', jwt)
  assert.equal(sent(), jwt, 'detectors not in the profile find nothing')
})

test('a server can have no profile, or its own; calls of one with an unknown profile are denied', async () => {
  // Shows D3.dlp.none, D3.dlp.precedence, D3.registry.dlpProfile, D3.registry.url, D2.server.dlpProfile,
  // D2.server.dlpProfile.none, D2.server.dlpProfile.precedence.
  answers(`{"content":[{"type":"text","text":"${CARD}"}]}`)
  const body = call(`{"card":"${CARD}"}`)
  for (const server of ['public', 'bare']) {
    assert.match(await ask(server, body), new RegExp(CARD))
    assert.equal(sent(), body)
  }
  assert.equal(errorOf(await ask('own', body)), 'dlp_denied')
  const count = upstream.received.length
  const answer = await ask('lost', call('{}'))
  assert.equal(errorOf(answer), 'dlp_denied')
  assert.match(answer, /gone/)
  assert.equal(upstream.received.length, count)
})

test('results are redacted: text, structured content, keys; sealed texts and identifiers are not', async () => {
  // Shows D3.dlp.profile.responseAction.redact.
  // Shows D3.dlp.profile.responseAction.
  const pem = JSON.stringify(PEM).slice(1, -1)
  answers(
    `{"content":[{"type":"text","text":"key: ${pem}\\nbye"}],"structuredContent":{"card":4111111111111111,"n":1.0}}`,
  )
  const answer = await ask('payments', call('{}'))
  assert.equal(
    answer,
    '{"jsonrpc":"2.0","id":"4111111111111111","result":{"content":[{"type":"text","text":"key: [REDACTED:private_key]\\nbye"}],' +
      '"structuredContent":{"card":"[REDACTED:credit_card]","n":1.0}}}',
  )
  answers(
    `{"tools":[{"name":"${TOKEN}","description":"Use ${TOKEN}","inputSchema":{"type":"object"}}],"nextCursor":"n"}`,
  )
  const list = JSON.parse(await ask('notes', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'))
  assert.deepEqual(
    [list.result.tools[0].name, list.result.tools[0].description],
    [TOKEN, 'Use [REDACTED:github_token]'],
  )
  assert.match(list.result.nextCursor, /^p1\./)
})

test('events of a stream are redacted one by one: progress, logs, requests, the result', async () => {
  upstream.answers((_, response) => {
    const event = (message: object) =>
      `event: message\nid: e1\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
    const text = `see ${CARD}`
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      event({ method: 'notifications/progress', params: { progressToken: CARD, progress: 1, message: text } }),
    )
    response.write(event({ method: 'notifications/message', params: { level: 'info', data: { text } } }))
    response.write(event({ id: 5, method: 'elicitation/create', params: { message: text, requestedSchema: {} } }))
    response.end(event({ id: '4111111111111111', result: { content: [{ type: 'text', text }] } }))
  })
  const answer = await ask('notes', call('{}'))
  const messages = answer
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)))
  const mark = 'see [REDACTED:credit_card]'
  assert.deepEqual(messages[0].params, { progressToken: CARD, progress: 1, message: mark })
  assert.equal(messages[1].params.data.text, mark)
  assert.equal(messages[2].params.message, mark)
  assert.equal(messages[3].result.content[0].text, mark)
})

test('approvers see the arguments as they are forwarded', async () => {
  answers('{"content":[]}')
  const args = `{"card":"${CARD}","amount":12}`
  const paying = ask('notes', call(args).replace('"add"', '"pay"'))
  const admin = async (way: string, body?: object) => {
    const headers = { authorization: `Bearer ${ADMIN}`, ...(body && { 'content-type': 'application/json' }) }
    const more = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return await (await fetch(`${gateway.url}/v1/approvals${way}`, { headers, ...more })).json()
  }
  let pending: { id: string; preview: unknown; argsSha256: string } | undefined
  await until(async () => {
    const { items } = Object(await admin('?state=pending'))
    pending = items[0]
    return pending !== undefined
  }, 'the approval')
  const redacted = args.replace(CARD, '[REDACTED:credit_card]')
  assert.deepEqual(pending?.preview, { mode: 'redacted', text: redacted, truncated: false })
  assert.equal(pending?.argsSha256, hash('sha256', redacted))
  await admin(`/${pending?.id}/approve`, {})
  assert.match(await paying, /"result":\{"content":\[\]\}/)
  assert.ok(sent().includes(redacted))
  // Both passes of the call scanned the arguments; its records count the one that was forwarded.
  const paid = async () => {
    const records = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
    return records.find(({ kind, tool }) => kind === 'outcome' && tool === 'pay')
  }
  await until(async () => (await paid()) !== undefined, 'the outcome')
  assert.deepEqual((await paid()).dlp, [
    { action: 'redact', count: 1, detector: 'credit_card', direction: 'arguments' },
  ])
})

test('a forbidden result is refused, also within a stream', async () => {
  answers(`{"content":[{"type":"text","text":"${TOKEN}"}]}`)
  const answer = await ask('crm', call('{}'))
  assert.equal(errorOf(answer), 'dlp_denied')
  const read = Promise.withResolvers<void>()
  upstream.answers(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
    response.write(event({ method: 'notifications/message', params: { level: 'info', data: 'fine' } }))
    await read.promise
    response.end(event({ id: '4111111111111111', result: { content: [{ type: 'text', text: TOKEN }] } }))
  })
  const streamed = await post('crm', call('{}'))
  let text = ''
  for await (const chunk of streamed.body ?? []) {
    text += Buffer.from(chunk).toString()
    read.resolve()
  }
  assert.match(text, /"data":"fine"[\s\S]*dlp_denied/)
  assert.ok(!text.includes(TOKEN))
})

test('a message with more text than maxScanBytes is refused, also for a file in base64', async () => {
  // Shows D3.dlp.profile.maxScanBytes, D3.dlp.profile.onOversize, D3.limit.dlpScan.
  answers('{"content":[]}')
  const count = upstream.received.length
  assert.equal(errorOf(await ask('notes', call(`{"text":"${'so much '.repeat(131_073)}"}`))), 'dlp_denied')
  assert.equal(upstream.received.length, count)
  assert.equal(await hits('oversize', 'arguments', 'deny'), 1)
  const large = call(`{"file":"${'q7Zp2mXw'.repeat(140_000)}"}`)
  assert.equal(errorOf(await ask('notes', large)), 'dlp_denied')
  assert.equal(upstream.received.length, count)
  const small = call(`{"file":"${'q7Zp2mXw'.repeat(1_000)}","to":"${CARD}"}`)
  await ask('notes', small)
  assert.ok(sent() === small.replace(CARD, '[REDACTED:credit_card]'))
})

test('no hit is in the ledger or the log', async () => {
  const written = (await gateway.ledger()).join('\n') + gateway.complaints().join('\n')
  for (const value of [CARD, '4111111111111111', TOKEN, JWT, random(64), 'alice@example.com', 'KD-123456']) {
    assert.ok(!written.includes(value), value)
  }
})
