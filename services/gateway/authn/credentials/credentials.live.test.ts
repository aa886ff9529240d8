import assert from 'node:assert/strict'
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { systemClock } from '@plat/core'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { startTestIdentity } from '@plat/testkit/identity'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { type Received, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startOidcProvider } from '@plat/testkit/oidc/provider'
import { until } from '@plat/testkit/until'
import { setUpRegistry } from '../../testing/registered.ts'

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'

/** An MCP server that responds 401 unless `admits` returns true. */
async function guarded(t: TestContext, admits: (request: Received) => boolean): Promise<ScriptedUpstream> {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    if (!admits(request)) response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(RESULT)
  })
  return upstream
}

test('a bearer secret is sent to its server, and the token of the caller to no server', async (t) => {
  // Shows D2.auth.bearerSecret, D2.server.auth, D3.registry.auth and D3.mcp.upstreamCredentialsDir.
  const upstream = await guarded(t, ({ headers }) => headers.authorization === 'Bearer of-the-gateway')
  const fixture = await setUpRegistry(t, {
    servers: {
      notes: { url: upstream.url, auth: { type: 'bearerSecret', credentialKey: 'default.notes' } },
      open: { url: upstream.url, auth: { type: 'none' } },
    },
    secrets: { 'default.notes.token': 'of-the-gateway\n' },
  })
  assert.equal((await fixture.call('notes')).text, RESULT)
  assert.equal((await fixture.call('open')).error, 'upstream_credential')
  assert.deepEqual(
    upstream.received.map(({ headers }) => headers.authorization),
    ['Bearer of-the-gateway', undefined],
  )
  assert.doesNotMatch(await fixture.written(), /of-the-gateway/)
})

test('a header secret is sent in its header, and a caller cannot override it', async (t) => {
  // Shows D2.auth.headerSecret, D2.auth.headerSecret.headerName and D2.auth.none.
  const upstream = await guarded(t, ({ headers }) => headers['x-api-key'] === 'Key of the gateway')
  const fixture = await setUpRegistry(t, {
    servers: {
      notes: {
        url: upstream.url,
        auth: { type: 'headerSecret', headerName: 'X-Api-Key', credentialKey: 'default.notes' },
      },
    },
    secrets: { 'default.notes.token': 'Key of the gateway' },
  })
  assert.equal((await fixture.call('notes')).text, RESULT)
  assert.equal(upstream.received[0]?.headers.authorization, undefined)
})

test('without a usable credential a call is refused before anything is sent, and passes once there is one', async (t) => {
  const upstream = await guarded(t, () => true)
  const key = { credentialKey: 'default.notes' }
  const fixture = await setUpRegistry(t, {
    servers: {
      notes: { url: upstream.url, auth: { type: 'bearerSecret', ...key } },
      split: { url: upstream.url, auth: { type: 'bearerSecret', credentialKey: 'default.split' } },
      exchange: { url: upstream.url, auth: { type: 'tokenExchange', tokenExchange: { audience: 'a' } } },
    },
    secrets: { 'default.split.token': 'two\r\nlines: secret' },
  })
  for (const server of ['notes', 'split', 'exchange']) {
    assert.equal((await fixture.call(server)).error, 'upstream_credential', server)
  }
  assert.equal(upstream.received.length, 0)
  assert.doesNotMatch(await fixture.written(), /lines: secret/)
  await fixture.secret('default.notes.token', 'late')
  await until(async () => (await fixture.call('notes')).error === null, 'the credential to be read')
  assert.equal(upstream.received[0]?.headers.authorization, 'Bearer late')
  await fixture.secret('default.notes.token', null)
  await until(async () => (await fixture.call('notes')).error === 'upstream_credential', 'the credential to be gone')
})

