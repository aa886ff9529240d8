import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { isObject, systemClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { type TestProver, testProver } from '@plat/testkit/dpop'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { freePort, tempFolder } from '@plat/testkit/local'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { randomToken, startTestService, type TestService } from '@plat/testkit/processes/service'
import { snpReport } from '@plat/testkit/tee/snp'
import { boundNonce, type Members, signJws } from '@plat/tokens'

/** URL of the gateway for agents. */
const GATEWAY = 'https://gateway.example'
const MEASUREMENT = 'ab'.repeat(48)
const TEAM = 'namespaces/team'
const SESSION = `/apis/plat.dev/v1alpha1/${TEAM}/agentsessions/s1`
const running = { phase: 'Running', sandboxRef: { name: 'warm-1', uid: 'uid-sandbox' } }

const api = new KubernetesApiServer()
const serviceToken = randomToken()
let vendor: Issued
let bootstrapUrl = ''
let broker: TestIdentity
let attestation: TestService
let gateway: GatewayProcess
let upstream: ScriptedUpstream

before(async () => {
  const now = systemClock.now()
  vendor = await createAuthority({ name: 'ARK', key: 'RSA', now })
  upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  await api.start()
  attestedSession()
  const dir = tempFolder()
  writeFileSync(path.join(dir, 'amd.pem'), vendor.pem)
  writeFileSync(path.join(dir, 'token'), 'of-the-broker')
  bootstrapUrl = `http://127.0.0.1:${await freePort()}`
  broker = await startTestIdentity([
    ...['-attested-tiers', 'tier-2', '-identity-checks', 'tee', '-tee-measurements', `sev-snp:${MEASUREMENT}`],
    ...['-tee-snp-roots', path.join(dir, 'amd.pem'), '-bootstrap-listen', bootstrapUrl.slice('http://'.length)],
    ...['-kubernetes-api', api.url, '-kubernetes-ca-file', '', '-kubernetes-token-file', path.join(dir, 'token')],
  ])
  attestation = await startTestService('attestation', {
    env: { PLAT_ATTESTATION_TOKEN: serviceToken, PLAT_BROKER_TOKEN: broker.brokerToken },
    flags: ['-broker-url', broker.url],
  })
  gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    config: {
      identity: { jwksURL: `${broker.url}/.well-known/jwks.json` },
      dpop: { publicURL: GATEWAY },
    },
  })
})

after(async () => {
  await gateway?.close()
  await attestation?.stop()
  await broker?.stop()
  await upstream?.close()
  await api.stop()
})

/** A warm pod that was adopted for a session of an attested tier. */
function attestedSession(): void {
  const owned = (apiVersion: string, kind: string, name: string, uid: string) => ({
    ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
  })
  const sandbox = owned('agents.x-k8s.io/v1beta1', 'Sandbox', 'warm-1', 'uid-sandbox')
  const claim = owned('extensions.agents.x-k8s.io/v1beta1', 'SandboxClaim', 'claim-1', 'uid-claim')
  const session = owned('plat.dev/v1alpha1', 'AgentSession', 's1', 'uid-session')
  api.put(`/api/v1/${TEAM}/pods/warm-1`, { metadata: { uid: 'uid-pod', ...sandbox }, status: { phase: 'Running' } })
  api.put(`/apis/agents.x-k8s.io/v1beta1/${TEAM}/sandboxes/warm-1`, { metadata: { uid: 'uid-sandbox', ...claim } })
  api.put(`/apis/extensions.agents.x-k8s.io/v1beta1/${TEAM}/sandboxclaims/claim-1`, {
    metadata: { uid: 'uid-claim', ...session },
    status: { sandbox: { name: 'warm-1' } },
  })
  api.put(SESSION, {
    metadata: { uid: 'uid-session' },
    spec: { agentRef: 'assistant', user: 'ada', scopes: ['tools:notes'] },
    status: running,
  })
  api.put(`/apis/plat.dev/v1alpha1/${TEAM}/agents/assistant`, { spec: { tier: 'tier-2' } })
  api.put('/apis/plat.dev/v1alpha1/trusttiers/tier-2', { spec: { attested: true, isolation: 'tee' } })
  const podClaims = {
    'authentication.kubernetes.io/pod-name': ['warm-1'],
    'authentication.kubernetes.io/pod-uid': ['uid-pod'],
  }
  api.review = {
    authenticated: true,
    audiences: ['plat-bootstrap'],
    user: { username: 'system:serviceaccount:team:runner', extra: podClaims },
  }
}

