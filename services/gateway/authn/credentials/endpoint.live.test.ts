import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { type TestContext, test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { closed, listening } from '@plat/testkit/local'
import type { Identity, UpstreamAuth } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { askToken } from './endpoint.ts'
import { TokenSources } from './sources.ts'

interface EndpointRequest {
  readonly headers: IncomingHttpHeaders
  readonly form: Readonly<Record<string, string>>
}

/** A scripted token endpoint. */
async function endpoint(t: TestContext) {
  const requests: EndpointRequest[] = []
  let answer: { status: number; body: string; location?: string } = { status: 500, body: '' }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    requests.push({ headers: request.headers, form: Object.fromEntries(new URLSearchParams(text)) })
    const { status, body, location } = answer
    response.writeHead(status, { 'content-type': 'application/json', ...(location && { location }) }).end(body)
  })
  const url = `http://127.0.0.1:${await listening(server)}/token`
  const dialer = createDialer({ log: silentLog })
  t.after(async () => {
    dialer.close()
    await closed(server)
  })
  const answers = (next: typeof answer | object) => {
    answer = 'status' in next ? next : { status: 200, body: JSON.stringify(next) }
  }
  return { url, requests, dialer, answers }
}

const token = (text: string) => ({ access_token: text, token_type: 'bearer', expires_in: 300 })

test('a grant names its audience, resource and scopes, and the client authenticates according to RFC 6749', async (t) => {
  // Shows D2.auth.oauth.audience.
  const { url, requests, dialer, answers } = await endpoint(t)
  answers(token('abc'))
  const auth: UpstreamAuth = {
    type: 'oauthClientCredentials',
    credentialKey: 'a.b',
    oauth: { tokenURL: url, audience: 'notes api', resource: 'https://notes.example/mcp', scopes: ['read', 'write'] },
  }
  const sources = new TokenSources({
    tokenExchangeURL: '',
    extraCA: null,
    client: () => ({ id: 'plat:gateway', secret: 'ä +&=%' }),
    dialer,
    clock: new TestClock(),
    log: silentLog,
  })
  const server = { key: 'a/b', auth, caPEM: null }
  const credential = await sources.granted(server, auth)?.get()
  assert.deepEqual(credential, { headers: { authorization: 'Bearer abc' }, clientCert: null })
  assert.deepEqual(requests[0]?.form, {
    grant_type: 'client_credentials',
    scope: 'read write',
    audience: 'notes api',
    resource: 'https://notes.example/mcp',
  })
  const [scheme, encoded] = requests[0]?.headers.authorization?.split(' ') ?? []
  assert.equal(scheme, 'Basic')
  const credentials = Buffer.from(encoded ?? '', 'base64').toString()
  assert.equal(credentials, 'plat%3Agateway:%C3%A4+%2B%26%3D%25')
})

test('a grant is reused with a new registry or secret, but not with another client, scope or bundle', async (t) => {
  const { url, requests, dialer, answers } = await endpoint(t)
  answers(token('abc'))
  let client = { id: 'plat', secret: 'one' }
  const clock = new TestClock()
  const sources = new TokenSources({
    tokenExchangeURL: '',
    extraCA: null,
    client: () => client,
    dialer,
    clock,
    log: silentLog,
  })
  const authOf = (scopes: readonly string[]) =>
    ({
      type: 'oauthClientCredentials',
      credentialKey: 'a.b',
      oauth: { tokenURL: url, audience: null, resource: null, scopes },
    }) as const
  const get = async (auth: ReturnType<typeof authOf>, caPEM: string | null = null) => {
    await sources.granted({ key: 'a/b', auth, caPEM }, auth)?.get()
    return requests.length
  }
  assert.equal(await get(authOf(['read'])), 1)
  assert.equal(await get(authOf(['read'])), 1)
  client = { id: 'plat', secret: 'two' }
  assert.equal(await get(authOf(['read'])), 1)
  assert.equal(await get(authOf(['write'])), 2)
  client = { id: 'other', secret: 'two' }
  assert.equal(await get(authOf(['write'])), 3)
  sources.keep(new Set())
  assert.equal(await get(authOf(['write'])), 4)
})

