import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import { type Members, member } from '@plat/kubernetes'
import { parse } from 'yaml'
import type { SandboxSettings } from '../settings.ts'
import { resource } from '../testing/resource.ts'
import { podTemplateOf, volumeProblem } from './pod.ts'
import { claimOf, heldTokenOf, poolOf, sandboxOf, tokenSecret } from './sandbox.ts'

const FIXTURES = path.join(import.meta.dirname, 'fixtures')
/** `PLAT_UPDATE_GOLDEN=1 node --test …` writes what is made now; read the difference before it is committed. */
const UPDATE = process.env.PLAT_UPDATE_GOLDEN === '1'

const settings: SandboxSettings = {
  gatewayUrl: 'http://gateway.example:8080',
  attestationUrl: '',
  gatewayLabels: { app: 'gateway' },
  workspaceSize: '1Gi',
  browserImage: 'example.com/browser:1',
  codeInterpreterImage: 'example.com/code:1',
}

function partsOf(name: string) {
  const { agent, tier, session } = parse(readFileSync(path.join(FIXTURES, `${name}.yaml`), 'utf8'))
  return {
    session: resource('AgentSession', 's1', { agentRef: 'assistant', ...session }),
    agent: resource('Agent', 'assistant', agent).spec,
    tier: resource('TrustTier', 'tier', tier).spec,
    settings,
  }
}

const made = (name: string) => sandboxOf(partsOf(name))

/** The pod's spec, as plain members. */
function podOf(name: string): Members {
  const sandbox: unknown = JSON.parse(JSON.stringify(made(name)))
  assert.ok(isObject(sandbox))
  return member(member(member(sandbox, 'spec'), 'podTemplate'), 'spec')
}

function listOf(object: Members, name: string): readonly Members[] {
  const list = object[name]
  return Array.isArray(list) ? list.filter(isObject) : []
}

function agentOf(name: string): Members {
  const [container] = listOf(podOf(name), 'containers')
  return container ?? {}
}

const variable = (name: string, called: string) => listOf(agentOf(name), 'env').filter((one) => one.name === called)

const scenarios = readdirSync(FIXTURES).flatMap((file) => (file.endsWith('.yaml') ? [file.replace('.yaml', '')] : []))

for (const scenario of scenarios) {
  test(`${scenario} becomes the Sandbox of its golden file`, () => {
    const file = path.join(FIXTURES, `${scenario}.json`)
    const text = `${JSON.stringify(made(scenario), null, 2)}\n`
    if (UPDATE) writeFileSync(file, text)
    assert.equal(text, readFileSync(file, 'utf8'), file)
  })
}

test('the container of the agent is what the Agent says', () => {
  // Shows D2.agent.image, D2.agent.command, D2.agent.args, D2.agent.resources.claims, D2.agent.resources.limits,
  // D2.agent.resources.requests, D2.agent.profile.default.
  const { name, image, command, args, resources } = agentOf('everything')
  assert.deepEqual([name, image, command, args], ['agent', 'example.com/a:1', ['node', 'agent.js'], ['--verbose']])
  assert.deepEqual(resources, {
    claims: [{ name: 'gpu', request: 'one' }],
    limits: { cpu: '2', memory: '1Gi' },
    requests: { cpu: '500m' },
  })
  const plain = podOf('plain')
  assert.deepEqual([listOf(plain, 'containers').length, plain.initContainers], [1, undefined])
  assert.ok(!('command' in agentOf('plain')) && !('resources' in agentOf('plain')))
})