test('a secret is rotated under load without a failed call, even after the server rejects the old one', async (t) => {
  const taken = new Set(['Bearer secret-0'])
  const upstream = await guarded(t, ({ headers }) => taken.has(headers.authorization ?? ''))
  const fixture = await setUpRegistry(t, {
    servers: { notes: { url: upstream.url, auth: { type: 'bearerSecret', credentialKey: 'default.notes' } } },
    secrets: { 'default.notes.token': 'secret-0' },
  })
  const token = fixture.issuer.token()
  let going = true
  const calls = Array.from({ length: 8 }, () => 0)
  const failed: string[] = []
  const callers = calls.map(async (_, caller) => {
    for (; going; calls[caller] = (calls[caller] ?? 0) + 1) {
      const { error } = await fixture.call('notes', token)
      if (error !== null) failed.push(error)
    }
  })
  for (let rotation = 1; rotation <= 5; rotation++) {
    // The server accepts both for a moment, as in every rotation. The gateway has not reread the file when that ends.
    taken.add(`Bearer secret-${rotation}`)
    await fixture.secret('default.notes.token', `secret-${rotation}`)
    taken.delete(`Bearer secret-${rotation - 1}`)
    const before = [...calls]
    await until(() => calls.every((count, caller) => count > (before[caller] ?? 0) + 3), 'calls of every caller')
  }
  going = false
  await Promise.all(callers)
  assert.deepEqual(failed, [])
})

test('a list that the gateway requests itself uses the newer secret as well', async (t) => {
  let wanted = 'secret-0'
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  const tools = [{ name: 'add', inputSchema: { type: 'object' } }]
  upstream.answers(({ headers, body }, response) => {
    const { id, method } = JSON.parse(body)
    const result = method === 'tools/list' ? { tools } : { content: [] }
    if (headers.authorization !== `Bearer ${wanted}`) response.writeHead(401).end()
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  const pins = { mode: 'enforce', onChange: 'hide', allowUnpinned: true, pins: {} }
  const auth = { type: 'bearerSecret', credentialKey: 'default.notes' } as const
  const fixture = await setUpRegistry(t, {
    servers: { notes: { url: upstream.url, pins, auth } },
    secrets: { 'default.notes.token': wanted },
    // Files are not reread during the test: only the refusal of the server reveals the new secret.
    config: { policyReloadSeconds: 3600 },
  })
  wanted = 'secret-1'
  await fixture.secret('default.notes.token', wanted)
  assert.equal((await fixture.call('notes')).error, null)
  const requests = upstream.received.map(({ headers, body }) => [JSON.parse(body).method, headers.authorization])
  assert.deepEqual(requests, [
    ['tools/list', 'Bearer secret-0'],
    ['tools/list', 'Bearer secret-1'],
    ['tools/call', 'Bearer secret-1'],
  ])
})

/** A TLS server with a certificate of `server`. It accepts only clients of `clients` and returns their name. */
async function mutual(t: TestContext, leaf: Issued, clients: readonly Issued[]) {
  const server = createServer(
    {
      cert: leaf.pem,
      key: keyOf(leaf),
      ca: clients.map(({ pem }) => pem),
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      request.resume()
      const socket = tlsOf(request.socket)
      const name = socket.authorized ? String(socket.getPeerCertificate().subject.CN) : 'nobody'
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: name }] } }))
    },
  )
  const port = await listening(server)
  t.after(() => closed(server))
  return `https://localhost:${port}/mcp`
}

const isTls = (socket: object): socket is TLSSocket => 'getPeerCertificate' in socket
function tlsOf(socket: object): TLSSocket {
  assert.ok(isTls(socket))
  return socket
}

const keyOf = (issued: Issued) => String(issued.privateKey.export({ format: 'pem', type: 'pkcs8' }))

