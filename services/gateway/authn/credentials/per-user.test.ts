import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { type Credential, type Denial, deny, isDenial, type UpstreamAuth } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { createCredentials, type UserTokens } from './index.ts'

const token = (text: string): Credential => ({ headers: { authorization: `Bearer ${text}` }, clientCert: null })
const notConnected = deny('upstream_credential', 'not connected', { data: { connectURL: 'https://g.example' } })
const mtls = { type: 'mtls', credentialKey: 'default.notes' } as const
const server = (auth: UpstreamAuth) => ({ key: 'default/notes', auth, caPEM: null })
const plain = server({ type: 'perUser', provider: 'hub', mtls: null })
const mutual = server({ type: 'perUser', provider: 'hub', mtls })

/** Credentials over a scripted vault and a folder that is read once. */
async function setUp(t: TestContext, userTokens: UserTokens | null) {
  const clock = new TestClock()
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const credentials = createCredentials({
    config: { upstreamCredentialsDir: dir, tokenExchangeURL: '', policyReloadSeconds: 3600 },
    extraCA: null,
    userTokens,
    sessionToken: () => null,
    dialer: { fetchBytes: () => Promise.reject(new Error('no request expected')) },
    clock,
    log: silentLog,
  })
  t.after(async () => {
    credentials.close()
    await rm(dir, { recursive: true })
  })
  const certify = async () => {
    const leaf = await createAuthority({ name: 'gateway', now: clock.now() })
    await writeFile(join(dir, 'default.notes.crt'), leaf.pem)
    await writeFile(join(dir, 'default.notes.key'), String(leaf.privateKey.export({ format: 'pem', type: 'pkcs8' })))
    await credentials.follow([mutual.auth])
    return leaf.pem
  }
  return { credentials, certify }
}

/** A vault with one result for all calls. */
function vaultOf(answer: Credential | Denial, next: Credential | Denial = answer): UserTokens & { requests: string[] } {
  const requests: string[] = []
  const note = (key: string, provider: string) => void requests.push(`${key} ${provider}`)
  return {
    requests,
    missing: (key, provider) => {
      note(key, provider)
      return isDenial(answer) ? answer : null
    },
    of: (key, provider) => {
      note(key, provider)
      return answer
    },
    renewed: async (key, provider) => {
      note(key, provider)
      return next
    },
  }
}

test('a per-user server gets the caller’s credential of the vault, and denials of the vault reach the caller', async (t) => {
  const connected = vaultOf(token('ada’s'), token('ada’s next'))
  const { credentials } = await setUp(t, connected)
  assert.equal(credentials.missing(plain, testIdentity), null)
  assert.deepEqual(await credentials.of(plain, testIdentity), token('ada’s'))
  assert.deepEqual(await credentials.renewed(plain, testIdentity, token('ada’s')), token('ada’s next'))
  assert.deepEqual([...new Set(connected.requests)], ['default/notes hub'])
  const refused = await setUp(t, vaultOf(notConnected))
  assert.equal(refused.credentials.missing(plain, testIdentity), notConnected)
  assert.equal(await refused.credentials.of(plain, testIdentity), notConnected)
  assert.equal(await refused.credentials.renewed(plain, testIdentity, token('old')), notConnected)
})

test('with mtls the certificate of the gateway is sent as well, and without one the call is refused', async (t) => {
  // Shows D2.auth.perUser.type.
  const { credentials, certify } = await setUp(t, vaultOf(token('ada’s')))
  const isRefused = (answer: Credential | Denial | null) => answer !== null && isDenial(answer) && answer.data === null
  assert.ok(isRefused(credentials.missing(mutual, testIdentity)))
  assert.ok(isRefused(await credentials.of(mutual, testIdentity)))
  const certPEM = await certify()
  assert.equal(credentials.missing(mutual, testIdentity), null)
  for (const headers of [
    await credentials.of(mutual, testIdentity),
    await credentials.renewed(mutual, testIdentity, token('old')),
  ]) {
    assert.ok(headers !== null && !isDenial(headers))
    assert.equal(headers.headers.authorization, 'Bearer ada’s')
    assert.equal(headers.clientCert?.certPEM.trim(), certPEM.trim())
  }
})

test('without a vault every call is refused, before anything is sent and when it would be', async (t) => {
  const { credentials } = await setUp(t, null)
  const missing = credentials.missing(plain, testIdentity)
  assert.match(missing?.reason ?? '', /tokenVault.enabled is off/)
  assert.equal(await credentials.of(plain, testIdentity), missing)
  assert.equal(await credentials.renewed(plain, testIdentity, token('old')), null)
})
