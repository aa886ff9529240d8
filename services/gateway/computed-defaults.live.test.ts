import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { keyFiles } from './evidence/audit/testing/keys.ts'
import { setUp as setUpBundles } from './operate/config-bundle/testing/fixture.ts'
import { started, TOKEN } from './testing/started.ts'

/** Longer than the time of an attempt in these tests: an endpoint that responds this late was not waited for. */
const LATE_MS = 60_000

test('files of features without a configured path are named after the ledger', async (t) => {
  // Shows D3.default.computed.revocationsJournalPath, D3.default.computed.evidence.dir and D3.default.computed.configBundle.statePath.
  const [dir, key, bundles] = [tempFolder(), await keyFiles(), await setUpBundles()]
  const at = (name: string) => join(dir, name)
  const trusted = join(tempFolder(), 'trusted.pem')
  await writeFile(trusted, bundles.signer.publicKey.key.export({ type: 'spki', format: 'pem' }))
  const { gateway } = await started(t, {
    auditPath: at('audit.jsonl'),
    auditCheckpointKey: key.uri,
    configBundle: { enabled: true, dir: join(tempFolder(), 'live'), trustedKeyFiles: [trusted], push: true },
  })
  const post = (path: string, type: string, body: string | Uint8Array<ArrayBuffer>) =>
    fetch(`${gateway.adminUrl}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': type },
      body,
    })
  const revoked = await post('/v1/revocations', 'application/json', '{"target":{"agent":"default/mallory"}}')
  assert.equal(revoked.status, 201)
  assert.match(await readFile(at('audit.jsonl.revocations.jsonl'), 'utf8'), /default\/mallory/)
  const { id } = Object(await (await post('/v1/evidence', 'application/json', '{}')).json())
  assert.deepEqual(await readdir(at('audit.jsonl.evidence')), [`${id}.evidence`])
  const bundle = bundles.bundle(7, { 'a.json': '{}' }, { issuedAt: Math.floor(Date.now() / 1000) })
  const pushed = await post('/v1/admin/config:bundle', 'application/gzip', new Uint8Array(bundle))
  assert.equal(pushed.status, 200, await pushed.clone().text())
  assert.equal(JSON.parse(await readFile(at('audit.jsonl.config-bundle.json'), 'utf8')).revision, 7)
})

test('proofs name the public address of the gateway', async (t) => {
  // Shows D3.default.computed.dpop.publicURL.
  const { gateway, issuer } = await started(t, {}, false, { identity: { resourceBaseURL: 'https://gateway.example' } })
  const prover = testProver()
  const token = issuer.token({ cnf: { jkt: prover.jkt } })
  const isRefused = async (url: string) => {
    const response = await fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `DPoP ${token}`,
        dpop: prover.proof(url, token),
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    })
    return (await response.text()).includes('invalid_dpop_proof')
  }
  assert.equal(await isRefused('https://gateway.example/mcp/notes'), false)
  assert.equal(await isRefused('https://elsewhere.example/mcp/notes'), true)
  assert.equal(await isRefused(`${gateway.url}/mcp/notes`), true)
})

interface ModelRequest {
  readonly authorization: string
}

/** A model that responds after a time, and the requests that it received. */
async function model(t: TestContext, delayMs = 0) {
  const requests: ModelRequest[] = []
  const server = createServer((request, response) => {
    requests.push({ authorization: String(request.headers.authorization) })
    const message = { role: 'assistant', content: 'yes' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const body = { id: 'c', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }
    const timer = setTimeout(
      () => response.setHeader('content-type', 'application/json').end(JSON.stringify(body)),
      delayMs,
    )
    response.once('close', () => clearTimeout(timer))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return { requests, url: `http://127.0.0.1:${port}/v1` }
}

/** Sends one request by a route and returns the outcome record. */
async function outcomeOf(t: TestContext, config: object, env: Readonly<Record<string, string>> = {}) {
  const gateway = await startGatewayProcess({ servers: {}, scopes: ['models:r'], config: { ...config }, env })
  t.after(() => gateway.close())
  const response = await fetch(`${gateway.url}/llm/r/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
    body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
  })
  assert.equal(response.status, 200, await response.text())
  const outcomes = async () =>
    (await gateway.ledger()).map((line) => JSON.parse(line).rec).filter(({ kind }) => kind === 'outcome')
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  return (await outcomes())[0]
}

test('one attempt at a model takes at most upstreamTimeoutSeconds', async (t) => {
  // Shows D3.default.computed.modelRouting.attemptTimeoutSeconds.
  const [slow, alive] = [await model(t, LATE_MS), await model(t)]
  const models = { r: { upstream: slow.url, fallbacks: [{ upstream: alive.url }] } }
  const { attempts } = await outcomeOf(t, { models, upstreamTimeoutSeconds: 3 })
  assert.deepEqual(
    attempts.map((one: { endpoint: string; status: number }) => [`${one.endpoint}/v1`, one.status]),
    [
      [slow.url, 0],
      [alive.url, 200],
    ],
  )
})

test('the region of AWS is that of the environment', async (t) => {
  // Shows D3.default.computed.cloudCredentials.aws.region.
  const keys = { AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'secret' }
  const cases = [
    [{ AWS_REGION: 'eu-north-1', AWS_DEFAULT_REGION: 'us-east-1' }, 'eu-north-1'],
    [{ AWS_DEFAULT_REGION: 'us-east-1' }, 'us-east-1'],
  ] as const
  for (const [env, region] of cases) {
    const bedrock = await model(t)
    const models = { r: { provider: 'bedrock', mode: 'openai', upstream: bedrock.url } }
    await outcomeOf(t, { models }, { ...keys, ...env })
    assert.ok(bedrock.requests[0]?.authorization.includes(`/${region}/bedrock/aws4_request`), region)
  }
})
