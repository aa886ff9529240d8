import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { json, setUpCluster, status } from './testing/fixture.ts'

const WRITES = ['k8s_scale', 'k8s_restart', 'k8s_delete_pod']
const WEB = { kind: 'Deployment', namespace: 'shop', name: 'web' }

test('a write is only a proposal unless the mode is apply, and only reads the cluster', async (t) => {
  // Shows D3.k8sOps.writes.mode.disabled, D3.k8sOps.writes.mode.proposal.
  // Shows D3.k8sOps.writes.mode.
  const fixture = await setUpCluster(t, {
    answer: (_, response) => json(response, 200, { metadata: { resourceVersion: '7' }, spec: { replicas: 2 } }),
  })
  const result = JSON.parse(String(await fixture.call('k8s_scale', { ...WEB, replicas: 5 })))
  assert.deepEqual(result, {
    proposed: 'scale Deployment shop/web to 5 replicas',
    changed: false,
    now: { replicas: 2, resourceVersion: '7' },
    proposal: {
      method: 'PATCH',
      path: '/apis/apps/v1/namespaces/shop/deployments/web/scale',
      patch: { spec: { replicas: 5 } },
      kubectl: 'kubectl -n shop scale deployment/web --replicas=5',
    },
  })
  await fixture.call('k8s_restart', WEB)
  await fixture.call('k8s_delete_pod', { namespace: 'shop', name: 'web-1' })
  assert.deepEqual(
    fixture.seen.map(({ method, path }) => `${method} ${path}`),
    [
      'GET /apis/apps/v1/namespaces/shop/deployments/web/scale',
      'GET /apis/apps/v1/namespaces/shop/deployments/web',
      'GET /api/v1/namespaces/shop/pods/web-1',
    ],
  )
  assert.deepEqual(toolsOf(fixture).slice(3), WRITES)
  for (const tool of WRITES) assert.equal(fixture.requirements(tool, { ...WEB, replicas: 1 }), null)
  const shut = await setUpCluster(t, { config: { writes: { mode: 'disabled' } } })
  assert.deepEqual(toolsOf(shut), ['k8s_list', 'k8s_get', 'k8s_logs'])
})

function toolsOf({ server }: Pick<Awaited<ReturnType<typeof setUpCluster>>, 'server'>): readonly string[] {
  return server.tools(never()).map(({ name }) => name)
}

/** Tools do not depend on the caller. */
function never(): Parameters<Awaited<ReturnType<typeof setUpCluster>>['server']['tools']>[0] {
  return { identity: Object.create(null), snapshot: Object.create(null) }
}

test('an applied write makes exactly the described change', async (t) => {
  // Shows D3.k8sOps.writes.mode.apply.
  const clock = new TestClock(Date.UTC(2026, 0, 2, 3, 4, 5))
  const fixture = await setUpCluster(t, {
    clock,
    config: { writes: { mode: 'apply' } },
    answer({ path }, response) {
      if (path.endsWith('pods/gone')) status(response, 404, 'pods "gone" not found')
      else json(response, 200, { metadata: { generation: 3 }, spec: { replicas: 5 } })
    },
  })
  const result = await fixture.call('k8s_scale', { ...WEB, replicas: 5 })
  assert.deepEqual(JSON.parse(String(result)), {
    done: 'scale Deployment shop/web to 5 replicas',
    now: { replicas: 5, generation: 3 },
  })
  await fixture.call('k8s_restart', { ...WEB, kind: 'StatefulSet' })
  await fixture.call('k8s_delete_pod', { namespace: 'shop', name: 'web-1' })
  const annotations = { 'kubectl.kubernetes.io/restartedAt': '2026-01-02T03:04:05Z' }
  assert.deepEqual(
    fixture.seen.map(({ method, path, body }) => [method, path, body]),
    [
      ['PATCH', '/apis/apps/v1/namespaces/shop/deployments/web/scale', { spec: { replicas: 5 } }],
      [
        'PATCH',
        '/apis/apps/v1/namespaces/shop/statefulsets/web',
        { spec: { template: { metadata: { annotations } } } },
      ],
      ['DELETE', '/api/v1/namespaces/shop/pods/web-1', null],
    ],
  )
  assert.equal(fixture.seen[0]?.headers['content-type'], 'application/merge-patch+json')
  assert.equal(fixture.seen[0]?.query.fieldManager, 'plat-k8s')
  const gone = await fixture.call('k8s_delete_pod', { namespace: 'shop', name: 'gone' })
  assert.match(String(gone), /^error: the cluster has no such thing/)
})

test('each applied write needs an approval, unless approval is by policy', async (t) => {
  // Shows D3.k8sOps.writes.approval.required, D3.k8sOps.writes.approval.policy.
  // Shows D3.k8sOps.writes.approval.
  const fixture = await setUpCluster(t, { config: { writes: { mode: 'apply' } } })
  assert.deepEqual(fixture.requirements('k8s_scale', { ...WEB, replicas: 0 }), {
    approval: 'each change of the cluster needs an approval (k8sOps.writes.approval)',
    presentedArguments: 'scale Deployment shop/web to 0 replicas',
    holds: [],
  })
  for (const tool of WRITES.slice(1)) {
    const { kind: _, ...pod } = WEB
    assert.match(fixture.requirements(tool, tool === 'k8s_restart' ? WEB : pod)?.presentedArguments ?? '', /shop\/web$/)
  }
  assert.equal(fixture.requirements('k8s_list', { kind: 'Pod' }), null)
  const free = await setUpCluster(t, { config: { writes: { mode: 'apply', approval: 'policy' } } })
  assert.equal(free.requirements('k8s_scale', { ...WEB, replicas: 0 }), null)
})

test('writes are limited to their namespaces and to maxReplicas', async (t) => {
  // Shows D3.k8sOps.writes.namespaces, D3.k8sOps.writes.maxReplicas and D3.default.computed.k8sOps.writes.namespaces.
  const narrow = await setUpCluster(t, {
    config: { namespaces: ['shop', 'bank'], writes: { mode: 'apply', namespaces: ['shop'], maxReplicas: 3 } },
  })
  const scaled = (own: object) => narrow.call('k8s_scale', { ...WEB, replicas: 3, ...own })
  assert.equal(await scaled({ replicas: 4 }), 'policy_denied: k8sOps.writes.maxReplicas is 3')
  const refused = 'policy_denied: k8sOps.writes.namespaces does not name the namespace bank'
  assert.equal(await scaled({ namespace: 'bank' }), refused)
  assert.match(String(await scaled({ namespace: 'vault' })), /^policy_denied: k8sOps.namespaces/)
  assert.deepEqual(narrow.seen, [])
  assert.ok(Array.isArray(await scaled({})))
  const wide = await setUpCluster(t, { config: { namespaces: ['shop'], writes: { mode: 'apply' } } })
  assert.match(
    String(await wide.call('k8s_restart', { ...WEB, namespace: 'bank' })),
    /^policy_denied: k8sOps.namespaces/,
  )
  assert.match(String(await wide.call('k8s_scale', { ...WEB, replicas: 51 })), /maxReplicas is 50/)
  assert.ok(Array.isArray(await wide.call('k8s_restart', WEB)))
})
