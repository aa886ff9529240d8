import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import {
  Client,
  ClientCredentialsProvider,
  DpopSession,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { testProver } from '@plat/testkit/dpop'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { startTestIdentity } from '@plat/testkit/identity'
import { listening } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startOidcProvider, type TestOidcProvider } from '@plat/testkit/oidc/provider'

let gateway: GatewayProcess
let provider: TestOidcProvider
/** As clients address the gateway. */
let url: string
/** Credentials that the upstream received. */
const leaked: unknown[] = []
const closers: (() => unknown)[] = []

before(async () => {
  provider = await startOidcProvider(['ext/tools:notes', 'ext/tools:other', 'ext/notes:delete'])
  closers.push(() => provider.close())
  const notes = await startNotes()
  closers.push(() => notes.close())
  const front = await startFront()
  url = front.url
  gateway = await startGatewayProcess({
    servers: { notes: notes.url, other: notes.url },
    config: {
      identity: {
        jwksURL: 'http://127.0.0.1:9/nobody-listens',
        resourceBaseURL: url,
        trustedIssuers: [
          {
            issuer: provider.url,
            namespace: 'default',
            agent: 'assistant',
            scopePrefix: 'ext/',
            servers: ['notes'],
            stepUpScopes: { 'notes/delete_*': ['notes:delete'] },
          },
        ],
      },
    },
  })
  closers.push(() => gateway.close())
  front.leadTo(new URL(gateway.url).port)
  closers.push(() => front.close())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

/** An MCP server that answers every call with the name of its tool. */
async function startNotes() {
  const upstream = await startScriptedUpstream()
  upstream.answers((request, response) => {
    const { authorization, dpop } = request.headers
    if (authorization !== undefined || dpop !== undefined) leaked.push(request.headers)
    const { id, method, params } = JSON.parse(request.body || '{}')
    if (id === undefined) return void response.writeHead(202).end()
    const info = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'n', version: '1' } }
    const result = method === 'initialize' ? info : { content: [{ type: 'text', text: params.name }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  return upstream
}

/** The public address, known before the gateway starts: bytes go through as they come. */
async function startFront() {
  let port = 0
  const server = createServer((client) => {
    const inner = connect(port, '127.0.0.1')
    for (const socket of [client, inner]) socket.on('error', () => socket.destroy())
    client.pipe(inner).pipe(client)
    client.once('close', () => inner.destroy())
  })
  const front = await listening(server)
  return {
    url: `http://127.0.0.1:${front}`,
    leadTo: (to: string) => {
      port = Number(to)
    },
    close: () => server.close(),
  }
}

/** The provider of the client's SDK; it learns of the authorization server from the gateway alone. */
function credentials(dpop: DpopSession | null = null) {
  const own = new ClientCredentialsProvider({
    clientId: provider.clientId,
    clientSecret: provider.clientSecret,
    expectedIssuer: provider.url,
  })
  return dpop === null ? own : Object.assign(own, { dpop: () => dpop })
}

async function connected(authProvider: ReturnType<typeof credentials>): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp/notes`), { authProvider }))
  return client
}

const call = async (client: Client, name: string) => (await client.callTool({ name, arguments: {} })).content

test('the official client discovers the authorization server, and steps up if a tool requires more scopes', async (t) => {
  // Shows D3.trustedIssuers.authorizationServer, D3.endpoint.mcp.
  const authProvider = credentials()
  const client = await connected(authProvider)
  t.after(() => client.close())
  assert.deepEqual(await call(client, 'add_note'), [{ type: 'text', text: 'add_note' }])
  assert.equal(authProvider.tokens()?.scope, 'ext/tools:notes')
  assert.deepEqual(await call(client, 'delete_note'), [{ type: 'text', text: 'delete_note' }])
  assert.deepEqual(authProvider.tokens()?.scope?.split(' ').sort(), ['ext/notes:delete', 'ext/tools:notes'])
  assert.deepEqual(leaked, [], 'no credential went upstream')
  const records = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
  const outcome = records.find(({ kind, tool }) => kind === 'outcome' && tool === 'add_note')
  assert.match(String(outcome?.session), /^ext-[a-z2-7]{26}$/)
})

test('its DPoP-bound tokens are accepted only with its proofs', async (t) => {
  const authProvider = credentials(await DpopSession.create())
  const client = await connected(authProvider)
  t.after(() => client.close())
  assert.deepEqual(await call(client, 'add_note'), [{ type: 'text', text: 'add_note' }])
  const token = authProvider.tokens()?.access_token
  const stolen = await fetch(`${url}/mcp/notes`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  assert.equal(stolen.status, 401)
  assert.match(stolen.headers.get('www-authenticate') ?? '', /^DPoP algs="EdDSA ES256", error="invalid_token"/)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  assert.match(metrics, /plat_gateway_dpop_requests_total\{outcome="bound"\} [1-9]/)
  assert.match(metrics, /plat_gateway_dpop_requests_total\{outcome="missing"\} 1/)
  assert.match(metrics, /plat_gateway_trusted_keys 1/)
})

test('the metadata of a resource needs no token, and does not reveal which servers exist', async () => {
  const describe = async (path: string, method = 'GET') => {
    const response = await fetch(`${url}/.well-known/oauth-protected-resource${path}`, { method })
    const body: Record<string, unknown> = JSON.parse((await response.text()) || '{}')
    return { status: response.status, body }
  }
  assert.deepEqual(await describe('/mcp/notes'), {
    status: 200,
    body: {
      resource: `${url}/mcp/notes`,
      authorization_servers: [provider.url],
      scopes_supported: ['ext/tools:notes', 'ext/notes:delete'],
      bearer_methods_supported: ['header'],
      dpop_signing_alg_values_supported: ['EdDSA', 'ES256'],
      dpop_bound_access_tokens_required: false,
    },
  })
  const { body: other } = await describe('/mcp/other')
  const { body: missing } = await describe('/mcp/missing')
  assert.deepEqual({ ...missing, resource: other.resource }, other)
  assert.equal('authorization_servers' in other, false, 'no issuer is trusted for it')
  assert.equal((await describe('/mcp/notes', 'HEAD')).status, 200)
  assert.deepEqual([(await describe('/mcp/a/b')).status, (await describe('')).status], [404, 404])
  assert.equal((await describe('/mcp/notes', 'POST')).status, 405)
})

test('a session bound to a key by the broker is accepted only with proofs of that key', async (t) => {
  const broker = await startTestIdentity()
  t.after(() => broker.stop())
  const notes = await startNotes()
  t.after(() => notes.close())
  const bound = await startGatewayProcess({
    servers: { notes: notes.url },
    config: {
      identity: { jwksURL: `${broker.url}/.well-known/jwks.json` },
      dpop: { require: true, publicURL: 'https://gateway.example' },
    },
  })
  t.after(() => bound.close())
  const prover = testProver()
  const mint = async (more: object) => {
    const request = { namespace: 'default', agent: 'assistant', session: 's1', scopes: ['tools:notes'], ...more }
    const response = await fetch(`${broker.url}/v1/token`, {
      method: 'POST',
      headers: { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
    const { token }: { token: string } = JSON.parse(await response.text())
    return token
  }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'add_note', arguments: {} },
  })
  const send = async (headers: Record<string, string>) => {
    const fixed = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const response = await fetch(`${bound.url}/mcp/notes`, { method: 'POST', headers: { ...fixed, ...headers }, body })
    await response.text()
    return response.status
  }
  const token = await mint({ dpopJkt: prover.jkt })
  const dpop = prover.proof('https://gateway.example/mcp/notes', token)
  assert.equal(await send({ authorization: `DPoP ${token}`, dpop }), 200)
  assert.equal(await send({ authorization: `DPoP ${token}`, dpop }), 401, 'the same proof again')
  assert.equal(await send({ authorization: `Bearer ${token}` }), 401)
  assert.equal(await send({ authorization: `Bearer ${await mint({})}` }), 401, 'dpop.require')
})
