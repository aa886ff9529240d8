import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk'
import { TestClock } from '@plat/core'
import type { Fetched } from '@plat/http'
import { ephemeralSigner, KeyServiceError, type Signer } from '@plat/keys'
import { silentLog } from '@plat/process'
import { importJWK } from 'jose'
import { isDenial } from '../../../call/index.ts'
import { buildAgents, type ExposedAgent } from '../registry.ts'
import { Cards, type CardsOptions } from './cards.ts'
import { RemoteCards } from './remote.ts'

const LEAST = { endpoint: 'http://h.example/rpc', allowedCallers: [], skills: [], streaming: true, version: '2.0.0' }

function exposed(own: object = {}): ExposedAgent {
  const file = {
    version: 1 as const,
    agents: { 'default/helper': { ...LEAST, trust: 'trusted' as const, skills: [], ...own } },
  }
  const agent = buildAgents(file).agent('a2a/default/helper')
  assert.ok(agent !== null)
  return agent
}

const REMOTE = {
  pushNotifications: true,
  extensions: [{ uri: 'https://x.example/ext' }],
  defaultInputModes: ['application/json'],
  defaultOutputModes: ['text/html'],
}

async function cardOf(agent: ExposedAgent, own: Partial<CardsOptions> = {}, host: string | undefined = 'gw:8080') {
  const cards = new Cards({
    remote: { of: async () => null },
    signer: null,
    publicURL: null,
    scheme: 'http',
    pushes: false,
    isPublic: false,
    cacheSeconds: 300,
    log: silentLog,
    ...own,
  })
  const answer = await cards.answer(agent, { host, ifNoneMatch: undefined, version: '1.0' })
  if (isDenial(answer)) assert.fail(answer.reason)
  return { cards, answer, card: JSON.parse(Buffer.from(answer.body ?? '').toString()) }
}

test('the official SDK accepts a signed card and rejects a modified one', async () => {
  // Shows D3.a2a.cardSigningKey, D2.a2a.expose.signedCard and D3.a2a.publicURL.
  const signer = ephemeralSigner()
  const skills = [
    { id: 'find', name: 'Find' },
    { id: 'b', name: 'B', description: '', tags: [''], examples: ['', 'an example'] },
  ]
  const own = { signer, publicURL: 'https://gw.example/base', pushes: true, remote: { of: async () => REMOTE } }
  const { card, cards } = await cardOf(exposed({ skills, description: 'Finds é and 🦜.' }), own)
  assert.equal(card.supportedInterfaces[0].url, 'https://gw.example/base/a2a/default/helper')
  const requests: unknown[] = []
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    requests.push(jku)
    const key =
      'keys' in cards.keys && Array.isArray(cards.keys.keys) ? cards.keys.keys.find((one) => one.kid === kid) : null
    const imported = await importJWK(key, 'EdDSA')
    return imported instanceof Uint8Array ? assert.fail('no key') : imported
  })
  await verify(card)
  assert.equal('securitySchemes' in card, false)
  assert.deepEqual(requests, ['https://gw.example/base/a2a/.well-known/jwks.json'])
  await verify(AgentCard.fromJSON(card))
  for (const change of [{ name: 'other' }, { version: '9' }, { capabilities: { streaming: false } }])
    await assert.rejects(verify(AgentCard.fromJSON({ ...card, ...change })))
})

test('a card has the content of the resource, and defaults for required members', async () => {
  // Shows D2.a2a.description, D2.a2a.version, D2.a2a.skills, D2.a2a.skills.id, D2.a2a.skills.name,
  // D2.a2a.skills.description, D2.a2a.skills.examples, D2.a2a.skills.tags and D2.a2a.streaming.
  const skills = [
    { id: 'find', name: 'Find', description: 'Finds.', examples: ['find it'], tags: ['search'] },
    { id: 'b', name: 'B' },
  ]
  const { card } = await cardOf(exposed({ skills, description: 'Helps.' }))
  assert.deepEqual(
    [card.name, card.description, card.version, card.capabilities],
    ['helper', 'Helps.', '2.0.0', { streaming: true, pushNotifications: false }],
  )
  assert.deepEqual(card.skills, [skills[0], { id: 'b', name: 'B', description: 'B', tags: ['helper'] }])
  assert.equal(card.supportedInterfaces[0].url, 'http://gw:8080/a2a/default/helper')
  assert.equal('signatures' in card, false)
  const bare = (await cardOf(exposed({ streaming: false }))).card
  assert.deepEqual([bare.capabilities.streaming, bare.skills.length], [false, 1])
  assert.equal(/""|\[\]|\{\}/.test(JSON.stringify(bare)), false)
})

