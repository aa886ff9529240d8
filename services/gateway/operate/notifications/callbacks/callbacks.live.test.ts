import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { signerOf } from '@plat/keys'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { startOidcProvider, type TestOidcProvider } from '@plat/testkit/oidc/provider'
import { signJws } from '@plat/tokens'
import { type ApprovalFixture, gatewayWith, receiver } from '../../../testing/approvals.ts'

const SECRET = 'the-signing-secret'
const now = () => Math.floor(Date.now() / 1000)

async function file(text: string): Promise<string> {
  const path = join(tempFolder(), 'secret')
  await writeFile(path, text)
  return path
}

/** A button callback, signed as Slack signs it. */
function slackCallback(
  value: string,
  {
    user = 'U1',
    action = 'plat_approve',
    at = now(),
    secret = SECRET,
    to = '',
    team = 'T1',
    home = 'T1',
    channel = 'C1',
  },
) {
  const payload = {
    type: 'block_actions',
    team: { id: team },
    channel: { id: channel },
    user: { id: user, team_id: home },
    response_url: to,
    actions: [{ action_id: action, value }],
  }
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${at}:${body}`).digest('hex')}`
  const type = 'application/x-www-form-urlencoded'
  const signed = { 'x-slack-request-timestamp': String(at), 'x-slack-signature': signature }
  return { headers: { 'content-type': type, ...signed }, body }
}

async function state({ admin }: ApprovalFixture, id: string): Promise<unknown> {
  return (await admin('GET', `/v1/approvals/${id}`)).body.state
}

test('a button in Slack decides for the person that userMap names, in the namespaces listed there', async (t) => {
  // Shows D3.notifiers.signingSecretFile, D3.notifiers.userMap.
  const chat = await receiver(t)
  const userMap = {
    U1: 'ada',
    U2: { user: 'bob', groups: ['leads'] },
    U3: { user: 'eve', groups: ['leads'], namespaces: ['elsewhere'] },
    U4: { user: 'uma', groups: ['leads'] },
  }
  const slack = { name: 'on call', type: 'slack', webhookURLFile: await file(`${chat.url}/hook`), userMap }
  const notifiers = [{ ...slack, signingSecretFile: await file(SECRET) }]
  const approvalQuorum = { default: { minApprovers: 2 } }
  const person = (subject: string) => ({ issuer: 'https://login.example', subject })
  const adminAuth = { devTokenApprovers: true, people: { ada: person('1'), bob: person('2') } }
  const here = await gatewayWith(t, { notifiers, approvalQuorum, adminAuth })
  const { id, answer } = await here.hold()
  const message = JSON.parse((await chat.first(({ path }) => path === '/hook')).body)
  const [approve, deny] = message.blocks[3].elements
  assert.deepEqual([approve.action_id, approve.value, deny.action_id], ['plat_approve', id, 'plat_deny'])
  const press = async (pressed: Parameters<typeof slackCallback>[1]) => {
    const to = `${chat.url}/answers/${randomBytes(4).toString('hex')}`
    const response = await here.callback('on%20call', slackCallback(id, { ...pressed, to }))
    assert.deepEqual([response.status, response.body], [200, {}])
    return JSON.parse((await chat.first(({ path }) => to.endsWith(path))).body).text
  }
  assert.equal(await press({ user: 'U9' }), 'Not done: you are not an approver (userMap).')
  assert.equal(await press({ user: 'U3' }), 'Not done: there is no approval with this id.')
  assert.match(await press({ user: 'U4' }), /you cannot approve a call that is made for you/)
  assert.equal(await press({ user: 'U1' }), 'Noted: 1 more must approve.')
  assert.match(await press({ user: 'U1', at: now() - 1 }), /you have approved this already/)
  assert.equal(await press({ user: 'U2' }), 'The approval is approved.')
  assert.match(await answer, /deleted/)
  const { body } = await here.admin('GET', `/v1/approvals/${id}`)
  assert.partialDeepStrictEqual(body.quorum, {
    votes: [
      { by: 'user:ada', via: 'notifier/on call' },
      { by: 'user:bob', via: 'notifier/on call' },
    ],
  })
})

