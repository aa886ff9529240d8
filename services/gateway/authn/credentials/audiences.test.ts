import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { isDenial } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { type Credentials, createCredentials } from './index.ts'

test('a server of another namespace gets an exchanged token only for an audience that is listed for its namespace', async () => {
  const requests: string[] = []
  const credentialsWith = (tokenExchangeAudiences: Readonly<Record<string, readonly string[]>>) =>
    createCredentials({
      config: {
        ...{ upstreamCredentialsDir: '', tokenExchangeURL: 'http://broker/v1/exchange', policyReloadSeconds: 3600 },
        tokenExchangeAudiences,
      },
      extraCA: null,
      sessionToken: () => 'the-session-token',
      dialer: {
        async fetchBytes(_url, _purpose, request) {
          requests.push(String(request?.body))
          const body = { access_token: 'exchanged', token_type: 'Bearer', expires_in: 300 }
          return { status: 200, bytes: Buffer.from(JSON.stringify(body)), headers: {} }
        },
      },
      clock: new TestClock(),
      log: silentLog,
    })
  const server = (key: string, audience = 'reports') =>
    ({ key, auth: { type: 'tokenExchange', audience }, caPEM: null }) as const
  const caller = (namespace: string) => ({ ...testIdentity, namespace, jti: namespace })
  const passes = async (credentials: Credentials, presented: ReturnType<typeof server>, namespace: string) => {
    const found = await credentials.of(presented, caller(namespace))
    assert.equal(credentials.missing(presented, caller(namespace)) === null, !isDenial(found))
    return !isDenial(found)
  }
  const open = credentialsWith({})
  assert.equal(await passes(open, server('team/notes'), 'team'), true)
  assert.equal(await passes(open, server('evil/notes'), 'team'), false)
  assert.equal(requests.length, 1, 'refused calls send no request to the broker')
  const listed = credentialsWith({ tools: ['reports'], team: [] })
  assert.equal(await passes(listed, server('tools/notes'), 'team'), true)
  assert.equal(await passes(listed, server('tools/notes', 'payroll'), 'team'), false)
  assert.equal(await passes(listed, server('tools/notes', 'payroll'), 'tools'), false)
  assert.equal(await passes(listed, server('team/notes'), 'team'), false)
  open.close()
  listed.close()
})
