import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { createAuthority } from '@plat/testkit/authority'
import { closed, freePort, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { ProxyAgent, request } from 'undici'
import { keyOf } from '../../testing/certified.ts'
import { readAll, setUpTunnels } from '../../testing/tunnels.ts'

const run = promisify(execFile)

test('curl reaches a site over TLS through the proxy with the token as password, and the call is recorded', async (t) => {
  // Shows D3.sessions.egress.enabled, D3.endpoint.connectProxy and D3.metric.plat_gateway_egress_requests_total.
  const authority = await createAuthority({ name: 'authority', now: Date.now() })
  const leaf = await authority.issue({ name: 'site', dnsNames: ['localhost'] })
  // The site closes first: curl would close while the end of TLS is still on its way, and that is a reset.
  const page = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\na page'
  const site = createTlsServer({ cert: leaf.pem, key: keyOf(leaf) }, ({ socket }) => socket.end(page))
  const port = await listening(site)
  t.after(() => closed(site))
  const ca = join(tempFolder(), 'ca.pem')
  await writeFile(ca, authority.pem)
  const fixture = await setUpTunnels(t, { web: { allowedPorts: [port] } })
  const proxied = ['--proxy', fixture.gateway.url, '--proxy-user', `plat:${fixture.token()}`]
  const { stdout } = await run('curl', ['-sS', '--cacert', ca, ...proxied, `https://localhost:${port}/`])
  assert.equal(stdout, 'a page')
  const { op, server, tool, method, result, status, endpoint, bytesUp, bytesDown } = await fixture.outcome()
  assert.deepEqual([op, server, tool, method], ['tunnel', 'plat-egress', 'localhost', 'CONNECT'])
  assert.deepEqual([result, status, endpoint], ['completed', 200, `localhost:${port}`])
  // More than the page, since the handshake and the certificate count.
  assert.ok(Number(bytesUp) > 100 && Number(bytesDown) > 500)
  assert.deepEqual(
    fixture.records().flatMap(({ kind, op }) => (op === 'tunnel' ? [kind] : [])),
    ['intent', 'outcome'],
  )
  assert.match(
    (await fixture.metric('plat_gateway_egress_requests_total{kind="connect",decision="allow"}')) ?? '',
    / 1$/,
  )
})

test('undici reaches a plain site through a tunnel with a bearer token', async (t) => {
  const site = createHttpServer((request, response) => response.end(`${request.method} ${request.url}`))
  const port = await listening(site)
  t.after(() => closed(site))
  const fixture = await setUpTunnels(t, { web: { allowedPorts: [port] } })
  const dispatcher = new ProxyAgent({ uri: fixture.gateway.url, token: `Bearer ${fixture.token()}`, proxyTunnel: true })
  t.after(() => dispatcher.close())
  const answer = await request(`http://localhost:${port}/a?b`, { dispatcher })
  assert.equal(await answer.body.text(), 'GET /a?b')
})

test('bytes sent together with the head are the first bytes of the tunnel', async (t) => {
  const fixture = await setUpTunnels(t)
  const { status, head, socket } = await fixture.ask({ early: 'first ' })
  assert.equal(status, 200)
  assert.match(head, /\r\nx-plat-decision-id: [-0-9a-f]{36}/)
  assert.doesNotMatch(head, /content-length|transfer-encoding/)
  socket.end('and last')
  assert.equal(await readAll(socket), 'first and last')
})

test('a request without a session token gets a challenge of a proxy', async (t) => {
  const fixture = await setUpTunnels(t)
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  for (const authorization of [
    null,
    'Bearer nonsense',
    basic('plat:nonsense'),
    basic('no-colon'),
    'Basic !',
    basic('plat:'),
  ]) {
    const { status, head } = await fixture.ask({ authorization })
    assert.equal(status, 407, String(authorization))
    assert.match(head, /\r\nproxy-authenticate: basic realm="plat"/)
    assert.doesNotMatch(head, /www-authenticate/)
  }
  const { body } = await fixture.ask({ authorization: null })
  assert.equal(body.error, 'unauthenticated')
  assert.match(String(body.message), /password of Proxy-Authorization/)
  // A header for the host is not one for the proxy.
  const { status } = await fixture.ask({ authorization: null, lines: [`Authorization: Bearer ${fixture.token()}`] })
  assert.equal(status, 407)
  assert.equal(fixture.accepted.length, 0)
})

test('scope, lists, ports and addresses are checked before connecting, and each refusal leaves one record', async (t) => {
  const fixture = await setUpTunnels(t, { web: { deniedDomains: ['bad.localhost'] } })
  const refused = async (target: string, token = fixture.token()) => {
    const response = await fixture.ask({ target, authorization: `Bearer ${token}` })
    const { error, message } = response.body
    return [response.status, error, message]
  }
  const may = 'the host may not be reached: '
  const port = fixture.port
  const cases: readonly (readonly [unknown[], unknown[]])[] = [
    [
      await refused(`localhost:${port}`, fixture.token({ scope: 'tools:notes' })),
      [403, 'insufficient_scope', 'scope tools:plat-egress is required'],
    ],
    [await refused(`example.com:${port}`), [403, 'policy_denied', `${may}web.allowedDomains does not name its domain`]],
    [await refused(`bad.localhost.:${port}`), [403, 'policy_denied', `${may}web.deniedDomains names its domain`]],
    [await refused('localhost:25'), [403, 'policy_denied', `${may}web.allowedPorts does not name its port`]],
    [
      await refused(`0x7f.1:${port}`),
      [403, 'policy_denied', `${may}it names an IP address, which web.allowIPLiterals does not allow`],
    ],
  ]
  for (const [found, wanted] of cases) assert.deepEqual(found, wanted)
  assert.equal(fixture.accepted.length, 0)
  const decisions = () => fixture.records().filter(({ op }) => op === 'tunnel')
  await until(() => decisions().length === cases.length, 'the records')
  assert.deepEqual(
    decisions().map(({ kind, tool }) => [kind, tool]),
    [
      ['decision', 'localhost'],
      ['decision', 'example.com'],
      ['decision', 'bad.localhost'],
      ['decision', 'localhost'],
      ['decision', '127.0.0.1'],
    ],
  )
  assert.match(
    (await fixture.metric('plat_gateway_egress_requests_total{kind="connect",decision="deny"}')) ?? '',
    / 5$/,
  )
})

test('a name that resolves to a private network is refused', async (t) => {
  const fixture = await setUpTunnels(t, { web: { allowedCIDRs: [] } })
  const { status, body } = await fixture.ask()
  assert.deepEqual([status, body.error], [403, 'policy_denied'])
  assert.match(String(body.message), /which web\.allowedCIDRs does not allow/)
  assert.equal(fixture.accepted.length, 0)
})

test('a host that refuses the connection is an upstream error, recorded with the host', async (t) => {
  const port = await freePort()
  const fixture = await setUpTunnels(t, { web: { allowedPorts: [port] } })
  const { status, body } = await fixture.ask({ target: `localhost:${port}` })
  assert.deepEqual([status, body.error, body.message], [502, 'upstream_error', 'localhost cannot be reached'])
  const { result, code, endpoint } = await fixture.outcome()
  assert.deepEqual([result, code, endpoint], ['failed', 'upstream_error', `localhost:${port}`])
})

test("an agent's browser reaches only the hosts that both the agent's resource and the lists of the gateway permit", async (t) => {
  // Shows D2.agent.browser.allowedDomains.
  const upstreamsFile = join(tempFolder(), 'upstreams.json')
  const browser = { allowedDomains: ['localhost'] }
  const agentWeb = { 'default/assistant': { deniedDomains: ['private.localhost'], browser } }
  await writeFile(upstreamsFile, JSON.stringify({ version: 1, servers: {}, bindings: {}, agentWeb }))
  const fixture = await setUpTunnels(t, { config: { upstreamsFile }, web: { allowedDomains: [] } })
  const codeOf = async (host: string, agent = 'assistant') => {
    const sub = `spiffe://plat.local/ns/default/agent/${agent}/session/s1`
    const authorization = `Bearer ${fixture.token({ sub, plat_agent: agent })}`
    const { status, body } = await fixture.ask({ target: `${host}:${fixture.port}`, authorization })
    return status === 200 ? 200 : String(body.message).split(': ')[1]
  }
  assert.equal(await codeOf('localhost'), 200)
  assert.equal(await codeOf('a.private.localhost'), 'Agent.spec.web.deniedDomains names its domain')
  assert.equal(await codeOf('example.com'), 'Agent.spec.browser.allowedDomains does not name its domain')
  assert.equal(await codeOf('localhost', 'other'), 'no list of allowed domains names its domain')
})

test('policies match the canonical host as the tool of plat-egress', async (t) => {
  const fixture = await setUpTunnels(t, { web: { allowedDomains: ['localhost'] } })
  const deny = {
    name: 'no',
    action: 'deny',
    match: { servers: ['plat-egress'], tools: ['secret.localhost'] },
    reason: 'not there',
  }
  await fixture.rules([deny, { name: 'all', action: 'allow', match: { servers: ['plat-egress'] } }])
  for (const target of ['secret.localhost', 'SECRET.localhost', 'secret.localhost.', 's%65cret.localhost']) {
    let body: Readonly<Record<string, unknown>> = {}
    // The file is reloaded within a second.
    while (body.message !== 'not there') {
      const response = await fixture.ask({ target: `${target}:${fixture.port}` })
      body = response.body
      response.socket.destroy()
    }
    assert.equal(body.error, 'policy_denied')
  }
})

test('a target that is not a host and port, and a CONNECT with a body, are refused as requests', async (t) => {
  const fixture = await setUpTunnels(t)
  for (const target of [
    'localhost',
    'localhost:',
    '/path',
    'http://localhost:80/',
    'a@localhost:80',
    'local host:80',
    ':80',
  ]) {
    const { status } = await fixture.ask({ target })
    assert.equal(status, 400, target)
  }
  for (const target of ['localhost:99999', '%zz:80', '.:80']) {
    const { status } = await fixture.ask({ target })
    assert.equal(status, 400, target)
  }
  for (const line of ['Content-Length: 5', 'Transfer-Encoding: chunked', 'Proxy-Authorization: Bearer x']) {
    const { status } = await fixture.ask({ lines: [line] })
    assert.equal(status, 400, line)
  }
  assert.equal(fixture.accepted.length, 0)
})

test('where tokens must be bound, the proxy still takes unbound ones, and none that is bound without its proof', async (t) => {
  // Shows D3.dpop.require.
  const fixture = await setUpTunnels(t, { config: { dpop: { require: true, publicURL: 'https://gateway.example' } } })
  const { status, socket } = await fixture.ask()
  assert.equal(status, 200)
  socket.destroy()
  const cnf = { jkt: fixture.issuer.signer.kid }
  const bound = await fixture.ask({ authorization: `Bearer ${fixture.token({ cnf })}` })
  assert.deepEqual([bound.status, bound.body.error], [407, 'dpop_required'])
  const headers = {
    authorization: `Bearer ${fixture.token({ scope: 'tools:notes' })}`,
    'content-type': 'application/json',
  }
  const called = await fetch(`${fixture.gateway.url}/mcp/notes`, { method: 'POST', headers, body: '{}' })
  assert.equal(called.status, 401)
})

test('while it is off, CONNECT is refused in one line', async (t) => {
  const fixture = await setUpTunnels(t, { config: { egress: { enabled: false } } })
  const { status } = await fixture.ask()
  assert.equal(status, 501)
  assert.equal(await fixture.metric('plat_gateway_egress_requests_total{kind="connect",decision="deny"}'), undefined)
})

test('an answer that is still due on the connection never ends up in a tunnel', async (t) => {
  const fixture = await setUpTunnels(t)
  const slow = 'POST /mcp/notes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n'
  const { socket, status } = await fixture.ask({ early: 'x' })
  assert.equal(status, 200)
  socket.destroy()
  const { connect } = await import('node:net')
  const both = connect(fixture.gateway.port, '127.0.0.1')
  both.on('error', () => {})
  const target = `localhost:${fixture.port}`
  const connectHead = `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Bearer ${fixture.token()}\r\n\r\n`
  both.write(`${slow}Authorization: Bearer ${fixture.token({ scope: 'tools:notes' })}\r\n\r\n{}${connectHead}`)
  let text = ''
  both.on('data', (chunk) => {
    text += chunk
  })
  await once(both, 'close')
  assert.doesNotMatch(text, /^HTTP\/1\.1 200 OK/m)
  assert.equal(fixture.accepted.length, 1)
})