test('Slack callbacks are accepted only from the configured workspaces and channels, also from guests of a shared channel', async (t) => {
  const chat = await receiver(t)
  const slack = { name: 's', type: 'slack', webhookURLFile: await file(`${chat.url}/hook`), userMap: { U1: 'ada' } }
  const places = { tenants: ['T1'], channels: ['C1'] }
  const here = await gatewayWith(t, { notifiers: [{ ...slack, ...places, signingSecretFile: await file(SECRET) }] })
  const { id, answer } = await here.hold()
  for (const elsewhere of [{ team: 'T2' }, { home: 'T2' }, { channel: 'C2' }]) {
    assert.equal((await here.callback('s', slackCallback(id, elsewhere))).status, 403, JSON.stringify(elsewhere))
  }
  assert.equal(await state(here, id), 'pending')
  assert.equal((await here.callback('s', slackCallback(id, {}))).status, 200)
  assert.match(await answer, /deleted/)
})

test('arguments too long for a message cannot be approved there: no button, no command, no callback', async (t) => {
  const chat = await receiver(t)
  const signed = { signingSecretFile: await file(SECRET), userMap: { U1: 'ada' } }
  const slack = { name: 's', type: 'slack', webhookURLFile: await file(`${chat.url}/slack`), ...signed }
  const teams = { name: 't', type: 'teams', webhookURLFile: await file(`${chat.url}/teams`), ...signed }
  const approvalPreview = { mode: 'full', maxBytes: 65_536 }
  const here = await gatewayWith(t, { notifiers: [slack, teams], approvalPreview })
  const buttons = (body: string) => body.match(/plat_approve|plat_deny/g)
  const long = 'x'.repeat(20_000)
  const held = await here.hold(long)
  const whole = await chat.first(({ path, body }) => path === '/slack' && body.includes(held.id))
  const blocks: readonly { readonly text?: { readonly text: string } }[] = JSON.parse(whole.body).blocks
  assert.ok(
    blocks
      .map(({ text }) => text?.text ?? '')
      .join('')
      .includes(long),
    'all of it, over several blocks',
  )
  assert.ok(blocks.every(({ text }) => (text?.text ?? '').length <= 3_000))
  assert.deepEqual(buttons(whole.body), ['plat_approve', 'plat_deny'])
  const card = await chat.first(({ path, body }) => path === '/teams' && body.includes(held.id))
  assert.match(card.body, /do not fit here.*mention the webhook with: deny/)
  const hidden = await here.hold('y'.repeat(70_000))
  const noted = await chat.first(({ path, body }) => path === '/slack' && body.includes(hidden.id))
  assert.deepEqual(buttons(noted.body), ['plat_deny'])
  assert.match(noted.body, /do not fit here/)
  await here.callback('s', slackCallback(hidden.id, {}))
  assert.equal(await state(here, hidden.id), 'pending')
  await here.callback('s', slackCallback(hidden.id, { action: 'plat_deny' }))
  assert.equal(await state(here, hidden.id), 'denied')
  await here.callback('s', slackCallback(held.id, {}))
  assert.match(await held.answer, /deleted/)
})

