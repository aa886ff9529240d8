import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import { generateKeyFiles } from '@plat/keys'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { tempFolder } from '@plat/testkit/local'
import { createLocalJWKSet, createRemoteJWKSet, type JSONWebKeySet } from 'jose'
import { STRANGER, setUpA2a } from './testing/fixture.ts'

const CARD = '/.well-known/agent-card.json'

test('a card requires a token of a permitted caller, has the URL of the gateway, and is cached', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { url, token } = await setUpA2a(t, agent)
  const at = `${url}/a2a/default/helper${CARD}`
  const get = (authorization?: string, more: object = {}) =>
    fetch(at, {
      headers: { 'a2a-version': '1.0', ...(authorization && { authorization: `Bearer ${authorization}` }), ...more },
    })
  assert.equal((await get()).status, 401)
  assert.equal((await get(token({ scope: 'x' }))).status, 403)
  assert.equal((await get(token(STRANGER))).status, 403)
  const first = await get(token())
  const card = JSON.parse(await first.text())
  assert.equal(card.supportedInterfaces[0].url, `${url}/a2a/default/helper`)
  assert.equal(first.headers.get('cache-control'), 'private, max-age=300')
  assert.deepEqual(card.defaultInputModes, ['text/plain', 'application/json'])
  assert.equal(JSON.stringify(card).includes(new URL(agent.url).host), false)
  const again = await get(token(), { 'if-none-match': first.headers.get('etag') })
  assert.equal(again.status, 304)
  assert.equal(agent.cardsServed, 1)
  const post = await fetch(at, { method: 'POST', headers: { authorization: `Bearer ${token()}` } })
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET'])
})

test('public cards require no token, and the keys that sign them are published', async (t) => {
  // Shows D3.a2a.publicCards.
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { keyPath } = await generateKeyFiles(join(tempFolder(), 'keys'))
  const a2a = { publicCards: true, cardSigningKey: keyPath, publicURL: 'https://gw.example/' }
  const { url } = await setUpA2a(t, agent, { a2a })
  const response = await fetch(`${url}/a2a/default/helper${CARD}?A2A-Version=1.0`)
  assert.deepEqual([response.status, response.headers.get('cache-control')], [200, 'public, max-age=300'])
  const card = JSON.parse(await response.text())
  const locations: (string | undefined)[] = []
  const keys = createRemoteJWKSet(new URL(`${url}/a2a/.well-known/jwks.json`))
  await verifyAgentCardSignature(async (kid, jku) => {
    locations.push(jku)
    return keys({ kid, alg: 'EdDSA' })
  })(card)
  assert.deepEqual(locations, ['https://gw.example/a2a/.well-known/jwks.json'])
  assert.equal((await fetch(`${url}/a2a/default/none${CARD}`)).status, 404)
  // All other requests still require one.
  assert.equal((await fetch(`${url}/a2a/default/helper`)).status, 401)
  const unread = await fetch(`${url}/a2a/default/helper`, { method: 'POST', body: '{}' })
  assert.equal(unread.status, 401)
})

/** The card of the agent and the published keys, as a client that knows only the gateway gets them. */
async function published(url: string) {
  const card = await (await fetch(`${url}/a2a/default/helper${CARD}?A2A-Version=1.0`)).json()
  const keys = await (await fetch(`${url}/a2a/.well-known/jwks.json`)).json()
  return { card: Object(card), keys: Object(keys) }
}

const verified = (card: object, keys: JSONWebKeySet) =>
  verifyAgentCardSignature(async (kid) => createLocalJWKSet(keys)({ kid, alg: 'EdDSA' }))(Object(card))

test('a signed card is valid by the published key alone, and a replaced key signs after a restart', async (t) => {
  // Shows D3.a2a.cardSigningKey.
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { keyPath } = await generateKeyFiles(join(tempFolder(), 'keys'))
  const other = await generateKeyFiles(join(tempFolder(), 'keys'))
  const a2a = { publicCards: true, cardSigningKey: keyPath, publicURL: 'https://gw.example/', cardCacheSeconds: 1 }
  const first = await setUpA2a(t, agent, { a2a, drained: true })
  const before = await published(first.url)
  await verified(before.card, before.keys)
  const [signature] = before.card.signatures
  for (const changed of [
    { name: 'another' },
    { supportedInterfaces: [{ ...before.card.supportedInterfaces[0], url: 'https://elsewhere.example/' }] },
    {
      signatures: [
        { ...signature, signature: signature.signature.replace(/^./, (one: string) => (one === 'A' ? 'B' : 'A')) },
      ],
    },
  ])
    await assert.rejects(verified({ ...before.card, ...changed }, before.keys), JSON.stringify(changed))
  await rename(other.keyPath, keyPath)
  const during = await published(first.url)
  assert.deepEqual(during.keys, before.keys, 'the card and the published key belong together until a restart')
  await verified(during.card, during.keys)
  await first.drain()
  const second = await setUpA2a(t, agent, { a2a })
  const after = await published(second.url)
  await verified(after.card, after.keys)
  assert.notEqual(after.keys.keys[0].kid, before.keys.keys[0].kid)
  await assert.rejects(verified(before.card, after.keys))
  await assert.rejects(verified(after.card, before.keys))
})

test('a gateway does not start with a key that cannot sign cards, and names the key', async (t) => {
  const dir = tempFolder()
  const file = async (name: string, content: string) => {
    await writeFile(join(dir, name), content, { mode: 0o600 })
    return join(dir, name)
  }
  const pem = (key: KeyObject) => String(key.export({ type: key.type === 'private' ? 'pkcs8' : 'spki', format: 'pem' }))
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const edwards = generateKeyPairSync('ed25519')
  const publicURL = 'https://gw.example/'
  const refused: readonly [object, RegExp][] = [
    [{ publicURL, cardSigningKey: join(dir, 'none.pem') }, /a2a\.cardSigningKey.*none\.pem/],
    [{ publicURL, cardSigningKey: await file('text.pem', 'not a key') }, /a2a\.cardSigningKey.*text\.pem/],
    [
      { publicURL, cardSigningKey: await file('public.pem', pem(edwards.publicKey)) },
      /a2a\.cardSigningKey.*public\.pem/,
    ],
    [{ publicURL, cardSigningKey: await file('ec.pem', pem(elliptic.privateKey)) }, /a2a\.cardSigningKey.*Ed25519/],
    [
      { cardSigningKey: await file('ok.pem', pem(edwards.privateKey)) },
      /a2a\.publicURL: is required with a2a\.cardSigningKey/,
    ],
  ]
  for (const [a2a, problem] of refused) {
    await assert.rejects(setUpA2a(t, { url: 'http://127.0.0.1:9' }, { a2a }), ({ message }: Error) => {
      assert.match(message, problem)
      assert.ok(!message.includes('PRIVATE') && !message.includes('not a key'), 'nothing of the file is shown')
      return true
    })
  }
})
