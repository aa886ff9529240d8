import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import type { Resource } from '@plat/resources'
import { type StdioPlace, stdioCertificateOf, stdioNameOf, stdioTokenOf } from './place.ts'
import { renderWorkloads } from './workloads.ts'

const PLACE: StdioPlace = { key: Buffer.alloc(32, 7), bridgeImage: 'plat:1', gatewayLabels: { app: 'gateway' } }
const STDIO = {
  image: 'files:1',
  command: 'server',
  env: [
    { name: 'NODE_OPTIONS', value: '--inspect' },
    { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
  ],
}

function serverOf(stdio: object = {}, name = 'files'): Resource<'MCPServer'> {
  return {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'MCPServer',
    metadata: {
      ...{ name, namespace: 'team', uid: 'u', generation: 1 },
      ...{ resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    },
    spec: { stdio: { ...STDIO, ...stdio } },
  }
}

const secretsWith = (value: string) => ({ texts: new Map([['team/s/k', value]]), withheld: new Map() })

function deploymentOf(server: Resource<'MCPServer'>, value = 'hunter2', place = PLACE) {
  const { byKey, refused } = renderWorkloads([server], { place, home: 'plat-system', secrets: secretsWith(value) })
  assert.deepEqual(refused, [])
  const deployment = byKey.get('team/files')?.objects.find(({ kind }) => kind === 'Deployment')
  const { template } = Object(Object(deployment).spec)
  return { template, digest: template.metadata.annotations['plat.dev/stdio-digest'] }
}

/** Every object within a value. */
function* objectsIn(value: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (isObject(value)) yield value
  if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) yield* objectsIn(one)
}

test('a new value of a Secret, a new key of the operator and another program start a new pod, and nothing else does', () => {
  const { digest } = deploymentOf(serverOf())
  assert.equal(deploymentOf(serverOf()).digest, digest)
  assert.equal(deploymentOf(serverOf({ image: 'files:2' })).digest, digest, 'the image changes the template itself')
  const changed = [
    deploymentOf(serverOf(), 'hunter3'),
    deploymentOf(serverOf(), 'hunter2', { ...PLACE, key: Buffer.alloc(32, 8) }),
    deploymentOf(serverOf({ args: ['-v'] })),
    deploymentOf(serverOf({ perSession: false })),
  ]
  assert.equal(new Set([digest, ...changed.map((one) => one.digest)]).size, 5)
})

test('the pod has no privileges, and no container of it has more than it needs', () => {
  // Shows D2.server.stdio.cluster.
  const { spec } = deploymentOf(serverOf()).template
  assert.equal(spec.automountServiceAccountToken, false)
  assert.deepEqual(spec.securityContext, {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    fsGroup: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  for (const container of [...spec.initContainers, ...spec.containers]) {
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    assert.ok(container.resources.limits.memory !== undefined)
  }
  const forbidden = ['hostPath', 'hostNetwork', 'hostPID', 'hostIPC', 'hostPort']
  for (const object of objectsIn(spec)) for (const name of forbidden) assert.ok(!(name in object), name)
})

test('variables of the program do not configure the bridge', () => {
  const [container] = deploymentOf(serverOf()).template.spec.containers
  const env = new Map(container.env.map((one: { name: string; value?: string }) => [one.name, one.value]))
  assert.deepEqual([...env.keys()], ['HOME', 'NODE_OPTIONS', 'LD_PRELOAD', 'PLAT_STDIO_SECRET_KEY'])
  assert.deepEqual([env.get('NODE_OPTIONS'), env.get('LD_PRELOAD')], ['', ''])
})

test('each server has its own token and certificate, which only the key of the operator determines', () => {
  const [one, other] = [serverOf(), serverOf({}, 'other')]
  const again = serverOf({ args: ['x'] })
  assert.equal(stdioTokenOf(PLACE, one), stdioTokenOf(PLACE, again))
  assert.deepEqual(stdioCertificateOf(PLACE, one), stdioCertificateOf(PLACE, again))
  assert.notEqual(stdioTokenOf(PLACE, one), stdioTokenOf(PLACE, other))
  const { certificate, privateKey } = stdioCertificateOf(PLACE, other)
  assert.notEqual(privateKey, stdioCertificateOf(PLACE, one).privateKey)
  assert.notEqual(certificate, stdioCertificateOf(PLACE, one).certificate)
  assert.equal(new X509Certificate(certificate).checkHost('plat-stdio-files.team.svc'), undefined)
  const key = Buffer.alloc(32, 9)
  assert.notEqual(stdioTokenOf({ key }, one), stdioTokenOf(PLACE, one))
  const [mine, replaced] = [stdioCertificateOf(PLACE, one), stdioCertificateOf({ key }, one)]
  assert.notEqual(replaced.certificate, mine.certificate)
  assert.notEqual(replaced.privateKey, mine.privateKey)
})

test('names of objects are those of Services, and no two servers have the same', () => {
  const names = [
    'files',
    'a'.repeat(52),
    'a'.repeat(53),
    'a'.repeat(63),
    `${'a'.repeat(60)}-b`,
    `${'a'.repeat(60)}-c`,
    'a.b',
    'a-b',
  ]
  const made = names.map((name) => stdioNameOf({ metadata: { name, namespace: 'team' } }))
  for (const name of made) assert.match(name, /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])$/)
  assert.equal(new Set(made).size, names.length)
  assert.equal(made[0], 'plat-stdio-files')
})

test('a value that no variable can have is refused with its field', () => {
  const refusedFor = (secrets: Parameters<typeof renderWorkloads>[1]['secrets']) => {
    const { byKey, refused } = renderWorkloads([serverOf()], { place: PLACE, home: 'plat-system', secrets })
    assert.equal(byKey.get('team/files'), null)
    return refused.join().replace('MCPServer team/files stdio.env[1].valueFrom.secretKeyRef: ', '')
  }
  assert.equal(
    refusedFor(secretsWith('a\0b')),
    'Secret team/s/k contains the character NUL: the server is not started with it',
  )
  assert.equal(refusedFor(secretsWith('x'.repeat(200_000))), 'Secret team/s/k has 200000 bytes, more than 130048')
  const withheld = new Map([['team/s/k', 'is not read yet']])
  assert.match(refusedFor({ texts: new Map(), withheld }), /^Secret team\/s\/k is not read yet: /)
})