test('a server’s own CA bundle is trusted for it alone, and a client certificate is rotated without a failed call', async (t) => {
  // Shows D2.auth.mtls and D3.registry.caPEM.
  const now = systemClock.now()
  const servers = await createAuthority({ name: 'servers', now })
  const clients = await createAuthority({ name: 'clients', now })
  const url = await mutual(t, await servers.issue({ name: 'server', dnsNames: ['localhost'] }), [clients])
  const first = await clients.issue({ name: 'first' })
  const second = await clients.issue({ name: 'second' })
  const fixture = await setUpRegistry(t, {
    servers: {
      shown: { url, caPEM: servers.pem, auth: { type: 'mtls', credentialKey: 'default.shown' } },
      plain: { url, caPEM: servers.pem, auth: { type: 'none' } },
      distrusted: { url, auth: { type: 'none' } },
    },
    secrets: { 'default.shown.crt': first.pem, 'default.shown.key': keyOf(first) },
  })
  assert.match((await fixture.call('shown')).text, /"first"/)
  assert.match((await fixture.call('plain')).text, /"nobody"/)
  assert.equal((await fixture.call('distrusted')).error, 'upstream_error')

  let going = true
  const seen: string[] = []
  const callers = Array.from({ length: 4 }, async () => {
    while (going) seen.push((await fixture.call('shown')).text)
  })
  await fixture.secret('default.shown.crt', second.pem)
  // A certificate without its key is unusable: until the key arrives, the previous one is used.
  await until(
    async () => (await fixture.written()).includes('are not a certificate'),
    'the half of the pair to be seen',
  )
  await fixture.secret('default.shown.key', keyOf(second))
  await until(() => seen.at(-1)?.includes('"second"') === true, 'the new certificate')
  going = false
  await Promise.all(callers)
  assert.deepEqual(
    seen.filter((text) => !text.includes('"first"') && !text.includes('"second"')),
    [],
  )
  assert.doesNotMatch(await fixture.written(), /BEGIN/)
})

async function keysAt(url: string): Promise<ReadonlyMap<string, KeyObject>> {
  const found = new Map<string, KeyObject>()
  const { keys } = JSON.parse(await (await fetch(url)).text())
  for (const key of keys) found.set(key.kid, createPublicKey({ key, format: 'jwk' }))
  return found
}

/** Returns the claims of a token signed by one of these keys (ES256 or EdDSA), or null. */
function verified(token: string, keys: ReadonlyMap<string, KeyObject>) {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  const { alg, kid } = read(header)
  const key = keys.get(kid)
  if (key === undefined) return null
  const bytes = Buffer.from(`${header}.${payload}`)
  const how = { key, dsaEncoding: 'ieee-p1363' } as const
  const good = verify(alg === 'ES256' ? 'sha256' : null, bytes, how, Buffer.from(signature, 'base64url'))
  return good ? read(payload) : null
}

test('the grant of a certified OpenID provider is for the resource and scopes of the server, and is reused by many calls', async (t) => {
  // Shows D2.auth.oauthClientCredentials, D2.auth.oauth.tokenURL, D2.auth.oauth.resource and D2.auth.oauth.scopes.
  const provider = await startOidcProvider(['read', 'write'])
  t.after(() => provider.close())
  const discovery: unknown = await (await fetch(`${provider.url}/.well-known/openid-configuration`)).json()
  assert.ok(typeof discovery === 'object' && discovery !== null && 'jwks_uri' in discovery)
  const keys = await keysAt(String(discovery.jwks_uri))
  const resource = 'https://notes.example/mcp'
  const tokens = new Set<string>()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(async ({ headers }, response) => {
    const token = headers.authorization?.replace('Bearer ', '') ?? ''
    const claims = verified(token, keys)
    const { iss, aud, scope, client_id: client } = claims ?? {}
    if (iss === provider.url && aud === resource && scope === 'read' && client === provider.clientId) tokens.add(token)
    response.writeHead(tokens.has(token) ? 200 : 401, { 'content-type': 'application/json' }).end(RESULT)
  })
  const oauth = { tokenURL: `${provider.url}/token`, resource, scopes: ['read'] }
  const auth = { type: 'oauthClientCredentials', oauth } as const
  const fixture = await setUpRegistry(t, {
    servers: {
      notes: { url: upstream.url, auth: { ...auth, credentialKey: 'default.notes' } },
      stranger: { url: upstream.url, auth: { ...auth, credentialKey: 'default.stranger' } },
    },
    secrets: {
      'default.notes.client-id': provider.clientId,
      'default.notes.client-secret': provider.clientSecret,
      'default.stranger.client-id': provider.clientId,
      'default.stranger.client-secret': 'not-the-secret',
    },
  })
  const together = await Promise.all(Array.from({ length: 20 }, () => fixture.call('notes')))
  assert.deepEqual([...new Set(together.map(({ text }) => text))], [RESULT])
  assert.equal(tokens.size, 1)
  assert.equal((await fixture.call('stranger')).error, 'upstream_credential')
  const written = await fixture.written()
  assert.match(written, /the token endpoint answered 401: invalid_client/)
  for (const secret of [provider.clientSecret, 'not-the-secret', ...tokens]) assert.ok(!written.includes(secret))
})