test('variables of the Agent reach the kubelet as they are, and what the operator knows cannot be overridden', () => {
  // Shows D2.agent.env, D2.env.resourceFieldRef.divisor, D2.env.resourceFieldRef.supported, D2.env.fileKeyRef.featureGate,
  // D2.env.configMapKeyRef.optional.
  assert.deepEqual(variable('everything', 'PLAT_SESSION'), [{ name: 'PLAT_SESSION', value: 's1' }])
  // A Sandbox takes a name once: the last one counts.
  assert.deepEqual(variable('everything', 'REGION'), [{ name: 'REGION', value: 'us' }])
  const [where] = variable('everything', 'WHERE')
  assert.equal(where?.value, 's3://$(REGION)/$(PLAT_SESSION)/$$HOME')
  const sources = ['PASSWORD', 'MODE', 'IP', 'CPUS', 'FROM_FILE'].map(
    (name) => variable('everything', name)[0]?.valueFrom,
  )
  assert.deepEqual(sources, [
    { secretKeyRef: { name: 'store', key: 'password', optional: true } },
    { configMapKeyRef: { name: 'settings', key: 'mode', optional: true } },
    { fieldRef: { fieldPath: 'status.podIP', apiVersion: 'v1' } },
    { resourceFieldRef: { resource: 'limits.cpu', containerName: 'agent', divisor: '1m' } },
    { fileKeyRef: { volumeName: 'files', path: 'a/b.env', key: 'K', optional: true } },
  ])
  // The volume that a file comes from is one of the tier's.
  assert.ok(listOf(podOf('everything'), 'volumes').some(({ name }) => name === 'files'))
})

test('a sandbox gets the URL of its model, and never the key', () => {
  // Shows D2.agent.model, D2.model.endpoint.sandboxVariable, D2.model.apiKeySecretRef.neverInSandbox.
  assert.deepEqual(variable('everything', 'PLAT_MODEL_ENDPOINT'), [
    { name: 'PLAT_MODEL_ENDPOINT', value: 'http://gateway.example:8080/llm/team.assistant/v1' },
  ])
  assert.deepEqual(variable('plain', 'PLAT_MODEL_ENDPOINT'), [])
  assert.deepEqual(variable('model-routes', 'PLAT_MODEL_ENDPOINT'), [
    { name: 'PLAT_MODEL_ENDPOINT', value: 'http://gateway.example:8080/llm/v1' },
  ])
  assert.doesNotMatch(JSON.stringify(made('everything')), /llm\.example|api\.key|"second"/)
  const keys = new Set(['llm'])
  const tier = (volume: object) => ({ podDefaults: { volumes: [{ name: 'v', ...volume }] } })
  assert.match(volumeProblem(tier({ secret: { secretName: 'llm' } }), keys) ?? '', /never reaches a sandbox/)
  assert.match(
    volumeProblem(tier({ projected: { sources: [{ secret: { name: 'llm' } }] } }), keys) ?? '',
    /never reaches/,
  )
  assert.equal(volumeProblem(tier({ secret: { secretName: 'other' } }), keys), null)
  assert.match(volumeProblem(tier({ name: 'session' }), keys) ?? '', /is the operator's/)
})

test('a workspace is a volume of the session, of its size and class, where the Agent wants it', () => {
  // Shows D2.agent.workspace.size, D2.agent.workspace.mountPath, D2.agent.workspace.storageClassName.
  const { volumeClaimTemplates } = Object(Object(made('everything')).spec)
  assert.deepEqual(volumeClaimTemplates, [
    {
      metadata: { name: 'workspace' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '10Gi' } },
        storageClassName: 'fast',
      },
    },
  ])
  const mount = (name: string) =>
    listOf(agentOf(name), 'volumeMounts').find((one) => one.name === 'workspace')?.mountPath
  assert.equal(mount('everything'), '/data')
  assert.equal(mount('attested'), '/workspace')
  assert.equal(Object(Object(made('attested')).spec).volumeClaimTemplates[0].spec.storageClassName, undefined)
  assert.equal(mount('plain'), undefined)
})

test('a browser runs beside the agent, its control port on localhost only, its way out the gateway', () => {
  // Shows D2.agent.profile.
  const [browser, another] = listOf(podOf('browser'), 'initContainers')
  assert.deepEqual([browser?.name, browser?.restartPolicy, another], ['browser', 'Always', undefined])
  assert.deepEqual(browser?.env, [
    { name: 'PLAT_BROWSER_LISTEN', value: '127.0.0.1:9222' },
    { name: 'PLAT_BROWSER_PROXY', value: 'http://gateway.example:8080' },
    { name: 'PLAT_TOKEN_FILE', value: '/var/run/plat/session/token' },
    { name: 'PLAT_LIVE_VIEW', value: 'true' },
  ])
  assert.deepEqual(browser?.ports, [{ name: 'live-view', containerPort: 6080, protocol: 'TCP' }])
  assert.equal(Object(Object(made('browser')).spec).service, true)
  const [quiet] = listOf(podOf('attested'), 'initContainers')
  assert.deepEqual([quiet?.ports, Object(Object(made('attested')).spec).service], [undefined, false])
})

