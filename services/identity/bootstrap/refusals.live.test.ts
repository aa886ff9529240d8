import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BROKER_TOKEN } from '../testing/broker.ts'
import {
  AGENT,
  addSpec,
  type Change,
  CLAIM,
  deleting,
  ownedBy,
  POD,
  phase,
  pooled,
  SANDBOX,
  SESSION,
  setMetadata,
  setSpec,
  setStatus,
  TIER,
} from './testing/cluster.ts'
import { setUp } from './testing/pods.ts'

/** An owner reference without control. */
const uncontrolled = setMetadata({
  ownerReferences: [{ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 'warm-1', uid: 'uid-sandbox' }],
})

/** Objects that disagree, and the refusal. */
const changes: readonly (readonly [name: string, where: string, change: Change, refusal: string])[] = [
  ['the pod was made anew', POD, setMetadata({ uid: 'another' }), '403 access_denied'],
  ['the pod is being deleted', POD, deleting, '403 access_denied'],
  ['the pod has ended', POD, setStatus({ phase: 'Failed' }), '403 access_denied'],
  ['the pod is of no Sandbox', POD, setMetadata({ ownerReferences: [] }), '403 access_denied'],
  ['the pod names a Sandbox that does not control it', POD, uncontrolled, '403 access_denied'],
  [
    'the pod is of a Sandbox of another group',
    POD,
    setMetadata(ownedBy('evil.example/v1', 'Sandbox', 'warm-1', 'uid-sandbox')),
    '403 access_denied',
  ],
  ['the Sandbox is another one', SANDBOX, setMetadata({ uid: 'another' }), '403 access_denied'],
  [
    'the Sandbox has another pod',
    SANDBOX,
    setMetadata({ annotations: { 'agents.x-k8s.io/pod-name': 'warm-9' } }),
    '403 access_denied',
  ],
  [
    'the Sandbox is of something else',
    SANDBOX,
    setMetadata(ownedBy('apps/v1', 'Deployment', 'd', 'uid-d')),
    '403 access_denied',
  ],
  ['the Sandbox is being deleted', SANDBOX, deleting, '410 session_gone'],
  ['the claim is another one', CLAIM, setMetadata({ uid: 'another' }), '403 access_denied'],
  ['the claim has another Sandbox', CLAIM, setStatus({ sandbox: { name: 'w' } }), '403 access_denied'],
  ['the claim is of no session', CLAIM, setMetadata({ ownerReferences: undefined }), '403 access_denied'],
  [
    'the claim is of a session of another group',
    CLAIM,
    setMetadata(ownedBy('evil.example/v1', 'AgentSession', 's1', 'uid-session')),
    '403 access_denied',
  ],
  [
    'the claim is of another kind',
    CLAIM,
    setMetadata(ownedBy('plat.dev/v1alpha1', 'Agent', 's1', 'uid-session')),
    '403 access_denied',
  ],
  ['the session is another one', SESSION, setMetadata({ uid: 'another' }), '403 access_denied'],
  [
    'the session has another Sandbox',
    SESSION,
    setStatus({ phase: 'Running', sandboxRef: { name: 'warm-1', uid: 'another' } }),
    '403 access_denied',
  ],
  ['the session has a value that a token cannot carry', SESSION, addSpec({ scopes: [''] }), '403 access_denied'],
  ['the session is revoked', SESSION, phase('Revoked'), '403 session_revoked'],
  ['the session is suspended', SESSION, phase('Suspended'), '409 session_suspended'],
  ['the session is to be suspended', SESSION, addSpec({ suspend: true }), '409 session_suspended'],
  ['the session has succeeded', SESSION, phase('Succeeded'), '410 session_gone'],
  ['the session has failed', SESSION, phase('Failed'), '410 session_gone'],
  ['the session has expired', SESSION, phase('Expired'), '410 session_gone'],
  ['the session is cancelled', SESSION, phase('Cancelled'), '410 session_gone'],
  ['the session is being deleted', SESSION, deleting, '410 session_gone'],
  ['the pool still owns the Sandbox', SANDBOX, pooled, '425 not_adopted'],
  ['the Sandbox has no owner', SANDBOX, setMetadata({ ownerReferences: [] }), '425 not_adopted'],
  ['the claim has recorded no Sandbox', CLAIM, setStatus({}), '425 not_adopted'],
  ['the session is pending', SESSION, phase('Pending'), '425 not_prepared'],
  ['the session is preparing', SESSION, phase('Preparing'), '425 not_prepared'],
  ['the session has an unknown phase', SESSION, phase('Dancing'), '425 not_prepared'],
  ['the session has recorded no Sandbox', SESSION, setStatus({ phase: 'Running' }), '425 not_prepared'],
  ['the session names no Agent', SESSION, addSpec({ agentRef: '' }), '425 not_prepared'],
  ['the Agent names no tier', AGENT, setSpec({}), '425 not_prepared'],
  [
    'the taints of the parent are not recorded',
    SESSION,
    addSpec({ fork: { parent: 'p', root: 'p', inheritTaints: true } }),
    '425 not_prepared',
  ],
]