test('a callback that is old, from the future, signed with another key or replayed decides nothing', async (t) => {
  const chat = await receiver(t)
  const slack = { name: 's', type: 'slack', webhookURLFile: await file(`${chat.url}/hook`), userMap: { U1: 'ada' } }
  const signingSecretFile = await file(SECRET)
  const elsewhere = await receiver(t)
  const here = await gatewayWith(t, {
    notifiers: [{ ...slack, signingSecretFile }],
    approvalQuorum: { default: { minApprovers: 2 } },
  })
  const { id } = await here.hold()
  const send = async (sent: Parameters<ApprovalFixture['callback']>[1], name = 's') => {
    const { status, body } = await here.callback(name, sent)
    return `${status} ${body.error ?? ''}`
  }
  const good = slackCallback(id, { to: `${elsewhere.url}/steal` })
  for (const bad of [
    slackCallback(id, { at: now() - 301 }),
    slackCallback(id, { at: now() + 302 }),
    slackCallback(id, { secret: 'another' }),
    { ...good, body: `${good.body}&x=1` },
    { ...good, headers: { ...good.headers, 'x-slack-signature': '' } },
    { ...good, headers: { ...good.headers, 'x-slack-request-timestamp': String(now() - 7) } },
  ]) {
    assert.equal(await send(bad), '401 unauthenticated')
  }
  assert.equal(await send(slackCallback(id, { action: 'plat_open' })), '400 invalid_request')
  assert.equal(await send(good, 'none'), '404 not_found')
  assert.equal(await state(here, id), 'pending')
  assert.equal(await send(good), '200 ')
  assert.equal(await send(good), '409 conflict')
  const { body } = await here.admin('GET', `/v1/approvals/${id}`)
  assert.partialDeepStrictEqual(body.quorum, { given: 1 })
  assert.deepEqual(elsewhere.received, [], 'no response goes to a host other than the webhook')
  // The secret is read again for each callback: a replaced one is not accepted.
  await writeFile(signingSecretFile, 'new')
  assert.equal(await send(slackCallback(id, { action: 'plat_deny' })), '401 unauthenticated')
  assert.equal(await send(slackCallback(id, { action: 'plat_deny', secret: 'new' })), '200 ')
  assert.equal(await state(here, id), 'denied')
})

test('a program signs its callbacks as its notifications are signed', async (t) => {
  const hook = await receiver(t)
  const key = randomBytes(32)
  const signingSecretFile = await file(`whsec_${key.toString('base64')}`)
  const notifiers = [
    { name: 'hook', type: 'webhook', url: hook.url, signingSecretFile, userMap: { 'ada@chat': 'ada' } },
  ]
  const here = await gatewayWith(t, { notifiers })
  const { id, answer } = await here.hold()
  const signed = (decision: object, mark = 'm1', at = now()) => {
    const body = JSON.stringify(decision)
    const mac = createHmac('sha256', key).update(`${mark}.${at}.${body}`).digest('base64')
    const headers = { 'webhook-id': mark, 'webhook-timestamp': String(at), 'webhook-signature': `v1,xx v1,${mac}` }
    return { headers: { 'content-type': 'application/json', ...headers }, body }
  }
  const decision = { approval: id, verdict: 'approve', reason: 'by program', user: 'ada@chat' }
  const send = async (...sent: Parameters<typeof signed>) => (await here.callback('hook', signed(...sent))).status
  assert.equal(await send({ ...decision, user: 'constructor' }), 403)
  assert.equal(await send({ ...decision, verdict: 'maybe' }, 'm2'), 400)
  assert.equal(await send(decision, 'm3', now() - 400), 401)
  assert.equal(await send({ ...decision, approval: 'none' }, 'm4'), 404)
  assert.equal(await send(decision, 'm5'), 200)
  assert.match(await answer, /deleted/)
  assert.equal(await send(decision, 'm5'), 409)
})

