import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type ApiServer, startApiServer } from './api-server.ts'
import { buildBinaries } from './binaries.ts'
import { type ClusterBroker, startBroker } from './broker.ts'
import { definitions } from './definitions.ts'
import { WarmPod, type WarmPodOptions } from './warm-pod.ts'

let server: ApiServer
let broker: ClusterBroker

before(async () => {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  server = await startApiServer(binaries)
  for (const definition of definitions(binaries.crds)) {
    const { status, body } = await server.ask(
      'POST',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      definition,
    )
    assert.equal(status, 201, JSON.stringify(body))
  }
  for (const where of [
    'plat.dev/v1alpha1/agentsessions',
    'plat.dev/v1alpha1/trusttiers',
    'extensions.agents.x-k8s.io/v1beta1/sandboxclaims',
  ]) {
    while ((await server.ask('GET', `/apis/${where}`)).status !== 200)
      await new Promise((resolve) => setTimeout(resolve, 50))
  }
  broker = await startBroker(server)
})

after(async () => {
  await broker?.stop()
  await server?.stop()
})

async function warmPod(namespace: string, options: WarmPodOptions = {}): Promise<WarmPod> {
  const pod = new WarmPod(server, namespace)
  await pod.create(options)
  return pod
}

async function ask(token: string, wait = 0): Promise<{ outcome: string; body: Readonly<Record<string, unknown>> }> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${broker.bootstrapUrl}/v1/bootstrap?wait=${wait}`, { method: 'POST', headers })
  const body = Object(await response.json())
  return { outcome: `${response.status} ${body.error ?? body.session}`, body }
}

test('on a real cluster a pod that is adopted and prepared learns its session, with the rights that the broker has', async () => {
  const pod = await warmPod('adopted')
  await pod.adopt({ phase: 'Running' })
  const { outcome, body } = await ask(await pod.token())
  assert.equal(outcome, '200 s1')
  assert.equal(body.spiffeId, 'spiffe://plat.local/ns/adopted/agent/assistant/session/s1')
  const { status } = await pod.session()
  assert.deepEqual(Object(status).podRef, { name: 'warm', uid: pod.podUid })
  assert.equal(Object(status).jti, body.jti)
  // The rotated token refreshes the session.
  assert.equal((await ask(await pod.token())).outcome, '200 s1')
})

test('on a real cluster a pod that waits is answered when it is adopted and its session runs', async () => {
  const pod = await warmPod('waiting')
  const token = await pod.token()
  assert.equal((await ask(token)).outcome, '425 not_adopted')
  const answer = ask(token, 20)
  await pod.adopt({ phase: 'Pending' })
  assert.equal((await ask(await pod.token())).outcome, '425 not_prepared')
  // Its newest long-poll is the one that waits.
  const newest = ask(token, 20)
  await pod.patch('session', { status: { phase: 'Running' } })
  assert.equal((await newest).outcome, '200 s1')
  await answer
})

test('on a real cluster a token of another audience is refused', async () => {
  const pod = await warmPod('audience')
  await pod.adopt({ phase: 'Running' })
  for (const audience of ['plat-identity', 'https://kubernetes.default.svc']) {
    assert.equal((await ask(await pod.token(audience))).outcome, '401 invalid_token', audience)
  }
})

test('on a real cluster the token of a deleted pod is refused while the API server still authenticates it', async () => {
  const pod = await warmPod('deleted')
  await pod.adopt({ phase: 'Running' })
  const token = await pod.token()
  assert.equal((await ask(token)).outcome, '200 s1')
  await pod.deletePod()
  assert.equal((await ask(token)).outcome, '403 access_denied')
})

test('on a real cluster a pod that was made anew takes the session over, and the token of the old one is dead', async () => {
  const pod = await warmPod('anew')
  await pod.adopt({ phase: 'Running' })
  const old = await pod.token()
  assert.equal((await ask(old)).outcome, '200 s1')
  await pod.deletePod()
  await pod.createPod()
  assert.equal((await ask(old)).outcome, '403 access_denied')
  assert.equal((await ask(await pod.token())).outcome, '200 s1')
  assert.deepEqual(Object((await pod.session()).status).podRef, { name: 'warm', uid: pod.podUid })
})

test('on a real cluster variables come from the pod, and from a Secret only once the broker may read it', async () => {
  const env = [
    { name: 'WHERE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
    { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'store', key: 'password' } } },
  ]
  const pod = await warmPod('variables', { env })
  await pod.putSecret('store', { password: 'opensesame' })
  await pod.adopt({ phase: 'Running' })
  const first = await ask(await pod.token())
  assert.equal(first.outcome, '503 temporarily_unavailable')
  assert.match(String(first.body.error_description), /may not read what the variable PASSWORD/)
  await pod.shareSecret('store')
  // The API server's own view of its rights follows in a moment.
  for (;;) {
    const { outcome, body } = await ask(await pod.token())
    if (outcome === '503 temporarily_unavailable') continue
    assert.equal(outcome, '200 s1')
    const { WHERE, PASSWORD } = Object(body.env)
    assert.deepEqual([WHERE, PASSWORD], ['variables', 'opensesame'])
    return
  }
})

test('on a real cluster an attested session gets no token, and a revoked one nothing', async () => {
  const pod = await warmPod('attested', { attested: true })
  await pod.adopt({ phase: 'Running' })
  const { outcome, body } = await ask(await pod.token())
  assert.equal(outcome, '200 s1')
  assert.ok(body.attested === true && !('token' in body))
  await pod.patch('session', { status: { phase: 'Revoked' } })
  assert.equal((await ask(await pod.token())).outcome, '403 session_revoked')
})

test('on a real cluster who a session acts for cannot be changed, and it can be suspended', async () => {
  const pod = await warmPod('fixed')
  await pod.adopt({ phase: 'Running' })
  const { status } = await pod.tryPatchSession({ spec: { user: 'root@example.com' } })
  assert.equal(status, 422)
  await pod.patch('session', { spec: { suspend: true } })
  assert.equal((await ask(await pod.token())).outcome, '409 session_suspended')
})
