import assert from 'node:assert/strict'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { generateKeyFiles, openSigner } from '@plat/keys'
import { createAuthority } from '@plat/testkit/authority'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { type BundleFixture, setUp, type Texts } from './testing/fixture.ts'

const ADMIN = 'an-admin-token-of-the-test'

interface Served {
  readonly gateway: GatewayProcess
  /** The folder `configBundle.dir`. */
  readonly dir: string
  /** Builds a bundle of these policies, with further files. */
  bundle(revision: number, policies: string, more?: Texts): Buffer
  push(bytes: Uint8Array, token?: string): Promise<{ status: number; body: Record<string, unknown> }>
  /** Returns whether the tool `read` of server `notes` is allowed. */
  allows(): Promise<boolean>
  metric(name: string): Promise<string | null>
}

const ALLOW = policiesFile([testPolicy({ rules: [{ name: 'all', action: 'allow' }] })])
const DENY = policiesFile([testPolicy({ rules: [{ name: 'none', action: 'deny' }] })])

/** A gateway that reads policies and revocations from bundles. */
async function serve(t: TestContext, configBundle: object): Promise<Served> {
  const g: BundleFixture = await setUp()
  const root = tempFolder()
  const { keyPath, pubPath } = await generateKeyFiles(root)
  const signer = await openSigner(keyPath)
  const dir = path.join(root, 'live')
  const upstream: ScriptedUpstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    env: { PLAT_ADMIN_TOKEN: ADMIN },
    config: {
      policyReloadSeconds: 1,
      policyFile: path.join(dir, 'policies.json'),
      configBundle: { enabled: true, dir, trustedKeyFiles: [pubPath], pollSeconds: 1, ...configBundle },
    },
  })
  t.after(() => gateway.close())
  const issuedAt = Math.floor(Date.now() / 1000)
  return {
    gateway,
    dir,
    bundle: (revision, policies, more = {}) =>
      g.bundle(revision, { 'policies.json': policies, ...more }, { issuedAt }, [signer]),
    async push(bytes, token = ADMIN) {
      const response = await fetch(`${gateway.url}/v1/admin/config:bundle`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/gzip' },
        body: new Uint8Array(bytes),
      })
      return { status: response.status, body: JSON.parse(await response.text()) }
    },
    async allows() {
      const response = await fetch(`${gateway.url}/mcp/notes`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.token}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}',
      })
      return !(await response.text()).includes('"error":"policy_denied"')
    },
    async metric(name) {
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      const line = text.split('\n').find((one) => one.startsWith(name) && /[ {]/.test(one.slice(name.length)))
      return line?.split(' ').at(-1) ?? null
    },
  }
}

test('a gateway decides by a pushed bundle, and an invalid one changes nothing', async (t) => {
  // Shows D3.configBundle.enabled, D3.configBundle.push, D3.endpoint.config.bundle, D3.metric.plat_gateway_config_bundle_revision,
  // D3.metric.plat_gateway_config_bundles_applied_total and D3.metric.plat_gateway_config_bundles_refused_total.
  const served = await serve(t, { push: true })
  const { bundle, push, allows, metric } = served
  assert.equal(await allows(), false)
  assert.equal(await metric('plat_gateway_config_bundle_revision'), '0')
  assert.deepEqual(await push(bundle(7, ALLOW)), { status: 200, body: { issuer: 'ops', revision: 7, applied: true } })
  await until(allows, 'the bundle to allow')
  assert.deepEqual(await push(bundle(7, ALLOW)), { status: 200, body: { issuer: 'ops', revision: 7, applied: false } })
  const refusals = [
    [bundle(6, DENY), 409, 'conflict', /^revision: revision 6 does not follow revision 7/],
    [bundle(8, '{"version":2}'), 400, 'invalid_request', /^content: policies\.json: /],
    [bundle(8, DENY).subarray(0, 200), 400, 'invalid_request', /^malformed: /],
    [(await setUp()).bundle(8, { 'policies.json': DENY }), 403, 'forbidden', /^signature: /],
  ] as const
  for (const [bytes, status, error, message] of refusals) {
    const answer = await push(bytes)
    assert.deepEqual([answer.status, answer.body.error], [status, error], JSON.stringify(answer.body))
    assert.match(String(answer.body.message), message)
  }
  assert.equal((await push(bundle(8, DENY), 'another-token')).status, 401)
  assert.equal(await metric('plat_gateway_config_bundles_applied_total'), '1')
  assert.equal(await metric('plat_gateway_config_bundles_refused_total{reason="revision"}'), '1')
  assert.equal(await metric('plat_gateway_config_bundles_refused_total{reason="signature"}'), '1')
  assert.equal(await allows(), true)
  assert.equal((await push(bundle(8, DENY))).status, 200)
  await until(async () => !(await allows()), 'the bundle to deny')
  assert.equal(await metric('plat_gateway_config_bundle_revision'), '8')
  const applied = (await served.gateway.ledger())
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.bundle !== undefined)
  assert.deepEqual(
    applied.map(({ kind, bundle: revision, issuer, source }) => [kind, revision, issuer, source]),
    [
      ['config', 7, 'ops', 'push'],
      ['config', 8, 'ops', 'push'],
    ],
  )
})