test('a message to the outgoing webhook of Teams decides, and gets a reply', async (t) => {
  const chat = await receiver(t)
  const key = randomBytes(32).toString('base64')
  const teams = { name: 'team', type: 'teams', webhookURLFile: await file(`${chat.url}/hook`) }
  const userMap = { 'aad-1': 'ada' }
  const places = { tenants: ['tenant-1'], channels: ['19:ops'] }
  const notifiers = [{ ...teams, ...places, signingSecretFile: await file(key), userMap }]
  const here = await gatewayWith(t, { notifiers })
  const { id, answer } = await here.hold()
  assert.match((await chat.first(() => true)).body, new RegExp(`approve ${id}`))
  const say = async (text: string, more: object = {}) => {
    const from = { id: '29:x', aadObjectId: 'aad-1', name: 'Ada' }
    const sent = { type: 'message', id: '1', channelId: 'msteams', timestamp: new Date().toISOString(), text, from }
    const channelData = { tenant: { id: 'tenant-1' }, channel: { id: '19:ops' } }
    const body = JSON.stringify({ ...sent, channelData, ...more })
    const mac = createHmac('sha256', Buffer.from(key, 'base64')).update(body).digest('base64')
    const headers = { 'content-type': 'application/json', authorization: `HMAC ${mac}` }
    const { status, body: reply } = await here.callback('team', { headers, body })
    return `${status} ${reply.text ?? reply.error}`
  }
  assert.equal(await say('<at>plat</at> what?'), '400 invalid_request')
  assert.equal(await say(`<at>plat</at> approve ${id}`, { timestamp: '2020-01-01T00:00:00Z' }), '401 unauthenticated')
  const stranger = { from: { id: '29:y', aadObjectId: 'aad-2' } }
  assert.equal(await say(`approve ${id}`, stranger), '200 Not done: you are not an approver (userMap).')
  assert.equal(await say(`approve ${id}`, { from: { id: 'aad-1' } }), '400 invalid_request', 'no id of the directory')
  assert.equal(await say(`approve ${id}`, { channelId: 'webchat' }), '401 unauthenticated')
  assert.equal(await say(`approve ${id}`, { channelId: undefined }), '401 unauthenticated')
  const others = [{ tenant: { id: 'tenant-2' }, channel: { id: '19:ops' } }, { tenant: { id: 'tenant-1' } }, {}]
  for (const channelData of others) assert.equal(await say(`approve ${id}`, { channelData }), '403 forbidden')
  assert.equal(await state(here, id), 'pending')
  assert.equal(await say(`<at>plat</at>&nbsp;approve ${id} looks right`), '200 The approval is approved.')
  assert.match(await answer, /deleted/)
  const forged = { headers: { 'content-type': 'application/json', authorization: 'HMAC AAAA' }, body: '{}' }
  assert.equal((await here.callback('team', forged)).status, 401)
})

