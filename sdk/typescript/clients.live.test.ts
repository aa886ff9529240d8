import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { TaskState } from '@a2a-js/sdk'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import Anthropic from '@anthropic-ai/sdk'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { messageOf } from '@plat/testkit/a2a-agent'
import { until } from '@plat/testkit/until'
import OpenAI from 'openai'
import {
  ApprovalPendingError,
  ApprovalRefusedError,
  type DeniedError,
  deniedBy,
  ScopeMissingError,
  type Session,
  untilApproved,
} from './index.ts'
import { type GatewayFixture, PUBLIC, startGround } from './testing/fixture.ts'

let fixture: GatewayFixture
const sessions: Record<string, Session> = {}

before(async () => {
  fixture = await startGround()
  sessions.bearer = await fixture.connect()
  sessions.bound = await fixture.connect({ dpop: true, source: fixture.source({ session: 's2' }) })
})

after(() => fixture.close())

/** The session of a kind of token: what holds for one must hold for the other. */
function sessionOf(kind: string): Session {
  return sessions[kind] ?? assert.fail()
}

interface Connected {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<{ content?: unknown }>
  close(): Promise<void>
}

async function current(session: Session, server = 'fixture', approvalWaitSeconds?: number): Promise<Connected> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const { url, ...options } = session.mcp(server, approvalWaitSeconds === undefined ? {} : { approvalWaitSeconds })
  await client.connect(new StreamableHTTPClientTransport(url, options))
  return client
}

async function old(session: Session, server = 'fixture'): Promise<Connected> {
  const client = new OldClient({ name: 'test', version: '1' })
  const { url, ...options } = session.mcp(server)
  // This SDK's own types disagree about optional members; connecting by name keeps the rest checked.
  await Reflect.apply(client.connect, client, [new OldTransport(url, options)])
  return {
    listTools: () => client.listTools(),
    callTool: async (call) => {
      const { content, isError, _meta } = await client.callTool(call)
      return { content, isError, _meta }
    },
    close: () => client.close(),
  }
}

/** The refusal in a client's result or error. */
async function refusalOf(call: Promise<unknown>): Promise<DeniedError> {
  const value: unknown = await call.catch((error: unknown) => error)
  return deniedBy(value) ?? assert.fail(`no denial: ${JSON.stringify(value)}`)
}

