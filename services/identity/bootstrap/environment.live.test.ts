import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { AGENT, POD, SECRET, SESSION, setSpec, setStatus } from './testing/cluster.ts'
import { setUp } from './testing/pods.ts'

/** A cluster whose Agent sets these variables. */
async function withVariables(t: TestContext, env: readonly object[]) {
  const all = await setUp(t)
  all.server.change(AGENT, setSpec({ tier: 'tier-1', env }))
  const variables = async () => {
    const { status, body } = await all.ask()
    assert.equal(status, 200, JSON.stringify(body))
    return Object.fromEntries(Object.entries(Object(body.env)).filter(([name]) => !name.startsWith('PLAT_')))
  }
  return { ...all, variables }
}

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
const secret = (name: string, more: object = {}) => ({
  name,
  valueFrom: { secretKeyRef: { name: 'store', key: 'password', ...more } },
})
const configMap = (name: string, more: object = {}) => ({
  name,
  valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour', ...more } },
})

test('variables are resolved from the fields of the requesting pod', async (t) => {
  // Shows D2.env.fieldRef.supported.
  const { server, variables } = await withVariables(t, [
    field('NAME', 'metadata.name'),
    field('NAMESPACE', 'metadata.namespace'),
    field('TEAM', "metadata.labels['example.com/team']"),
    field('NOTE', "metadata.annotations['note']"),
    field('NOTHING', "metadata.labels['absent']"),
    field('NODE', 'spec.nodeName'),
    field('ACCOUNT', 'spec.serviceAccountName'),
    field('HOST', 'status.hostIP'),
    field('IP', 'status.podIP'),
    field('IPS', 'status.podIPs'),
    { name: 'WHERE', value: '$(NAME)@$(NODE)' },
  ])
  server.change(POD, (pod) => {
    Object.assign(pod.metadata, {
      namespace: 'team',
      labels: { 'example.com/team': 'red' },
      annotations: { note: 'n' },
    })
    pod.spec = { nodeName: 'node-1', serviceAccountName: 'runner' }
    const podIPs = [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }]
    pod.status = { phase: 'Running', hostIP: '192.0.2.1', podIP: '10.0.0.1', podIPs }
  })
  assert.deepEqual(await variables(), {
    NAME: 'warm-1',
    NAMESPACE: 'team',
    TEAM: 'red',
    NOTE: 'n',
    NOTHING: '',
    NODE: 'node-1',
    ACCOUNT: 'runner',
    HOST: '192.0.2.1',
    IP: '10.0.0.1',
    IPS: '10.0.0.1,fd00::1',
    WHERE: 'warm-1@node-1',
  })
})

test('references to earlier variables are expanded in a value, and `$$` is one dollar sign', async (t) => {
  // Shows D2.env.value, D2.env.value.references, D2.env.value.escape.
  const { variables } = await withVariables(t, [
    { name: 'EMPTY' },
    { name: 'EARLY', value: '$(LATE)' },
    { name: 'LATE', value: 'l' },
    { name: 'ALL', value: '[$(LATE)$(EMPTY)] $$(LATE) $$$(LATE) $(UNSET) $LATE $' },
  ])
  const ALL = '[l] $(LATE) $l $(UNSET) $LATE $'
  assert.deepEqual(await variables(), { EMPTY: '', EARLY: '$(LATE)', LATE: 'l', ALL })
})

test('variables come from Secrets and ConfigMaps of the namespace, each read once', async (t) => {
  const { server, variables } = await withVariables(t, [
    secret('PASSWORD'),
    configMap('COLOUR'),
    configMap('SHAPE', { key: 'shape' }),
    secret('ABSENT', { key: 'absent', optional: true }),
    configMap('GONE', { name: 'gone', optional: true }),
    { name: 'BOTH', value: '$(COLOUR) $(ABSENT)' },
  ])
  server.put('/api/v1/namespaces/team/configmaps/settings', 'uid-settings', { data: { colour: 'red', shape: '$(X)' } })
  assert.deepEqual(await variables(), {
    PASSWORD: 'opensesame',
    COLOUR: 'red',
    SHAPE: '$(X)',
    BOTH: 'red $(ABSENT)',
  })
  const read = server.seen.filter((line) => /secrets|configmaps/.test(line))
  assert.equal(new Set(read).size, read.length)
})

test('a pod waits for what its variables come from, and nothing is bound meanwhile', async (t) => {
  const { server, refused, variables } = await withVariables(t, [configMap('COLOUR')])
  assert.equal(await refused(), '425 not_prepared')
  assert.equal(server.at(SESSION).status?.podRef, undefined)
  server.put('/api/v1/namespaces/team/configmaps/settings', 'uid-settings', { data: { colour: 'red' } })
  assert.deepEqual(await variables(), { COLOUR: 'red' })
})

test('an object that the broker may not read gives 503, with the name of the variable', async (t) => {
  const { server, ask } = await withVariables(t, [secret('PASSWORD')])
  server.faults.push({ request: /secrets/, status: 403 })
  const { status, body } = await ask()
  assert.equal(`${status} ${body.error}`, '503 temporarily_unavailable')
  assert.match(String(body.error_description), /may not read .* PASSWORD/)
  server.faults[0] = { request: /secrets/, status: 500 }
  assert.equal((await ask()).status, 503)
})

test('a value that cannot be known outside the pod is refused by name, before a token is issued', async (t) => {
  for (const [entry, words] of [
    [{ name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }, /CPU .* resourceFieldRef/],
    [{ name: 'FILE', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } }, /FILE .* fileKeyRef/],
    [field('ODD', 'status.phase'), /ODD .* field/],
    [field('PROTO', 'constructor'), /PROTO .* field/],
  ] as const) {
    const { server, ask } = await withVariables(t, [entry])
    const { status, body } = await ask()
    assert.equal(`${status} ${body.error}`, '403 access_denied')
    assert.match(String(body.error_description), words)
    assert.equal(server.at(SESSION).status?.jti, undefined)
  }
})

test('a Secret that is not a text is refused, and so are more objects than a bootstrap may read', async (t) => {
  const { server, ask, refused } = await withVariables(t, [secret('KEY')])
  server.put(SECRET, 'uid-secret', { data: { password: Buffer.from([0xff, 0xfe]).toString('base64') } })
  const { status, body } = await ask()
  assert.equal(`${status} ${body.error}`, '403 access_denied')
  assert.match(String(body.error_description), /KEY .* not text/)
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => configMap(`V${at}`, { name: `c${at}`, optional: true }))
  server.change(AGENT, setSpec({ tier: 'tier-1', env: many(33) }))
  assert.equal(await refused(), '403 access_denied')
  server.change(AGENT, setSpec({ tier: 'tier-1', env: many(32) }))
  server.change(POD, setStatus({ phase: 'Running' }))
  assert.equal((await ask()).status, 200)
})

test('a variable that names the key of the model is refused, that of a fallback as well', async (t) => {
  const { server, refused, variables } = await withVariables(t, [secret('KEY')])
  const key = { apiKeySecretRef: { name: 'store', key: 'password' } }
  for (const model of [key, { fallbacks: [{}, key] }]) {
    server.change(AGENT, setSpec({ tier: 'tier-1', env: [secret('KEY')], model }))
    assert.equal(await refused(), '403 access_denied')
  }
  const other = { apiKeySecretRef: { name: 'store', key: 'other' } }
  server.change(AGENT, setSpec({ tier: 'tier-1', env: [secret('KEY')], model: other }))
  assert.deepEqual(await variables(), { KEY: 'opensesame' })
})
