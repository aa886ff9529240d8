import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { signerOf } from '@plat/keys'
import { silentLog } from '@plat/process'
import { signJws } from '@plat/tokens'
import { openPeople } from './people.ts'

const ISSUER = 'https://login.example'
const es256 = () => signerOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'test key')

test('the keys of the provider are fetched again every jwksRefreshSeconds, so a key that it withdrew counts no more', async () => {
  // Shows D3.adminAuth.oidc.jwksRefreshSeconds.
  const clock = new TestClock()
  const old = es256()
  let signer = old
  const jwks = () => JSON.stringify({ keys: [{ ...signer.publicJwk, kid: signer.kid, use: 'sig' }] })
  const dialer = { fetchBytes: async () => ({ status: 200, headers: {}, bytes: Buffer.from(jwks()) }) }
  const config = {
    issuer: ISSUER,
    audience: 'admin',
    jwksURL: `${ISSUER}/keys`,
    jwksRefreshSeconds: 60,
    usernameClaim: '',
    groupsClaim: 'groups',
    algorithms: ['ES256'],
    caFile: '',
    leewaySeconds: 0,
  } as const
  const people = await openPeople(config, { dialer, clock, log: silentLog })
  const exp = Math.floor(clock.now() / 1000) + 3600
  const login = { acr: 'mfa', amr: ['pwd', 'otp', 7], auth_time: 1 }
  const claims = { iss: ISSUER, aud: 'admin', sub: 'u', preferred_username: 'ada', groups: ['staff'], exp, ...login }
  const auth = { acr: 'mfa', amr: ['pwd', 'otp'], at: 1 }
  const token = await signJws(old, { typ: 'JWT' }, claims)
  const known = { subject: { issuer: ISSUER, subject: 'u' }, names: ['ada', 'u'] }
  assert.deepEqual(await people.identify(token), { user: 'ada', groups: ['staff'], known, auth })
  signer = es256()
  await clock.advance(30_000)
  assert.deepEqual(await people.identify(token), { user: 'ada', groups: ['staff'], known, auth })
  await clock.advance(60_000)
  assert.ok('kind' in (await people.identify(token)))
  people.close()
})