test('other members come from the card of the agent, and webhooks are offered only if the gateway allows any', async () => {
  const remote = { of: async () => REMOTE }
  const { card } = await cardOf(exposed(), { remote, pushes: true })
  assert.deepEqual(
    [card.defaultInputModes, card.defaultOutputModes, card.capabilities],
    [
      ['application/json'],
      ['text/html'],
      { streaming: true, pushNotifications: true, extensions: [{ uri: 'https://x.example/ext' }] },
    ],
  )
  assert.equal((await cardOf(exposed(), { remote })).card.capabilities.pushNotifications, false)
})

test('an unchanged card is not sent again, and an invalid host is not repeated in a card', async () => {
  const { cards, answer } = await cardOf(exposed(), { isPublic: true, publicURL: 'https://gw.example' })
  assert.equal(answer.headers['cache-control'], 'public, max-age=300')
  const again = await cards.answer(exposed(), {
    host: undefined,
    ifNoneMatch: `"x", ${answer.headers.etag}`,
    version: '1.0',
  })
  assert.ok(!isDenial(again) && again.status === 304 && again.body === null)
  const { cards: hosted } = await cardOf(exposed())
  for (const host of [undefined, '', 'a b', 'a/b', 'x"y', 'a@b'])
    assert.ok(isDenial(await hosted.answer(exposed(), { host, ifNoneMatch: undefined, version: '1.0' })), String(host))
})

test('the card of an agent is cached while valid, and read again soon after a failure', async () => {
  // Shows D3.a2a.cardCacheSeconds.
  const clock = new TestClock()
  const requests: string[] = []
  let body: unknown = remoteCard({})
  const dialer = {
    async fetchBytes(url: URL | string): Promise<Fetched> {
      requests.push(String(url))
      return { status: 200, headers: {}, bytes: Buffer.from(JSON.stringify(body)) }
    },
  }
  const remote = new RemoteCards({ dialer, extraCA: null, cacheMs: 60_000, clock, log: silentLog })
  const agent = exposed()
  assert.deepEqual(await Promise.all([remote.of(agent), remote.of(agent)]), [REMOTE_READ, REMOTE_READ])
  await clock.advance(59_000)
  await remote.of(agent)
  assert.deepEqual(requests, ['http://h.example/.well-known/agent-card.json'])
  await clock.advance(2_000)
  await remote.of(agent)
  assert.equal(requests.length, 2)
  // Another endpoint is another agent, whatever its name.
  await remote.of(exposed({ endpoint: 'http://other.example/' }))
  assert.equal(requests.at(-1), 'http://other.example/.well-known/agent-card.json')
  const strange = [
    remoteCard({ supportedInterfaces: [{ protocolBinding: 'GRPC', protocolVersion: '1.0' }] }),
    remoteCard({ supportedInterfaces: [{ protocolBinding: 'JSONRPC', protocolVersion: '0.3' }] }),
    { name: 'no card' },
    [],
  ]
  for (const one of strange) {
    body = one
    await clock.advance(61_000)
    assert.equal(await remote.of(agent), null)
  }
  await clock.advance(10_000)
  body = remoteCard({})
  assert.deepEqual(await remote.of(agent), REMOTE_READ)
})

const REMOTE_READ = {
  pushNotifications: true,
  extensions: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
}

function remoteCard(own: object): object {
  return {
    name: 'x',
    supportedInterfaces: [{ url: 'http://h.example', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { pushNotifications: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    ...own,
  }
}

test('a card that its key service does not sign is refused, never served unsigned, and signed once the service is back', async () => {
  const local = ephemeralSigner()
  let isDown = true
  const signer: Signer = {
    ...local,
    async sign(bytes) {
      if (isDown) throw new KeyServiceError('unavailable', 'no response')
      return local.sign(bytes)
    },
  }
  const agent = exposed()
  const cards = new Cards({
    remote: { of: async () => null },
    signer,
    publicURL: 'https://gw.example',
    scheme: 'https',
    pushes: false,
    isPublic: false,
    cacheSeconds: 300,
    log: silentLog,
  })
  const request = { host: undefined, ifNoneMatch: undefined, version: '1.0' }
  const refused = await cards.answer(agent, request)
  assert.equal(isDenial(refused) && refused.code, 'state_unavailable')
  isDown = false
  const answer = await cards.answer(agent, request)
  assert.ok(!isDenial(answer))
  assert.equal(JSON.parse(Buffer.from(answer.body ?? '').toString()).signatures.length, 1)
})