test('an exchanged token is cached for one session token and expires with it', async (t) => {
  const { url, requests, dialer, answers } = await endpoint(t)
  answers({ ...token('abc'), expires_in: 3600 })
  const clock = new TestClock()
  const parts = { extraCA: null, client: () => null, dialer, clock, log: silentLog }
  const sources = new TokenSources({ ...parts, tokenExchangeURL: url })
  const server = { key: 'a/b', auth: { type: 'tokenExchange', audience: 'x' }, caPEM: null } as const
  const caller = (jti: string): Identity => ({ ...testIdentity, jti, expiresAt: clock.now() + 60_000 })
  const get = async (jti: string, audience: string) => {
    await sources.exchanged(server, audience, caller(jti), `token of ${jti}`)?.get()
    return requests.length
  }
  assert.equal(await get('j1', 'x'), 1)
  assert.equal(await get('j1', 'x'), 1)
  assert.equal(await get('j2', 'x'), 2)
  assert.equal(await get('j1', 'y'), 3)
  assert.deepEqual(requests[2]?.form, {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: 'token of j1',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    audience: 'y',
  })
  await clock.advance(60_000)
  assert.equal(await get('j1', 'x'), 4, 'the session token has expired')
  assert.equal(new TokenSources({ ...parts, tokenExchangeURL: '' }).exchanged(server, 'x', caller('j1'), 't'), null)
})

test('an agent at its share of exchanged tokens exchanges anew for each call, while those of another agent are kept', async (t) => {
  const { url, dialer } = await endpoint(t)
  const clock = new TestClock()
  const parts = { extraCA: null, client: () => null, dialer, clock, log: silentLog }
  const sources = new TokenSources({ ...parts, tokenExchangeURL: url })
  const server = { key: 'a/b', auth: { type: 'tokenExchange', audience: 'x' }, caPEM: null } as const
  const tokenOf = (agent: string, n: number) => {
    const identity = { ...testIdentity, agent, jti: `${agent} ${n}`, expiresAt: clock.now() + 60_000 }
    return sources.exchanged(server, 'x', identity, 'token')
  }
  const share = poolTable.exchanged_tokens.shares[0].max
  for (let n = 0; n < share; n++) tokenOf('greedy', n)
  assert.equal(tokenOf('greedy', 0), tokenOf('greedy', 0))
  assert.notEqual(tokenOf('greedy', share), tokenOf('greedy', share))
  assert.equal(tokenOf('modest', 0), tokenOf('modest', 0))
})

test('other responses give no token, and no text of them is repeated', async (t) => {
  const { url, requests, dialer, answers } = await endpoint(t)
  const ask = () => askToken(dialer, { url, form: new URLSearchParams({ a: 'b' }), client: null, caPEM: null })
  const cases: [object, string][] = [
    [{ status: 400, body: '{"error":"invalid_target","error_description":"secret"}' }, 'answered 400: invalid_target'],
    [{ status: 401, body: '{"error":"secret with spaces"}' }, 'answered 401'],
    [{ status: 500, body: 'secret' }, 'answered 500'],
    [{ status: 302, body: '', location: url }, 'answered 302'],
    [{ ...token('secret'), token_type: 'DPoP' }, 'gave no bearer token'],
    [{ access_token: 'secret' }, 'gave no bearer token'],
    [token('secret with spaces'), 'gave a token that no header can carry'],
    [{ token_type: 'bearer' }, 'gave a token that no header can carry'],
    [{ ...token('secret'), expires_in: 0 }, 'gave a token that has expired'],
    [{ ...token('secret'), expires_in: '300' }, 'gave an expires_in that is not a number'],
    [
      { status: 200, body: '{"access_token":"secret","access_token":"x","token_type":"bearer"}' },
      'gave no bearer token',
    ],
    [{ status: 200, body: `"${'secret'.repeat(16 * 1024)}"` }, 'gave no answer (too_large)'],
  ]
  for (const [answer, expected] of cases) {
    answers(answer)
    assert.equal(await ask(), `the token endpoint ${expected}`)
  }
  assert.equal(requests.length, cases.length, 'a redirect is not followed')
  const nowhere = { url: 'http://169.254.169.254/token', form: new URLSearchParams(), client: null, caPEM: null }
  assert.equal(await askToken(dialer, nowhere), 'the token endpoint gave no answer (blocked)')
})
