import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { signJws } from '@plat/tokens'
import { tokenVaultBlock } from '../config.ts'
import { isRefusal } from '../providers/client.ts'
import { filled } from '../testing/filled.ts'
import { Login } from './login.ts'

const ISSUER = 'https://login.example'
const signer = ephemeralSigner('ES256')

/** An ID token with this lifetime in seconds. */
function idToken(sub: string, seconds: number): string {
  const now = Math.floor(systemClock.now() / 1000)
  return signJws(signer, {}, { iss: ISSUER, aud: 'login', sub, iat: now, exp: now + seconds })
}

/** A login whose identity provider renews with an ID token of this user. */
function loginThatGoesOnWith(sub: string): Login {
  const answers: Readonly<Record<string, object>> = {
    [`${ISSUER}/token`]: { access_token: 'a', token_type: 'bearer', id_token: idToken(sub, 3600) },
    [`${ISSUER}/jwks`]: { keys: [{ ...signer.publicJwk, kid: signer.kid, use: 'sig' }] },
  }
  const dialer = {
    async fetchBytes(url: string | URL) {
      const bytes = Buffer.from(JSON.stringify(answers[String(url)] ?? {}))
      return { status: 200, headers: { 'content-type': 'application/json' }, bytes }
    },
  }
  const endpoints = { authorizationURL: `${ISSUER}/authorize`, tokenURL: `${ISSUER}/token`, jwksURL: `${ISSUER}/jwks` }
  const config = filled(tokenVaultBlock.schema.properties.login, { issuer: ISSUER, clientID: 'login', ...endpoints })
  return new Login(config, { dialer, clock: systemClock, extraCA: null })
}

test('a login can only be renewed for the same user', async () => {
  const ended = { idToken: idToken('ada', 1), refreshToken: 'r' }
  const mine = await loginThatGoesOnWith('ada').current(ended)
  assert.ok(!isRefusal(mine), JSON.stringify(mine))
  assert.notEqual(mine.idToken, ended.idToken)
  const theirs = await loginThatGoesOnWith('mallory').current(ended)
  assert.ok(isRefusal(theirs))
  assert.equal(theirs.code, 'invalid_grant')
  assert.equal(theirs.why, 'the renewed login is for another user')
})

test('a login is unchanged until its ID token expires, and then ends without a refresh token', async () => {
  const login = loginThatGoesOnWith('ada')
  const lasting = { idToken: idToken('ada', 3600), refreshToken: null }
  assert.equal(await login.current(lasting), lasting)
  const ended = await login.current({ idToken: idToken('ada', 1), refreshToken: null })
  assert.ok(isRefusal(ended) && ended.code === 'invalid_grant')
})
