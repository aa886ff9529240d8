import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { createAuthority } from '@plat/testkit/authority'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { type CibaProvider, startCibaProvider } from '@plat/testkit/oidc/ciba'
import { until } from '@plat/testkit/until'
import { type ApprovalFixture, gatewayWith } from '../../testing/approvals.ts'

const CLIENT = 'plat gateway'
const SECRET = 'a secret: of the tests/of ciba'
const USER_ALONE = { default: { minApprovers: 0, userConfirmation: 'ciba' } }

let basic: CibaProvider
let post: CibaProvider
before(async () => {
  const client = { client_id: CLIENT, client_secret: SECRET }
  basic = await startCibaProvider({ client: { ...client, scope: 'openid' }, unknown: ['nobody'] })
  const more = { token_endpoint_auth_method: 'client_secret_post', scope: 'openid profile extra' }
  post = await startCibaProvider({ client: { ...client, ...more } })
})
after(() => Promise.all([basic.close(), post.close()]))

async function withCiba(t: TestContext, { ciba = {}, quorum = USER_ALONE, at = basic, ...own }: CibaOptions = {}) {
  const clientSecretFile = join(tempFolder(), 'secret')
  await writeFile(clientSecretFile, `${SECRET}\n`)
  return gatewayWith(t, {
    ciba: { enabled: true, issuer: at.url, clientID: CLIENT, clientSecretFile, ...ciba },
    approvalQuorum: quorum,
    ...own,
  })
}

interface CibaOptions {
  readonly ciba?: object
  readonly quorum?: object
  readonly at?: CibaProvider
  readonly approvalTimeoutSeconds?: number
}

interface DeviceMessage {
  readonly state: unknown
  readonly quorum: Readonly<Record<string, unknown>>
}

async function displayedQuestion({ admin }: ApprovalFixture, id: string): Promise<DeviceMessage> {
  const { body } = await admin('GET', `/v1/approvals/${id}`)
  const { quorum, state } = body
  assert.ok(typeof quorum === 'object' && quorum !== null)
  return { state, quorum: { ...quorum } }
}

const confirmation = async (here: ApprovalFixture, id: string) => {
  const { userConfirmation } = (await displayedQuestion(here, id)).quorum
  assert.ok(typeof userConfirmation === 'object' && userConfirmation !== null && 'state' in userConfirmation)
  return userConfirmation
}