async function post(url: string, body: object, headers: Readonly<Record<string, string>>) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } }
  const response = await fetch(url, { ...init, body: JSON.stringify(body) })
  const answer: unknown = await response.json()
  assert.ok(isObject(answer))
  return { status: response.status, body: answer }
}

/** The bootstrap request of a warm pod. */
async function bootstrap(): Promise<Members> {
  const podToken = signJws(ephemeralSigner(), {}, { exp: Math.floor(systemClock.now() / 1000) + 600 })
  const { status, body } = await post(`${bootstrapUrl}/v1/bootstrap`, {}, { authorization: `Bearer ${podToken}` })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

/** Redeems a release as a machine does. */
async function redeem(releaseId: string, prover: TestProver, measurement = MEASUREMENT) {
  const ask = (where: string, body: object) =>
    post(attestation.url + where, body, { dpop: prover.proof(attestation.url + where) })
  const { nonce, salt } = (await ask('/v1/challenge', { releaseId, check: 'tee' })).body
  assert.equal(nonce, boundNonce(String(salt), prover.jkt))
  const now = systemClock.now()
  const certificate = { notAfter: now + 3_600_000 }
  const { report, x5c } = await snpReport({ by: vendor, nonce: String(nonce), measurement, now, certificate })
  const evidence = { kind: 'sev-snp', report: report.toString('base64'), certificate: x5c }
  return ask('/v1/redeem', { releaseId, proof: { check: 'tee', nonce, evidence } })
}

async function call(token: unknown, prover: TestProver, scheme: 'Bearer' | 'DPoP') {
  return fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `${scheme} ${token}`,
      ...(scheme === 'DPoP' && { dpop: prover.proof(`${GATEWAY}/mcp/notes`, String(token)) }),
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}',
  })
}

test('a session of an attested tier gets its token from the attestation service, for evidence, and nowhere else', async () => {
  // Shows D1.bootstrap.attestedGetsNoToken.
  const session = { namespace: 'team', agent: 'assistant', session: 's1', tier: 'tier-2', scopes: ['tools:notes'] }
  const asOperator = { authorization: `Bearer ${broker.brokerToken}` }
  const minted = await post(`${broker.url}/v1/token`, session, asOperator)
  assert.deepEqual([minted.status, minted.body], [403, { error: 'a proof is required' }])
  const release = { session, checks: ['tee'], digests: [MEASUREMENT], isolation: 'tee' }
  const made = await post(`${attestation.url}/v1/releases`, release, { authorization: `Bearer ${serviceToken}` })
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const env = { PLAT_ATTESTATION_URL: attestation.url, PLAT_RELEASE_ID: made.body.releaseId }
  api.put(SESSION, { ...api.get(SESSION), status: { ...running, env } })
  const known = await bootstrap()
  assert.deepEqual([known.attested, known.session, 'token' in known], [true, 's1', false])
  assert.ok(isObject(known.env) && known.env.PLAT_RELEASE_ID === made.body.releaseId)
  const releaseId = String(known.env.PLAT_RELEASE_ID)
  const prover = testProver()
  const other = await redeem(releaseId, prover, 'ef'.repeat(48))
  assert.deepEqual([other.status, other.body.error], [403, 'evidence_refused'])
  const { status, body } = await redeem(releaseId, prover)
  assert.equal(status, 200, JSON.stringify(body))
  const called = await call(body.token, prover, 'DPoP')
  assert.equal(called.status, 200, (await called.text()) + called.headers.get('www-authenticate'))
  assert.equal((await call(body.token, prover, 'Bearer')).status, 401)
  assert.equal((await call(body.token, testProver(), 'DPoP')).status, 401)
})
