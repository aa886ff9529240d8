import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { json, type ScriptedUpstream, startScriptedUpstream, stream } from '@plat/testkit/mcp-upstream'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import { random } from './testing/samples.ts'

const CARD = '4111 1111 1111 1111'
const OTHER_CARD = '5555 5555 5555 4444'
const TOKEN = `ghp_${random(36)}`

/** A server for each profile, of the same name. */
const PROFILES = {
  redacted: {},
  audited: { requestAction: 'audit', responseAction: 'audit' },
  unread: { requestAction: 'off', responseAction: 'deny' },
  unanswered: { requestAction: 'deny', responseAction: 'off' },
}

let upstream: ScriptedUpstream
let models: ModelServer
let gateway: GatewayProcess

before(async () => {
  upstream = await startScriptedUpstream()
  models = await startModelServer()
  gateway = await startGatewayProcess({
    servers: Object.fromEntries(Object.keys(PROFILES).map((name) => [name, upstream.url])),
    scopes: ['models:chat'],
    config: {
      models: { chat: { upstream: models.url } },
      dlpProfiles: PROFILES,
      dlp: {
        servers: Object.fromEntries(Object.keys(PROFILES).map((name) => [name, name])),
        models: { chat: 'redacted' },
      },
    },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
  await models.close()
})

const result = (text: string) => `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${text}"}]}}`

async function post(path: string, body: object) {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(body),
  })
  return { text: await response.text(), call: response.headers.get('x-plat-decision-id') ?? '' }
}

const send = (server: string, text: string) =>
  post(`/mcp/${server}`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'say', arguments: { text } } })

/** The records of a call once its last one is written. */
async function recordsOf(call: string) {
  let records: Record<string, unknown>[] = []
  await until(async () => {
    const all = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
    records = all.filter((rec) => rec.call === call)
    return records.some(({ kind }) => kind !== 'intent')
  }, 'the last record of the call')
  return records
}

const hit = (action: string, detector: string, direction: string, count = 1) => ({ action, count, detector, direction })

test('the intent has the hits in the arguments, and the outcome those in the response as well', async () => {
  upstream.answers(json(result(`${TOKEN} and ${CARD}`)))
  const { call } = await send('redacted', `${CARD}, ${OTHER_CARD}`)
  const inArguments = hit('redact', 'credit_card', 'arguments', 2)
  const [intent, outcome] = await recordsOf(call)
  assert.deepEqual([intent?.kind, intent?.dlp], ['intent', [inArguments]])
  assert.deepEqual(outcome?.dlp, [
    inArguments,
    hit('redact', 'github_token', 'response'),
    hit('redact', 'credit_card', 'response'),
  ])
})

test('records of calls without hits have no such member', async () => {
  upstream.answers(json(result('fine')))
  for (const record of await recordsOf((await send('redacted', 'fine')).call)) assert.ok(!('dlp' in record))
})

test('with audit everything passes, and hits of both directions are recorded', async () => {
  // Shows D3.dlp.profile.requestAction.audit, D3.dlp.profile.responseAction.audit.
  upstream.answers(json(result(CARD)))
  const { text, call } = await send('audited', CARD)
  assert.equal(text, result(CARD))
  assert.ok(upstream.received.at(-1)?.body.includes(CARD))
  const records = await recordsOf(call)
  assert.deepEqual(records.at(-1)?.dlp, [
    hit('audit', 'credit_card', 'arguments'),
    hit('audit', 'credit_card', 'response'),
  ])
})

test('with off requests are not scanned, and with deny a hit denies the response', async () => {
  // Shows D3.dlp.profile.requestAction.off, D3.dlp.profile.responseAction.deny.
  upstream.answers(json(result('fine')))
  const passed = await send('unread', CARD)
  assert.equal(passed.text, result('fine'))
  assert.ok(upstream.received.at(-1)?.body.includes(CARD))
  assert.ok((await recordsOf(passed.call)).every((record) => !('dlp' in record)))
  upstream.answers(json(result(`it is ${CARD}`)))
  const denied = await send('unread', CARD)
  assert.match(denied.text, /dlp_denied/)
  assert.ok(!denied.text.includes(CARD))
  const last = (await recordsOf(denied.call)).at(-1)
  assert.deepEqual(
    [last?.kind, last?.code, last?.dlp],
    ['outcome', 'dlp_denied', [hit('deny', 'credit_card', 'response')]],
  )
})

test('with deny a hit denies the call, and with off responses are not scanned', async () => {
  // Shows D3.dlp.profile.requestAction.deny, D3.dlp.profile.responseAction.off.
  const count = upstream.received.length
  upstream.answers(json(result(CARD)))
  const denied = await send('unanswered', CARD)
  assert.match(denied.text, /dlp_denied/)
  assert.equal(upstream.received.length, count)
  const [decision] = await recordsOf(denied.call)
  assert.deepEqual([decision?.kind, decision?.dlp], ['decision', [hit('deny', 'credit_card', 'arguments')]])
  const passed = await send('unanswered', 'fine')
  assert.equal(passed.text, result(CARD))
  assert.ok((await recordsOf(passed.call)).every((record) => !('dlp' in record)))
})

test('hits in the events of a stream are in its outcome', async () => {
  const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
  const log = event({ method: 'notifications/message', params: { level: 'info', data: CARD } })
  upstream.answers(stream([log, log, `data: ${result(TOKEN)}\n\n`]))
  const { call } = await send('redacted', 'fine')
  assert.deepEqual((await recordsOf(call)).at(-1)?.dlp, [
    hit('redact', 'credit_card', 'response', 2),
    hit('redact', 'github_token', 'response'),
  ])
})

test('hits in a streamed completion are counted once, however it is split', async () => {
  for (const size of [1, 7, 100]) {
    models.answers({ text: `It is ${TOKEN}, and ${CARD}.`.match(new RegExp(`.{1,${size}}`, 'g')) ?? [] })
    const { call } = await post('/llm/chat/v1/chat/completions', {
      model: 'small-1',
      stream: true,
      messages: [{ role: 'user', content: `Charge ${CARD}` }],
    })
    assert.deepEqual((await recordsOf(call)).at(-1)?.dlp, [
      hit('redact', 'credit_card', 'arguments'),
      hit('redact', 'github_token', 'response'),
      hit('redact', 'credit_card', 'response'),
    ])
  }
})

test('a handshake is recorded only if its instructions had a hit', async () => {
  const answer = (instructions: string) =>
    json(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        result: {
          protocolVersion: '2025-06-18',
          capabilities: {},
          serverInfo: { name: 's', version: '1' },
          instructions,
        },
      }),
    )
  const handshake = () =>
    post('/mcp/redacted', {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    })
  upstream.answers(answer('Be kind.'))
  const plain = await handshake()
  upstream.answers(answer(`Log in with ${TOKEN}.`))
  const leaky = await handshake()
  assert.match(leaky.text, /REDACTED:github_token/)
  const [record] = await recordsOf(leaky.call)
  assert.deepEqual([record?.result, record?.dlp], ['completed', [hit('redact', 'github_token', 'response')]])
  assert.ok(!(await gateway.ledger()).some((line) => line.includes(plain.call)))
})

test('no record has the text of a hit', async () => {
  const written = (await gateway.ledger()).join('\n')
  for (const value of [CARD, OTHER_CARD, TOKEN]) assert.ok(!written.includes(value))
})