test('code runs beside the agent in a workspace of the size that the Agent or the operator names', () => {
  // Shows D2.agent.codeInterpreter.workspaceSize, D2.agent.profile.codeInterpreter.
  const volumeOf = (name: string) => listOf(podOf(name), 'volumes').find((volume) => volume.name === 'workspace')
  assert.deepEqual(volumeOf('code-interpreter')?.emptyDir, { sizeLimit: '1Gi' })
  assert.deepEqual(volumeOf('code-interpreter-with-sizes')?.emptyDir, { sizeLimit: '4Gi' })
  const [server, ...more] = listOf(podOf('code-interpreter'), 'initContainers')
  assert.deepEqual([server?.image, server?.restartPolicy, more], ['example.com/code:1', 'Always', []])
  assert.deepEqual(server?.volumeMounts, [{ name: 'workspace', mountPath: '/workspace' }])
  assert.deepEqual(
    listOf(agentOf('code-interpreter'), 'volumeMounts').map(({ name }) => name),
    ['session', 'workspace'],
  )
})

test('no container may do more than run, and no pod has a token for the API server', () => {
  for (const scenario of scenarios) {
    const pod = podOf(scenario)
    assert.deepEqual([pod.automountServiceAccountToken, member(pod, 'securityContext').runAsNonRoot], [false, true])
    for (const container of [...listOf(pod, 'containers'), ...listOf(pod, 'initContainers')]) {
      assert.deepEqual(container.securityContext, { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })
    }
  }
})

test('an attested session has no token in its pod', () => {
  assert.doesNotMatch(JSON.stringify(podTemplateOf(partsOf('attested'))), /PLAT_TOKEN_FILE|plat-session/)
})

test('a claim, a pool and the Secret of a token are their owners’', () => {
  const { session } = partsOf('plain')
  const owner = (kind: string, name: string, uid: string) => [
    { apiVersion: 'plat.dev/v1alpha1', kind, name, uid, controller: true, blockOwnerDeletion: false },
  ]
  const claim = Object(claimOf(session, 'plat-tier'))
  assert.deepEqual(claim.metadata.ownerReferences, owner('AgentSession', 's1', 'uid-s1'))
  // Variables and volumes of a claim would make its start a cold one.
  assert.deepEqual(Object.keys(claim.spec), ['warmPoolRef', 'lifecycle'])
  const secret = Object(tokenSecret(session, { token: 'token', jti: 'j', refreshAt: 1000 }))
  assert.deepEqual(
    [secret.metadata.name, Buffer.from(secret.data.token, 'base64').toString()],
    ['plat-session-s1', 'token'],
  )
  assert.deepEqual(heldTokenOf(secret), { token: 'token', jti: 'j', refreshAt: 1000 })
  assert.equal(heldTokenOf({ ...secret, metadata: { ...secret.metadata, annotations: {} } }), null)
  const tier = resource('TrustTier', 'tier-1', { warmPool: { template: 'warm', size: 3 } })
  const pool = Object(poolOf(tier, 'team'))
  assert.deepEqual(pool.metadata.ownerReferences, owner('TrustTier', 'tier-1', 'uid-tier-1'))
  assert.deepEqual(pool.spec, { replicas: 3, sandboxTemplateRef: { name: 'warm' } })
})

test('the workspace of a fork begins with a VolumeSnapshot, in a volume that it fits into', () => {
  const claimOf = (restoreSize: string) => {
    const sandbox: unknown = sandboxOf({ ...partsOf('everything'), snapshot: { name: 'plat-fork-s', restoreSize } })
    const [claim] = isObject(sandbox) ? listOf(member(sandbox, 'spec'), 'volumeClaimTemplates') : []
    return member(claim ?? {}, 'spec')
  }
  const { dataSource } = claimOf('')
  assert.deepEqual(dataSource, { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'plat-fork-s' })
  const sizeOf = (restoreSize: string) => member(member(claimOf(restoreSize), 'resources'), 'requests').storage
  assert.deepEqual([sizeOf(''), sizeOf('1Ki'), sizeOf('1Ti')], [sizeOf('garbled'), sizeOf('0'), '1Ti'])
  assert.notEqual(sizeOf('1Ki'), '1Ki')
})