test('each session gets a separate broker token for the audience of the server that names the user', async (t) => {
  // Shows D2.auth.tokenExchange, D2.auth.tokenExchange.actSub, D2.auth.tokenExchange.audience and D3.mcp.tokenExchangeURL.
  const exchangeConfig = join(tempFolder(), 'exchange.json')
  const reports = { allowedScopes: ['tools:notes', 'tools:other'], allowedNamespaces: ['default'] }
  await writeFile(exchangeConfig, JSON.stringify({ audiences: { reports } }))
  const broker = await startTestIdentity(['-exchange-config', exchangeConfig])
  t.after(() => broker.stop())
  const mint = async (session: string, user: string, scopes: readonly string[]) => {
    const response = await fetch(`${broker.url}/v1/token`, {
      method: 'POST',
      headers: { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ namespace: 'default', agent: 'assistant', session, user, scopes }),
    })
    return String(JSON.parse(await response.text()).token)
  }
  const keys = await keysAt(`${broker.url}/.well-known/jwks.json`)
  const prompts: Record<string, string>[] = []
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(async ({ headers }, response) => {
    const token = headers.authorization?.replace('Bearer ', '') ?? ''
    const { aud, act, scope, plat_session: session } = verified(token, keys) ?? {}
    prompts.push({ token, aud, user: act?.sub, scope, session })
    response.writeHead(200, { 'content-type': 'application/json' }).end(RESULT)
  })
  const exchange = (audience: string) => ({ type: 'tokenExchange', tokenExchange: { audience } }) as const
  const fixture = await setUpRegistry(t, {
    servers: {
      notes: { url: upstream.url, auth: exchange('reports') },
      unlisted: { url: upstream.url, auth: exchange('unlisted') },
    },
    config: {
      tokenExchangeURL: `${broker.url}/v1/exchange`,
      identity: { jwksURL: `${broker.url}/.well-known/jwks.json`, issuer: 'plat-identity' },
    },
  })
  const ada = await mint('s1', 'ada', ['tools:notes', 'tools:unlisted', 'models:big'])
  const bob = await mint('s2', 'bob', ['tools:notes'])
  for (const token of [ada, ada, bob]) assert.equal((await fixture.call('notes', token)).text, RESULT)
  assert.equal((await fixture.call('unlisted', ada)).error, 'upstream_credential')
  const claimed = prompts.map(({ token: _, ...claims }) => claims)
  const same = { aud: 'reports', scope: 'tools:notes' }
  assert.deepEqual(claimed, [
    { ...same, user: 'user:ada', session: 's1' },
    { ...same, user: 'user:ada', session: 's1' },
    { ...same, user: 'user:bob', session: 's2' },
  ])
  const tokens = prompts.map(({ token }) => String(token))
  assert.equal(tokens[0], tokens[1], 'a token of a session is reused')
  assert.ok(!tokens.includes(ada) && !tokens.includes(bob))
  const written = await fixture.written()
  assert.match(written, /the token endpoint answered 400: invalid_target/)
  for (const token of [ada, bob, ...tokens]) assert.ok(!written.includes(token))
})