test('without push there is no such endpoint', async (t) => {
  const { push, bundle } = await serve(t, { dropDir: '/nowhere' })
  assert.equal((await push(bundle(1, ALLOW))).status, 404)
})

/** A bundle server behind TLS of a private authority, with configurable responses and a log of its requests. */
async function bundleServer(t: TestContext) {
  const requests: IncomingHttpHeaders[] = []
  let answer: (headers: IncomingHttpHeaders, response: ServerResponse) => void = (_, response) => {
    response.statusCode = 503
    response.end()
  }
  const authority = await createAuthority({ name: 'bundles', now: Date.now() })
  const { pem: cert, privateKey } = await authority.issue({ name: 'server', dnsNames: ['localhost'] })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const server = createServer({ cert, key }, (request, response) => {
    requests.push(request.headers)
    answer(request.headers, response)
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return {
    url: `https://localhost:${port}/bundle.tar.gz`,
    authority: authority.pem,
    requests,
    answers(next: typeof answer) {
      answer = next
    },
  }
}

test('a gateway fetches bundles, sends conditional requests, and recovers when its server comes back', async (t) => {
  // Shows D3.configBundle.pull.url, D3.configBundle.pull.tokenFile, D3.configBundle.pull.caFile, D3.configBundle.pull.maxBackoffSeconds and D3.configBundle.pollSeconds.
  const server = await bundleServer(t)
  const root = tempFolder()
  const tokenFile = path.join(root, 'token')
  await writeFile(tokenFile, 'first\n')
  const caFile = path.join(root, 'ca.pem')
  await writeFile(caFile, server.authority)
  const pull = { url: server.url, tokenFile, caFile, maxBackoffSeconds: 2 }
  const { bundle, allows, metric, gateway } = await serve(t, { pull })
  await until(() => gateway.complaints().some((line) => line.includes('the server responded 503')), 'the first failure')
  assert.equal(server.requests[0]?.authorization, 'Bearer first')
  await writeFile(tokenFile, 'second\n')
  const serving = (tag: string, bytes: Buffer) =>
    server.answers((headers, response) => {
      const isKnown = headers['if-none-match'] === tag
      response.writeHead(isKnown ? 304 : 200, { etag: tag })
      response.end(isKnown ? undefined : bytes)
    })
  serving('"one"', bundle(1, ALLOW))
  await until(allows, 'the bundle to allow')
  await until(() => server.requests.at(-1)?.['if-none-match'] === '"one"', 'the tag of what was answered')
  assert.equal(server.requests.at(-1)?.authorization, 'Bearer second')
  // A refused bundle is fetched and counted once.
  serving('"bad"', bundle(0.5, DENY))
  await until(() => server.requests.at(-1)?.['if-none-match'] === '"bad"', 'the tag of what was answered')
  assert.equal(await metric('plat_gateway_config_bundles_refused_total{reason="malformed"}'), '1')
  serving('"two"', bundle(2, DENY))
  await until(async () => !(await allows()), 'the bundle to deny')
  // Files change one by one, and the revision is counted a moment later.
  await until(async () => (await metric('plat_gateway_config_bundle_revision')) === '2', 'its revision')
})

test('a gateway applies bundles from the drop folder and leaves the folder unchanged', async (t) => {
  // Shows D3.configBundle.dropDir.
  const dropDir = path.join(tempFolder(), 'drop')
  await mkdir(dropDir)
  const { bundle, allows, metric } = await serve(t, { dropDir })
  const whole = bundle(2, ALLOW)
  await writeFile(path.join(dropDir, 'notes.txt'), 'no bundle')
  // Simulates a slow copy.
  await writeFile(path.join(dropDir, '2.tgz'), whole.subarray(0, 300))
  await writeFile(path.join(dropDir, '2.tgz'), whole)
  await until(allows, 'the bundle to allow')
  await writeFile(path.join(dropDir, '1.tar.gz'), bundle(1, DENY))
  await until(
    async () => (await metric('plat_gateway_config_bundles_refused_total{reason="revision"}')) === '1',
    'the older bundle to be refused',
  )
  await writeFile(path.join(dropDir, '.3.tgz'), bundle(3, DENY))
  await rename(path.join(dropDir, '.3.tgz'), path.join(dropDir, '3.tgz'))
  await until(async () => !(await allows()), 'the bundle to deny')
  assert.deepEqual(await readFile(path.join(dropDir, '2.tgz')), whole)
})