for (const [name, where, change, refusal] of changes) {
  test(`bootstrap: ${name}: ${refusal}`, async (t) => {
    // Shows D1.error.bootstrap.403.access_denied. Shows D1.error.bootstrap.403.session_revoked.
    // Shows D1.error.bootstrap.409.session_suspended. Shows D1.error.bootstrap.410.session_gone.
    // Shows D1.error.bootstrap.425.not_adopted. Shows D1.error.bootstrap.425.not_prepared.
    const { server, refused } = await setUp(t)
    server.change(where, change)
    assert.equal(await refused(), refusal)
    assert.equal(server.at(SESSION).status?.podRef, undefined)
  })
}

const missing: readonly (readonly [string, string])[] = [
  [POD, '403 access_denied'],
  [SANDBOX, '403 access_denied'],
  [CLAIM, '403 access_denied'],
  [SESSION, '410 session_gone'],
  [AGENT, '425 not_prepared'],
  [TIER, '425 not_prepared'],
]

test('a missing object is refused by its kind', async (t) => {
  const { server, refused } = await setUp(t)
  for (const [where, refusal] of missing) {
    const object = server.at(where)
    server.objects.delete(where)
    assert.equal(await refused(), refusal, where)
    server.objects.set(where, object)
  }
})

test('a failing API server gives 503 at every step, with Retry-After', async (t) => {
  // Shows D1.error.bootstrap.503.backend.
  // Shows D1.error.bootstrap.503.temporarily_unavailable.
  const { server, ask } = await setUp(t)
  for (const request of [
    /tokenreviews/,
    /pods/,
    /sandboxes/,
    /sandboxclaims/,
    /GET.*agentsessions/,
    /agents\//,
    /trusttiers/,
    /PATCH/,
  ]) {
    for (const status of [500, 403]) {
      server.faults.push({ request, status })
      const { status: responseStatus, headers, body } = await ask()
      assert.equal(`${responseStatus} ${body.error}`, '503 temporarily_unavailable', String(request))
      assert.equal(headers.get('retry-after'), '1')
      server.faults.pop()
    }
  }
})

test('an invalid token, or one unknown to the API server, gets 401 with a challenge', async (t) => {
  // Shows D1.error.bootstrap.401.invalid_token.
  const { server, ask } = await setUp(t)
  for (const authorization of [null, 'Basic YTpi', 'Bearer a.b', `Bearer ${BROKER_TOKEN}`]) {
    const { status, headers, body } = await ask('', authorization)
    assert.equal(`${status} ${body.error}`, '401 invalid_token')
    assert.equal(headers.get('www-authenticate'), 'Bearer realm="plat-identity", error="invalid_token"')
  }
  // None of them reached the API server.
  assert.deepEqual(server.seen, [])
  const known = server.user
  const unbound = { username: 'system:serviceaccount:team:runner', extra: {} }
  for (const user of [null, unbound, { username: 'system:admin', extra: known?.extra ?? {} }]) {
    server.user = user
    assert.equal((await ask()).status, 401)
  }
})

test('a wait that is not a number of seconds is 400, without a request to the API server', async (t) => {
  // Shows D1.error.bootstrap.400.invalid_request.
  const { server, ask } = await setUp(t)
  for (const query of ['?wait=-1', '?wait=abc', '?wait=1e9', '?wait=1.5', '?wait=', '?wait=1&wait=2', '?wait=%201']) {
    const { status, body } = await ask(query)
    assert.equal(`${status} ${body.error}`, '400 invalid_request', query)
  }
  assert.deepEqual(server.seen, [])
})
