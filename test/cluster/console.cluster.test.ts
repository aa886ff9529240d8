import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig } from '@plat/gateway/config'
import { buildHelm } from './binaries.ts'
import { least, withConsole } from './chart-values.ts'
import { Helm, objectOf, podOf, type Rendered, type Values } from './helm.ts'

let helm: Helm

before(() => {
  const built = buildHelm(() => {})
  assert.ok(built.ok, built.text)
  helm = new Helm(built.text)
})

/** `values` with other members, each below the ones that are there. */
function changed(values: Values, changes: Values): Values {
  const merged = Object.entries(changes).map(([key, value]): [string, unknown] => {
    const old = values[key]
    return [key, isGroup(old) && isGroup(value) ? changed(old, value) : value]
  })
  return { ...values, ...Object.fromEntries(merged) }
}

function isGroup(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function configOf(objects: readonly Rendered[]) {
  const { data } = objectOf(objects, 'ConfigMap', 'plat-gateway')
  return JSON.parse(String(Object(data)['gateway.json']))
}

test('console.host and the Secret of the client become keys of gateway.json that the gateway accepts', () => {
  const objects = helm.render(withConsole)
  const config = configOf(objects)
  assert.deepEqual(
    [config.consoleURL, config.adminListen, config.console],
    ['https://plat.example.com/console', ':9090', { clientSecretFile: '/var/run/plat/console/secret' }],
  )
  const { containers, volumes = [] } = podOf(objectOf(objects, 'StatefulSet', 'plat-gateway'))
  const mounts = (containers[0].volumeMounts ?? []).map(({ mountPath }) => mountPath)
  assert.ok(mounts.includes('/var/run/plat/console'))
  assert.ok(JSON.stringify(volumes).includes('"secretName":"plat-console-client"'))
  const { problems } = checkGatewayConfig(JSON.stringify(config), { readMisspelt: true, exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  const own = changed(withConsole, { gateway: { config: { adminListen: ':9191', consoleURL: config.consoleURL } } })
  assert.equal(configOf(helm.render(own)).adminListen, ':9191')
})

test('the Ingress leads to the admin listener, for nothing but the console and the admin API, with TLS', () => {
  const objects = helm.render(withConsole)
  const { spec, metadata } = objectOf(objects, 'Ingress', 'plat-gateway-console')
  const { tls, rules, ingressClassName } = Object(spec)
  assert.deepEqual(
    [ingressClassName, tls],
    ['nginx', [{ hosts: ['plat.example.com'], secretName: 'plat-console-tls' }]],
  )
  assert.deepEqual(Object(metadata).annotations, Object(Object(withConsole.console).ingress).annotations)
  const [rule, ...others] = rules
  assert.deepEqual([rule.host, others], ['plat.example.com', []])
  const service = { name: 'plat-gateway-admin', port: { name: 'admin' } }
  assert.deepEqual(
    rule.http.paths,
    ['/console', '/v1'].map((path) => ({ path, pathType: 'Prefix', backend: { service } })),
  )
  const admin = objectOf(objects, 'Service', 'plat-gateway-admin')
  assert.deepEqual(Object(admin.spec).ports, [{ name: 'admin', port: 9090, targetPort: 'admin' }])
  const ports = Object(podOf(objectOf(objects, 'StatefulSet', 'plat-gateway')).containers[0]).ports
  assert.ok(JSON.stringify(ports).includes('{"name":"admin","containerPort":9090}'))
})

test('the network lets the controller reach the admin listener, and agents the other one only', () => {
  const { spec } = objectOf(helm.render(withConsole), 'NetworkPolicy', 'plat-gateway')
  const rules: { from: unknown; ports: { port: string }[] }[] = Object(spec).ingress
  const peers = (port: string) => rules.filter(({ ports }) => ports.some((one) => one.port === port))
  assert.deepEqual(
    peers('admin').map(({ from }) => from),
    [Object(withConsole.networkPolicy).admin],
  )
  assert.equal(peers('http').length, 1)
})

test('without console.enabled the chart publishes no console', () => {
  const objects = helm.render(least)
  assert.equal(objects.filter(({ kind }) => kind === 'Ingress').length, 0)
  assert.equal(objects.filter(({ metadata }) => metadata.name === 'plat-gateway-admin').length, 0)
  assert.deepEqual([configOf(objects).consoleURL, configOf(objects).adminListen], [undefined, undefined])
})

/** Changes that would leave people without the console, and what Helm says of them. */
const REFUSED: readonly (readonly [Values, RegExp])[] = [
  [{ console: { host: '' } }, /console\.host: write the host name/],
  [{ console: { host: 'https://plat.example.com' } }, /host.*does not match/is],
  [{ console: { enabled: false } }, /console\.ingress\.enabled: needs console\.enabled/],
  [{ console: { enabled: false, ingress: { enabled: false } } }, /console\.clientSecretSecret: needs console\.enabled/],
  [
    { gateway: { config: { consoleURL: 'https://other.example/console' } } },
    /gateway\.config\.consoleURL: must be https:/,
  ],
  [{ gateway: { config: { console: { enabled: false } } } }, /gateway\.config\.console\.enabled: is false/],
  [{ gateway: { config: { adminAuth: { mode: 'token' } } } }, /gateway\.config\.adminAuth\.mode: set oidc or both/],
  [{ gateway: { config: { adminAuth: { oidc: { issuer: '' } } } } }, /adminAuth\.oidc\.issuer: write the identity/],
  [{ gateway: { config: { adminAuth: { oidc: { clientID: '' } } } } }, /adminAuth\.oidc\.clientID: write the client/],
  [{ gateway: { config: { console: { clientSecretFile: '/x' } } } }, /clientSecretSecret: .* is set as well/],
  [{ networkPolicy: { admin: [] } }, /networkPolicy\.admin: name the pods of the ingress controller/],
]

test('values with which no browser reaches the console, or no person logs in, are refused with their name', () => {
  for (const [changes, message] of REFUSED)
    assert.match(helm.refusal(changed(withConsole, changes)), message, JSON.stringify(changes))
})