describe('callbacks with the token of an OpenID provider', () => {
  let provider: TestOidcProvider
  before(async () => {
    provider = await startOidcProvider(['decide'])
  })
  after(() => provider.close())

  /** An access token of the provider; its subject is the client, `agent`. */
  async function tokenFor(resource: string): Promise<string> {
    const basic = Buffer.from(`${provider.clientId}:${provider.clientSecret}`).toString('base64')
    const response = await fetch(`${provider.url}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'decide', resource }),
    })
    const answer: unknown = await response.json()
    assert.ok(typeof answer === 'object' && answer !== null && 'access_token' in answer)
    return String(answer.access_token)
  }

  test('the person of the token decides by role or by userMap; other tokens are refused', async (t) => {
    // Shows D3.notifiers.callbackOIDC.issuer, D3.notifiers.callbackOIDC.audience, D3.notifiers.callbackOIDC.jwksURL.
    const hook = await receiver(t)
    const audience = 'https://gateway.example/decide'
    const webhook = { type: 'webhook', url: hook.url }
    const callbackOIDC = { issuer: provider.url, audience }
    const roles = { approver: ['user:agent'] }
    const here = await gatewayWith(t, {
      adminAuth: { mode: 'token', roles, devTokenApprovers: true },
      approvalQuorum: { default: { minApprovers: 2 } },
      notifiers: [
        { name: 'roles', ...webhook, callbackOIDC },
        {
          name: 'map',
          ...webhook,
          callbackOIDC: { ...callbackOIDC, jwksURL: `${provider.url}/jwks` },
          userMap: { agent: 'ada' },
        },
        { name: 'others', ...webhook, callbackOIDC, userMap: { somebody: 'ada' } },
      ],
    })
    const { id, answer } = await here.hold()
    const send = async (name: string, token: string, verdict = 'approve') => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
      const { status, body } = await here.callback(name, { headers, body: JSON.stringify({ approval: id, verdict }) })
      return `${status} ${body.error ?? body.state}`
    }
    const good = await tokenFor(audience)
    assert.equal(await send('roles', await tokenFor('https://elsewhere.example')), '401 unauthenticated')
    assert.equal(await send('roles', `${good.slice(0, -4)}AAAA`), '401 unauthenticated')
    assert.equal(await send('others', good), '403 forbidden')
    assert.equal(await send('map', good), '200 pending')
    assert.equal(await send('roles', good), '409 conflict', 'the token names the same person')
    assert.equal(await send('roles', good, 'deny'), '200 denied')
    assert.match(await answer, /approval_denied/)
    const { body } = await here.admin('GET', `/v1/approvals/${id}`)
    assert.partialDeepStrictEqual(body.quorum, { votes: [{ by: 'user:ada' }, { by: 'user:agent' }] })
  })
})

test('a bot service decides for its users if its token names the service of the message', async (t) => {
  // Shows D3.notifiers.callbackOIDC.discoveryURL.
  const signer = signerOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'test key')
  const issuer = 'http://bots.example'
  const server = createServer((request, response) => {
    const metadata = { issuer, jwks_uri: `${base()}/keys` }
    const answer =
      request.url === '/metadata' ? metadata : { keys: [{ ...signer.publicJwk, kid: signer.kid, use: 'sig' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const port = await listening(server)
  const base = () => `http://127.0.0.1:${port}`
  t.after(() => closed(server))
  const chat = await receiver(t)
  const callbackOIDC = { issuer, audience: 'app', discoveryURL: `${base()}/metadata` }
  const teams = { name: 'bot', type: 'teams', webhookURLFile: await file(chat.url), callbackOIDC }
  const here = await gatewayWith(t, { notifiers: [{ ...teams, userMap: { 'aad-1': 'ada' } }] })
  const { id, answer } = await here.hold()
  const say = async (
    serviceurl: string | undefined,
    from: object = { aadObjectId: 'aad-1' },
    channelId = 'msteams',
  ) => {
    const claims = { iss: issuer, aud: 'app', iat: now(), exp: now() + 300 }
    const token = await signJws(signer, { typ: 'JWT' }, { ...claims, ...(serviceurl !== undefined && { serviceurl }) })
    const timestamp = new Date().toISOString()
    const message = { type: 'message', channelId, timestamp, serviceUrl: 'https://teams.example/', from }
    const body = JSON.stringify({ ...message, text: `approve ${id}` })
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const { status, body: reply } = await here.callback('bot', { headers, body })
    return `${status} ${reply.text ?? reply.error}`
  }
  assert.equal(await say(undefined), '401 unauthenticated')
  assert.equal(await say('https://elsewhere.example/'), '401 unauthenticated')
  assert.equal(await say('https://teams.example/', { id: 'aad-1' }), '400 invalid_request')
  assert.equal(await say('https://teams.example/', { aadObjectId: 'aad-1' }, 'directline'), '401 unauthenticated')
  assert.equal(
    await say('https://teams.example/', { aadObjectId: 'aad-2' }),
    '200 Not done: you are not an approver (userMap).',
  )
  assert.equal(await say('https://teams.example/'), '200 The approval is approved.')
  assert.match(await answer, /deleted/)
})

test('a chat can deny but not approve while approving requires a login of some kind', async (t) => {
  const chat = await receiver(t)
  const slack = { name: 's', type: 'slack', webhookURLFile: await file(`${chat.url}/hook`), userMap: { U1: 'ada' } }
  const notifiers = [{ ...slack, signingSecretFile: await file(SECRET) }]
  const oidc = { issuer: 'http://127.0.0.1:9', audience: 'plat' }
  const adminAuth = { mode: 'both', oidc, stepUp: { approve: { maxAgeSeconds: 60 } } }
  const here = await gatewayWith(t, { notifiers, adminAuth })
  const { id, answer } = await here.hold()
  const press = async (action: string) => {
    const to = `${chat.url}/answers/${randomBytes(4).toString('hex')}`
    await here.callback('s', slackCallback(id, { action, to }))
    return JSON.parse((await chat.first(({ path }) => to.endsWith(path))).body).text
  }
  assert.match(await press('plat_approve'), /^Not done: approvals need a login that a chat cannot show/)
  assert.equal(await state(here, id), 'pending')
  await press('plat_deny')
  assert.match(await answer, /approval_denied/)
})
