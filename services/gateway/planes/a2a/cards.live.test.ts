import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import { generateKeyFiles } from '@plat/keys'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { tempFolder } from '@plat/testkit/local'
import { createRemoteJWKSet } from 'jose'
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
