import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { startTestIdentity } from '@plat/testkit/identity'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'

/** A literal whose canonical form once took quadratic time: a run of zeros before another digit. */
const LONG = `1${'0'.repeat(60_000)}1`
/** The longest that is accepted. */
const LONGEST = `1${'0'.repeat(4_094)}1`

const call = (number: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"n":${number}}}}`
const chat = (number: string) => `{"model":"m","messages":[{"role":"user","content":"hi"}],"seed":${number}}`

test('a number with more digits than any amount has is refused in requests and responses of every plane', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  let result = '1'
  upstream.answers((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"n":${result}}}}`)
  })
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    scopes: ['models:small'],
    config: { models: { small: { upstream: upstream.url } } },
  })
  t.after(() => gateway.close())
  const post = async (path: string, body: string) => {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body,
    })
    return { status: response.status, text: await response.text() }
  }
  assert.match((await post('/mcp/notes', call(LONGEST))).text, /"result"/)
  const before = upstream.received.length
  for (const [path, body] of [
    ['/mcp/notes', call(LONG)],
    ['/mcp/notes', call(`-0.${LONG}e9`)],
    ['/llm/small/v1/chat/completions', chat(LONG)],
  ] as const) {
    const { status, text } = await post(path, body)
    assert.equal(status, 400, text.slice(0, 300))
    assert.match(text, /number/, path)
  }
  assert.equal(upstream.received.length, before, 'nothing of it is forwarded')
  result = LONG
  const { text } = await post('/mcp/notes', call('1'))
  assert.match(text, /"upstream_error"/)
  assert.ok(text.length < 6_000, 'nothing of it is relayed')
})

test('a broker refuses such a number in the body of a mint', async (t) => {
  const broker = await startTestIdentity()
  t.after(() => broker.stop())
  const mint = async (ttlSeconds: string) => {
    const response = await fetch(`${broker.url}/v1/token`, {
      method: 'POST',
      headers: { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' },
      body: `{"namespace":"default","agent":"assistant","session":"s1","ttlSeconds":${ttlSeconds}}`,
    })
    return `${response.status} ${await response.text()}`
  }
  assert.match(await mint('60'), /^200 /)
  assert.match(await mint(LONG), /^400 .*a number longer than/)
  // Out of its range, but not longer than a number may be.
  assert.doesNotMatch(await mint(LONGEST), /a number longer than/)
})