for (const kind of ['bearer', 'bound']) {
  for (const [who, connect] of [
    ['the MCP client', current],
    ['the MCP client of version 1', old],
  ] as const) {
    test(`${who}, ${kind}: calls pass, denials are typed, a missing scope is in the error`, async () => {
      const client = await connect(sessionOf(kind))
      const names = (await client.listTools()).tools.map(({ name }) => name)
      assert.ok(names.includes('test_simple_text') && !names.includes('test_image_content'))
      const { content } = await client.callTool({ name: 'test_simple_text', arguments: {} })
      assert.match(JSON.stringify(content), /simple text/)
      const call = client.callTool({ name: 'test_image_content', arguments: {} })
      assert.deepEqual(deniedBy(await call)?.code, 'policy_denied', 'a result, which models read')
      const denied = await refusalOf(call)
      assert.deepEqual([denied.code, denied.status, denied.rule], ['policy_denied', 403, 'no'])
      assert.match(denied.decisionId ?? '', /^[0-9a-f-]{36}$/)
      await client.close()
      const missing = await refusalOf(connect(sessionOf(kind), 'elsewhere'))
      assert.ok(missing instanceof ScopeMissingError)
      assert.deepEqual([missing.scopes, missing.status], [['tools:elsewhere'], 403])
    })
  }

  test(`openai, ${kind}: answers, streams, and a denial that is not repeated`, async () => {
    const openai = new OpenAI(sessionOf(kind).openai('small'))
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const completion = await openai.chat.completions.create({ model: 'small-1', messages })
    assert.equal(completion.choices[0]?.message.content, 'Hello world.')
    const stream = await openai.chat.completions.create({ model: 'small-1', messages, stream: true })
    let reply = ''
    for await (const chunk of stream) reply += chunk.choices[0]?.delta.content ?? ''
    assert.equal(reply, 'Hello world.')
    const unknownRoute = new OpenAI(sessionOf(kind).openai('nobody'))
    const denied = await refusalOf(unknownRoute.chat.completions.create({ model: 'small-1', messages }))
    assert.deepEqual([denied.code, denied.status], ['unknown_route', 404])
    const other = new OpenAI(sessionOf(kind).openai('other'))
    const missing = await refusalOf(other.chat.completions.create({ model: 'small-1', messages }))
    assert.ok(missing instanceof ScopeMissingError)
    assert.deepEqual(missing.scopes, ['models:other'])
  })

  test(`Anthropic, ${kind}: answers, streams, denials`, async () => {
    const request = { model: 'claude-test', max_tokens: 100, messages: [{ role: 'user' as const, content: 'hello' }] }
    const anthropic = new Anthropic(sessionOf(kind).anthropic('claude'))
    assert.deepEqual((await anthropic.messages.create(request)).content, [{ type: 'text', text: 'Hello world' }])
    assert.equal(await anthropic.messages.stream(request).finalText(), 'Hello world')
    const denied = await refusalOf(new Anthropic(sessionOf(kind).anthropic('nobody')).messages.create(request))
    assert.deepEqual([denied.code, denied.status], ['unknown_route', 404])
    assert.match(denied.decisionId ?? '', /^[0-9a-f-]{36}$/)
  })

  test(`A2A, ${kind}: the card leads to the gateway; messages, streams, denials`, async () => {
    const { url, cardPath, fetchImpl } = sessionOf(kind).a2a('default', 'helper')
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl: toGateway(fetchImpl) })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    })
    const client = await factory.createFromUrl(url, cardPath)
    const asking = (text: string) => ({
      tenant: '',
      message: messageOf('', '', text),
      configuration: undefined,
      metadata: undefined,
    })
    const message = await client.sendMessage(asking('hello'))
    assert.ok('messageId' in message)
    const task = await client.sendMessage(asking('work well'))
    assert.ok(!('messageId' in task))
    assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
    const kinds: unknown[] = []
    for await (const { payload } of client.sendMessageStream(asking('work a|b'))) kinds.push(payload?.$case)
    assert.equal(kinds[0], 'task')
    const denied = await refusalOf(client.cancelTask({ tenant: '', id: task.id, metadata: undefined }))
    assert.deepEqual([denied.code, denied.status, denied.rule], ['policy_denied', 403, 'secret'])
    const unknownAgent = sessionOf(kind).a2a('default', 'nobody')
    assert.ok(
      (await refusalOf(factory.createFromUrl(unknownAgent.url, unknownAgent.cardPath))) instanceof ScopeMissingError,
    )
  })
}

/** The card names the gateway's public address, which leads here only in the world of the test. */
function toGateway(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => fetch(String(input).replace(PUBLIC, fixture.gateway.url), init)
}

test('a call that waits for a person answers early, and goes through once it is approved', async () => {
  const client = await current(sessionOf('bearer'), 'fixture', 0)
  const call = () => client.callTool({ name: 'test_embedded_resource', arguments: {} })
  const pending = await refusalOf(call())
  assert.ok(pending instanceof ApprovalPendingError)
  assert.ok(pending.approvalId !== null && pending.retryAfterMs !== null)
  await fixture.admin(`/v1/approvals/${pending.approvalId}/approve`, { reason: 'fine' })
  const { content } = await untilApproved(call)
  assert.match(JSON.stringify(content), /embedded resource/)
  assert.ok((await refusalOf(call())) instanceof ApprovalPendingError, 'an approval is good for one use')
  await client.close()
})

test('a call with a pending approval gets the decision', async () => {
  const session = await fixture.connect({ source: fixture.source({ session: 's3' }) })
  const client = await current(session)
  const held = refusalOf(client.callTool({ name: 'test_embedded_resource', arguments: {} }))
  const requests: string[] = []
  await until(async () => {
    const { items } = await fixture.admin('/v1/approvals?limit=100')
    for (const { id, state, session: of } of Array.isArray(items) ? items : [])
      if (state === 'pending' && of === 's3') requests.push(id)
    return requests.length > 0
  }, 'the question')
  await fixture.admin(`/v1/approvals/${requests[0]}/deny`, { reason: 'not today' })
  const denied = await held
  assert.ok(denied instanceof ApprovalRefusedError)
  assert.equal(denied.code, 'approval_denied')
  await client.close()
})
