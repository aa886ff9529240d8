import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { type Ciba, openCiba } from './client.ts'

const ISSUER = 'https://login.example'
const GOOD_ASK = { auth_req_id: 'r', expires_in: 120, interval: 5 }

/** A client of a provider with scripted endpoints. */
async function clientOf(answers: {
  ask?: ProviderResponse
  poll?: ProviderResponse
}): Promise<{ ciba: Ciba; clock: TestClock }> {
  const clock = new TestClock()
  const answerOf = (url: string): ProviderResponse => {
    if (url.endsWith('/jwks')) return { status: 200, body: { keys: [] } }
    return (url.endsWith('/token') ? answers.poll : answers.ask) ?? { status: 200, body: GOOD_ASK }
  }
  const fetchBytes = async (url: string) => {
    const { status, body } = answerOf(url)
    if (status === 0) throw new Error('connection refused')
    return { status, headers: {}, bytes: Buffer.from(JSON.stringify(body)) }
  }
  const config = {
    enabled: true,
    issuer: ISSUER,
    backchannelAuthenticationEndpoint: `${ISSUER}/authorize`,
    tokenEndpoint: `${ISSUER}/token`,
    jwksURL: `${ISSUER}/jwks`,
    clientID: 'gateway',
    clientSecretFile: '',
    clientAuth: 'basic' as const,
    caFile: '',
    scopes: [],
    acrValues: [],
    userClaim: '',
    requestedExpirySeconds: 0,
    fallback: 'approvers' as const,
    bindingMessagePrefix: 'PLAT',
  }
  const parts = { config: { ciba: config }, clock, ids: systemIds(clock), log: silentLog, extraCA: null }
  return { ciba: await openCiba({ ...parts, dialer: { fetchBytes } }), clock }
}

interface ProviderResponse {
  /** 0: connection failure. */
  readonly status: number
  readonly body: object
}

const error = (status: number, code: string): ProviderResponse => ({ status, body: { error: code } })

const ASKING: readonly (readonly [
  ProviderResponse,
  'cannot be prompted' | 'try again' | 'not agreed' | 'refused by the user',
])[] = [
  [error(400, 'unknown_user_id'), 'cannot be prompted'],
  [error(400, 'expired_login_hint_token'), 'cannot be prompted'],
  [error(400, 'missing_user_code'), 'cannot be prompted'],
  [error(400, 'invalid_user_code'), 'cannot be prompted'],
  [error(403, 'access_denied'), 'refused by the user'],
  [error(400, 'invalid_request'), 'not agreed'],
  [error(400, 'invalid_scope'), 'not agreed'],
  [error(400, 'invalid_binding_message'), 'not agreed'],
  [error(400, 'unauthorized_client'), 'not agreed'],
  [error(401, 'invalid_client'), 'not agreed'],
  [error(400, 'a_code_of_the_future'), 'not agreed'],
  [{ status: 403, body: {} }, 'not agreed'],
  [{ status: 200, body: {} }, 'not agreed'],
  [error(503, 'temporarily_unavailable'), 'try again'],
  [{ status: 0, body: {} }, 'try again'],
]

test('each error of the backchannel endpoint: the fallback applies only to users who cannot be prompted', async () => {
  // Shows D3.ciba.fallback.
  for (const [ask, expected] of ASKING) {
    const { ciba } = await clientOf({ ask })
    const result = await ciba.prompt('uma', 60_000)
    const found =
      !('kind' in result) || result.kind === 'unavailable'
        ? 'kind' in result && result.again
          ? 'try again'
          : 'cannot be prompted'
        : result.byUser
          ? 'refused by the user'
          : 'not agreed'
    assert.equal(found, expected, JSON.stringify(ask))
    ciba.close()
  }
})

const POLLING: readonly (readonly [
  ProviderResponse,
  'pending' | 'slow_down' | 'not agreed' | 'refused by the user',
])[] = [
  [error(400, 'authorization_pending'), 'pending'],
  [error(400, 'slow_down'), 'slow_down'],
  [error(400, 'access_denied'), 'refused by the user'],
  [error(400, 'expired_token'), 'not agreed'],
  [error(400, 'transaction_failed'), 'not agreed'],
  [error(400, 'invalid_grant'), 'not agreed'],
  [error(400, 'invalid_request'), 'not agreed'],
  [error(401, 'invalid_client'), 'not agreed'],
  [error(400, 'unauthorized_client'), 'not agreed'],
  [error(400, 'unsupported_grant_type'), 'not agreed'],
  [error(400, 'a_code_of_the_future'), 'not agreed'],
  [{ status: 200, body: {} }, 'not agreed'],
  [{ status: 200, body: { id_token: 'no.token.atall' } }, 'not agreed'],
  [error(503, 'temporarily_unavailable'), 'pending'],
  [{ status: 0, body: {} }, 'pending'],
]

test('each error of the token endpoint: a prompted user who does not confirm has not agreed', async () => {
  for (const [poll, expected] of POLLING) {
    const { ciba, clock } = await clientOf({ poll })
    const authentication = await ciba.prompt('uma', 60_000)
    assert.ok('requestId' in authentication)
    const result = await ciba.poll(authentication, 'uma')
    const found = typeof result === 'string' ? result : result.byUser ? 'refused by the user' : 'not agreed'
    assert.equal(found, expected, JSON.stringify(poll))
    await clock.advance(60_000)
    const late = await ciba.poll(authentication, 'uma')
    assert.ok(typeof late !== 'string' && /did not answer in time/.test(late.why), 'the prompt has expired')
    ciba.close()
  }
})