describe('confirmation by the user', { concurrency: true }, () => {
  test('the user confirms a call on a device, with a code that the approval shows as well', async (t) => {
    // Shows D3.ciba.clientAuth.basic.
    // Shows D3.approvals.quorum.userConfirmation, D3.ciba.enabled, D3.ciba.issuer, D3.ciba.clientID, D3.ciba.clientSecretFile,
    // D3.ciba.requestedExpirySeconds, D3.ciba.bindingMessagePrefix.
    const here = await withCiba(t)
    const { id, answer } = await here.hold('very-secret', 'ann')
    const { binding_message, scope, requested_expiry } = await basic.question('ann')
    assert.match(binding_message, /^PLAT-[A-Z2-7]{8}$/)
    assert.equal(scope, 'openid')
    assert.ok(Number(requested_expiry) > 0 && Number(requested_expiry) <= 300)
    await until(async () => (await confirmation(here, id)).state === 'asked', 'the question in the approval')
    assert.deepEqual(await confirmation(here, id), { state: 'asked', code: binding_message })
    assert.equal(
      (await here.admin('POST', `/v1/approvals/${id}/approve`, {})).body.state,
      'pending',
      'approvers alone cannot',
    )
    await basic.answer('allow ann')
    assert.match(await answer, /deleted/)
    const { state, quorum } = await displayedQuestion(here, id)
    assert.deepEqual([state, quorum.given, quorum.needed], ['used', 2, 1])
    assert.partialDeepStrictEqual(quorum.votes, [{ by: 'token:admin' }, { by: 'user:ann', via: 'ciba' }])
    assert.equal(basic.count('ann'), 1)
  })

  test('by default the name of the user is preferred_username, email or sub, and the time limit that of the approval', async (t) => {
    // Shows D3.default.computed.ciba.userClaim and D3.default.computed.ciba.requestedExpirySeconds.
    const here = await withCiba(t, { approvalTimeoutSeconds: 5000 })
    const confirmed = async (user: string) => {
      const { answer } = await here.hold('a', user)
      const { requested_expiry } = await basic.question(user)
      assert.ok(Number(requested_expiry) > 3600 && Number(requested_expiry) <= 5000, String(requested_expiry))
      await basic.answer(`allow ${user}`)
      assert.match(await answer, /deleted/, user)
    }
    await Promise.all(['pat', 'mail-pat', 'sub-pat'].map(confirmed))
  })

  test('a refusal by the user ends the approval', async (t) => {
    const here = await withCiba(t)
    const { answer } = await here.hold('a', 'bob')
    await basic.question('bob')
    await basic.answer('deny bob')
    assert.match(
      await answer,
      /approval_denied.*the user did not confirm it|the user did not confirm it.*approval_denied/,
    )
  })

  test('a confirmation by another user does not count', async (t) => {
    const here = await withCiba(t)
    const { answer } = await here.hold('a', 'cid')
    await basic.question('cid')
    await basic.answer('allow cid as mallory')
    assert.match(await answer, /approval_denied/)
  })

  test('an approver is needed as well if the quorum requires one, in any order', async (t) => {
    const here = await withCiba(t, { quorum: { default: { minApprovers: 1, userConfirmation: 'ciba' } } })
    const { id, answer } = await here.hold('a', 'dan')
    await basic.question('dan')
    await basic.answer('allow dan')
    await until(async () => (await confirmation(here, id)).state === 'confirmed', 'the confirmation')
    assert.partialDeepStrictEqual(await displayedQuestion(here, id), {
      state: 'pending',
      quorum: { given: 1, needed: 2 },
    })
    await here.admin('POST', `/v1/approvals/${id}/approve`, {})
    assert.match(await answer, /deleted/)
  })

  test('if the user cannot be prompted, at least one approver decides, or the call is denied', async (t) => {
    // Shows D3.ciba.fallback.approvers, D3.ciba.fallback.deny.
    // Shows D3.ciba.fallback.
    const here = await withCiba(t)
    const { id, answer } = await here.hold('a', 'nobody')
    await until(async () => (await confirmation(here, id)).state === 'waived', 'the fallback')
    assert.partialDeepStrictEqual(await displayedQuestion(here, id), {
      state: 'pending',
      quorum: { given: 0, needed: 1 },
    })
    await here.admin('POST', `/v1/approvals/${id}/approve`, {})
    assert.match(await answer, /deleted/)
    const strict = await withCiba(t, { ciba: { fallback: 'deny' } })
    assert.match(await strict.call('a', 'nobody'), /user confirmation failed: unknown_user_id/)
  })

  test('assurance, scopes, claim and endpoints are configurable', async (t) => {
    // Shows D3.ciba.clientAuth.post.
    // Shows D3.ciba.acrValues, D3.ciba.scopes, D3.ciba.userClaim, D3.ciba.clientAuth, D3.ciba.tokenEndpoint, D3.ciba.jwksURL,
    // D3.ciba.backchannelAuthenticationEndpoint.
    const ciba = {
      clientAuth: 'post',
      scopes: ['extra'],
      acrValues: ['gold'],
      userClaim: 'nick',
      bindingMessagePrefix: '',
      requestedExpirySeconds: 60,
      backchannelAuthenticationEndpoint: `${post.url}/backchannel`,
      tokenEndpoint: `${post.url}/token`,
      jwksURL: `${post.url}/jwks`,
    }
    const here = await withCiba(t, { ciba, at: post })
    const good = await here.hold('a', 'nick-of-eve')
    const request = await post.question('nick-of-eve')
    assert.match(request.binding_message, /^[A-Z2-7]{8}$/)
    assert.deepEqual([request.scope, request.acr_values, request.requested_expiry], ['openid extra', 'gold', '60'])
    await post.answer('allow nick-of-eve as eve acr gold')
    const weak = await here.hold('b', 'nick-of-fay')
    await post.question('nick-of-fay')
    await post.answer('allow nick-of-fay as fay acr silver')
    assert.match(await good.answer, /deleted/)
    assert.match(await weak.answer, /approval_denied/)
  })

  test('a provider with a private CA is trusted only through caFile', async (t) => {
    // Shows D3.ciba.caFile.
    const { url, caFile } = await tlsFront(t, basic.url)
    const places = { backchannelAuthenticationEndpoint: `${url}/backchannel`, tokenEndpoint: `${url}/token` }
    const here = await withCiba(t, { ciba: { ...places, jwksURL: `${url}/jwks`, caFile } })
    const strict = await withCiba(t, { ciba: { ...places, fallback: 'deny' } })
    const denied = strict.call('a', 'ida')
    const { answer } = await here.hold('a', 'hal')
    await basic.question('hal')
    await basic.answer('allow hal')
    assert.match(await answer, /deleted/)
    assert.match(await denied, /user confirmation failed: the provider gave no answer/)
  })

  test('at most three questions to a user are open at once', async (t) => {
    const here = await withCiba(t)
    for (const name of ['a', 'b', 'c', 'd', 'e']) await here.hold(name, 'gus')
    await until(() => basic.count('gus') === 3, 'three questions')
    await basic.answer('deny gus')
    await until(() => basic.count('gus') === 4, 'the next one')
  })
})

/** The same provider behind TLS with an unknown CA. */
async function tlsFront(t: TestContext, target: string): Promise<{ readonly url: string; readonly caFile: string }> {
  const authority = await createAuthority({ name: 'authority of the test', now: Date.now() })
  const leaf = await authority.issue({ name: 'localhost', dnsNames: ['localhost'] })
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' })
  const server = createServer({ cert: leaf.pem, key }, (incoming, response) => {
    const { method, headers, url = '/' } = incoming
    const passed = request(new URL(url, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    incoming.pipe(passed)
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const caFile = join(tempFolder(), 'ca.pem')
  await writeFile(caFile, authority.pem)
  return { url: `https://localhost:${port}`, caFile }
}
