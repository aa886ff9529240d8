import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig } from '@plat/gateway/config'
import { parse, parseAllDocuments } from 'yaml'
import { type ApiServer, startApiServer } from './api-server.ts'
import { buildBinaries } from './binaries.ts'
import { RULES } from './broker.ts'
import { bare, everything, least, withConsole } from './chart-values.ts'
import { Helm, NAMESPACE, objectOf, podOf, RELEASE, type Rendered, type Values } from './helm.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const CORE = ['ConfigMap', 'Pod', 'Secret', 'Service', 'ServiceAccount']
const CLUSTER_WIDE = [
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
]
const PLURALS: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies',
  Ingress: 'ingresses',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
}
/** Where pods are tried, with their service accounts. */
const RESTRICTED = 'restricted'
const MATRIX: Readonly<Record<string, Values>> = { least, everything, bare, withConsole }

/** Secrets that people make, and what a release named as in the pages has beside its objects. */
const MADE = [
  ...['plat-identity-key', 'plat-audit-key', 'plat-broker-token', 'plat-admin-token', 'plat-postgres'],
  ...['plat-attestation-token', 'plat-console-client', 'plat-console-tls'],
]
const BY_OPERATOR = [
  'policies',
  'upstreams',
  'models',
  'agents',
  'budgets',
  'memory',
  'sovereignty',
  'revocations',
].map((name) => `plat-${name}`)

/** The policy on it is the one that pins.cluster.test.ts runs under. */
const pageOfCopies = readFileSync(path.join(ROOT, 'docs/cluster-copies.md'), 'utf8')

let server: ApiServer
let helm: Helm

before(async () => {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  helm = new Helm(binaries.helm)
  server = await startApiServer(binaries)
  for (const kind of ['prometheusrules', 'servicemonitors']) {
    const file = path.join(binaries.monitoringCrds, `monitoring.coreos.com_${kind}.yaml`)
    await must('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', parse(readFileSync(file, 'utf8')))
    await served(`monitoring.coreos.com/v1/${kind}`)
  }
  // The strictest level of Pod Security: a pod that breaks it is refused.
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  for (const name of [NAMESPACE, RESTRICTED, 'team-a', 'team-b'])
    await must('/api/v1/namespaces', { metadata: { name, labels } })
  // Objects that a cluster-wide controller creates in each namespace.
  await must(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name: 'default' } })
})

after(() => server?.stop())

async function must(where: string, body: object): Promise<void> {
  const { status, body: answer } = await server.ask('POST', where, body)
  assert.ok(status < 300, `${where}: ${status} ${JSON.stringify(answer)}`)
}

/** Waits until the API server serves a kind that was just defined. */
async function served(kind: string): Promise<void> {
  while ((await server.ask('GET', `/apis/${kind}`)).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 50))
}

/** Whether the API server would take it: every field, and every rule of its kind. */
async function accepts(object: Rendered): Promise<void> {
  const { apiVersion, kind, metadata } = object
  const root = CORE.includes(kind) ? `/api/${apiVersion}` : `/apis/${apiVersion}`
  const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`
  const scope = CLUSTER_WIDE.includes(kind) ? '' : `/namespaces/${metadata.namespace ?? NAMESPACE}`
  await must(`${root}${scope}/${plural}?dryRun=All&fieldValidation=Strict`, object)
}

function configOf(objects: readonly Rendered[]): string {
  const { data } = objectOf(objects, 'ConfigMap', 'plat-gateway')
  return String(Object(data)['gateway.json'])
}

for (const [name, values] of Object.entries(MATRIX)) {
  test(`Helm finds nothing wrong with the chart, values ${name}`, () => {
    const { status, stdout, stderr } = helm.lint(values)
    assert.equal(status, 0, stdout + stderr)
  })

  test(`a real API server takes every object of the chart, values ${name}`, async () => {
    const objects = helm.render(values)
    for (const object of objects) await accepts(object)
    assert.ok(objects.length > 5)
  })

  test(`every pod of the chart keeps to the restricted level of Pod Security, values ${name}`, async () => {
    const objects = helm.render(values)
    for (const { metadata } of objects.filter(({ kind }) => kind === 'ServiceAccount')) {
      const body = { metadata: { name: metadata.name } }
      const { status } = await server.ask('POST', `/api/v1/namespaces/${RESTRICTED}/serviceaccounts`, body)
      assert.ok([201, 409].includes(status))
    }
    const pods = objects.filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind))
    for (const { metadata, ...rest } of pods) {
      const { volumes = [], ...spec } = podOf({ metadata, ...rest })
      // A claim's volume comes with the set; priority classes of the system are its own.
      const all = [
        ...volumes,
        ...(JSON.stringify(volumes).includes('"state"') ? [] : [{ name: 'state', emptyDir: {} }]),
      ]
      const body = { metadata: { name: metadata.name }, spec: { ...spec, volumes: all } }
      await must(`/api/v1/namespaces/${RESTRICTED}/pods?dryRun=All&fieldValidation=Strict`, body)
    }
    assert.ok(pods.length >= 2)
  })

  test(`gateway.json of the chart is valid to the letter, and every file that it names is mounted, values ${name}`, () => {
    // Shows D3.chart.configMap.
    const objects = helm.render(values)
    const { containers } = podOf(objectOf(objects, 'StatefulSet', 'plat-gateway'))
    const folders = (containers[0].volumeMounts ?? []).map(({ mountPath }) => `${mountPath}/`)
    const isMounted = (file: string) =>
      folders.some((folder) => `${file.replace(/^file:\/\//, '')}/`.startsWith(folder))
    const text = configOf(objects)
    // As `plat config validate -strict` weighs them: what is a warning elsewhere is none here.
    const { problems } = checkGatewayConfig(text, { readMisspelt: true, exists: isMounted })
    assert.deepEqual(problems.map(formatProblem), [])
    for (const [, file = ''] of text.matchAll(/"(?:file:\/\/)?(\/(?:etc|var)\/[^"]+)"/g))
      assert.ok(isMounted(file), file)
    const { data } = objectOf(objects, 'ConfigMap', 'plat-gateway')
    assert.deepEqual(Object.keys(Object(data)), ['gateway.json'])
    assert.deepEqual(containers[0].args, ['-config=/etc/plat/config/gateway.json'])
  })
}

test('gateway.config is copied as it is, over what the chart sets and the addresses of its broker', () => {
  // Shows D3.chart.jwksURL and D3.chart.tokenExchangeURL.
  const config = JSON.parse(configOf(helm.render(least)))
  assert.equal(config.identity.jwksURL, 'http://plat-identity.plat-system.svc:8081/.well-known/jwks.json')
  assert.equal(config.tokenExchangeURL, 'http://plat-identity.plat-system.svc:8081/v1/exchange')
  assert.deepEqual(config.identity.publicKeyFiles, ['/var/run/plat-identity/pub.pem'])
  assert.equal(config.auditPath, '/var/lib/plat/audit/ledger.jsonl')
  assert.deepEqual(config.posture, { replicas: 1 })
  const identity = { jwksURL: 'https://idp.example/jwks', publicKeyFiles: [], issuer: 'https://idp.example' }
  const own = { identity, tokenExchangeURL: '', maxBodyBytes: 1_048_576, posture: { replicas: 3 }, pinStorePath: '' }
  const changed = JSON.parse(configOf(helm.render({ ...least, gateway: { config: own } })))
  for (const [key, value] of Object.entries(own)) assert.deepEqual(changed[key], value, key)
  const several = JSON.parse(configOf(helm.render(everything)))
  assert.equal(several.identity.issuer, 'https://plat.example')
  assert.deepEqual([several.posture.replicas, several.stateBackend.dsnFile], [2, '/var/run/plat/state/dsn'])
})

test('the operator gets budgetCurrency and endpointJurisdictions of the gateway', () => {
  const endpointJurisdictions = { 'https://login.example': 'DE', 'https://idp.example:8443': 'EU' }
  const objects = helm.render({ ...least, gateway: { config: { budgetCurrency: 'EUR', endpointJurisdictions } } })
  const operator = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'plat-operator')
  assert.ok(operator !== undefined)
  const { args = [] } = podOf(operator).containers[0]
  assert.ok(args.includes('-budget-currency=EUR'))
  assert.ok(
    args.includes('-endpoint-jurisdictions=https://idp.example:8443=EU,https://login.example=DE'),
    args.join(' '),
  )
})

test('where reports of sandboxes are taken the gateway may have tokens reviewed, and nothing else of the cluster', () => {
  const name = `${NAMESPACE}-plat-gateway`
  const rulesOf = (values: Values) =>
    helm
      .render(values)
      .flatMap(({ kind, metadata, rules }) => (kind === 'ClusterRole' && metadata.name === name ? [rules] : []))
  const review = { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] }
  assert.deepEqual(rulesOf(everything), [[review]])
  assert.deepEqual(rulesOf(least), [])
  const reported = {
    ...least,
    gateway: { config: { sandboxUsage: { enabled: true, reporters: ['system:serviceaccount:a:b'] } } },
  }
  const mounted = (values: Values) =>
    Object(podOf(objectOf(helm.render(values), 'StatefulSet', 'plat-gateway'))).automountServiceAccountToken
  assert.deepEqual([mounted(least), mounted(reported)], [false, true])
})

test('the gateway may write exactly the configured objects to the cluster', () => {
  const rulesOf = (config: object) =>
    helm
      .render({ ...least, gateway: { config } })
      .filter(({ metadata: { name } }) => name === 'plat-system-plat-gateway-copies')
      .flatMap(({ rules }) => rules ?? [])
  const mirrored = { apiGroups: ['plat.dev'], verbs: ['list', 'create', 'patch', 'delete'] }
  assert.deepEqual(rulesOf({}), [])
  assert.deepEqual(rulesOf({ activity: { enabled: true } }), [
    { apiGroups: ['plat.dev'], resources: ['agentsessions'], verbs: ['patch'] },
  ])
  const annotated = { activity: { enabled: true }, pinReports: { enabled: true } }
  assert.deepEqual(rulesOf(annotated), [
    { apiGroups: ['plat.dev'], resources: ['agentsessions', 'mcpservers'], verbs: ['patch'] },
  ])
  const policies = helm
    .render({ ...least, gateway: { config: annotated } })
    .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
  const page = parseAllDocuments(/```yaml\n(apiVersion: admission[\s\S]*?)```/.exec(pageOfCopies)?.[1] ?? '')
  assert.deepEqual(Object(policies[0]).spec, page[0]?.toJS().spec)
  const both = { revocationMirror: { enabled: true }, tokenVault: { mirror: { enabled: true } } }
  assert.deepEqual(rulesOf(both), [{ ...mirrored, resources: ['agentrevocations', 'connectedaccounts'] }])
  const pod = podOf(objectOf(helm.render({ ...least, gateway: { config: both } }), 'StatefulSet', 'plat-gateway'))
  assert.equal(Object(pod).automountServiceAccountToken, true)
})

test('with configSync the files that come from ConfigMaps are live, and the gateway may read those and no others', () => {
  // Shows D3.chart.configSyncPaths.
  const [before, after] = [
    helm.render({ ...least, gateway: { config: {} } }),
    helm.render({ ...least, gateway: { config: { configSync: { enabled: true } } } }),
  ]
  const still = JSON.parse(configOf(before))
  const live = JSON.parse(configOf(after))
  const pathsOf = (config: Record<string, unknown>) =>
    [
      'policyFile',
      'upstreamsFile',
      'modelsFile',
      'budgetsFile',
      'memoryFile',
      'sovereigntyPolicyFile',
      'revocationsFile',
    ]
      .map((key) => String(config[key]))
      .concat(Object(config.a2a).routesFile)
  assert.deepEqual(
    pathsOf(live),
    pathsOf(still).map((file) => `/var/run/plat/live/${path.basename(file)}`),
  )
  const items: { configMap: string; key: string; path: string }[] = live.configSync.items
  assert.deepEqual(items.map((item) => item.path).sort(), pathsOf(live).sort())
  assert.deepEqual([...new Set(items.map((item) => item.configMap))].sort(), [...BY_OPERATOR].sort())
  const mounts = (objects: readonly Rendered[]) =>
    (podOf(objectOf(objects, 'StatefulSet', 'plat-gateway')).containers[0].volumeMounts ?? []).map(
      (one) => one.mountPath,
    )
  assert.ok(mounts(before).includes('/etc/plat/revocations') && !mounts(before).includes('/var/run/plat/live'))
  assert.ok(mounts(after).includes('/var/run/plat/live') && !mounts(after).includes('/etc/plat/revocations'))
  const { rules } = objectOf(after, 'Role', 'plat-gateway')
  const resourceNames = items.map((item) => item.configMap)
  assert.deepEqual(rules, [{ apiGroups: [''], resources: ['configmaps'], resourceNames, verbs: ['get'] }])
  assert.equal(before.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === 'plat-gateway').length, 0)
})

test('a change of gateway.config starts the pods anew, and nothing else does', () => {
  const stamp = (values: Values) => {
    const { template } = Object(objectOf(helm.render(values), 'StatefulSet', 'plat-gateway').spec)
    return String(template.metadata.annotations['plat.dev/config'])
  }
  assert.equal(stamp(least), stamp({ ...least, identity: { replicas: 1 } }))
  assert.notEqual(stamp(least), stamp({ ...least, gateway: { config: { maxBodyBytes: 1_048_576 } } }))
})

test('the alert rules of the chart are those of the rules file, with the thresholds and addresses of the values', () => {
  // Shows D3.alert.thresholds.
  const groupsOf = (alerts: object) =>
    Object(
      objectOf(helm.render({ ...least, alerts: { enabled: true, ...alerts } }), 'PrometheusRule', 'plat-alerts').spec,
    )
  const trimmed = (text: string) => JSON.parse(text.replaceAll('\\n"', '"'))
  const written = parse(readFileSync(path.join(ROOT, 'deploy/alerts/plat.rules.yaml'), 'utf8'))
  const same = groupsOf({ runbookBaseURL: 'docs/runbooks.md' })
  assert.deepEqual(trimmed(JSON.stringify(same)), trimmed(JSON.stringify(written)))
  const thresholds = Object.fromEntries(
    Object.entries(parse(readFileSync(path.join(ROOT, 'deploy/chart/values.yaml'), 'utf8')).alerts.thresholds).map(
      ([alert, values], at) => [
        alert,
        Object.fromEntries(Object.keys(Object(values)).map((key, nth) => [key, 7001 + at * 10 + nth])),
      ],
    ),
  )
  const text = JSON.stringify(groupsOf({ runbookBaseURL: 'https://git.example/x', thresholds }))
  for (const value of Object.values(thresholds).flatMap((one) => Object.values(one))) {
    assert.ok(text.includes(` ${value}`), String(value))
  }
  assert.ok(text.includes('https://git.example/x#gatewaynotready') && !text.includes('docs/runbooks.md'))
  assert.equal(helm.render(least).filter(({ kind }) => kind === 'PrometheusRule').length, 0)
})

test('the roles of the chart are those that the suites run under', () => {
  const rules = (kind: string, name: string, values = least) => objectOf(helm.render(values), kind, name).rules
  assert.deepEqual(rules('ClusterRole', 'plat-system-plat-identity'), RULES)
  const page = readFileSync(path.join(ROOT, 'docs/operator.md'), 'utf8')
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(page) ?? []
  const [read, write] = parseAllDocuments(yaml).map((document) => document.toJS())
  assert.deepEqual(rules('ClusterRole', 'plat-system-plat-operator-read'), read.rules)
  assert.deepEqual(rules('Role', 'plat-operator-write'), write.rules)
})

test('every flag that the chart gives a binary is one that it knows', () => {
  for (const values of [least, everything]) {
    const withFlags = ({ kind, metadata: { name } }: Rendered) =>
      kind === 'Deployment' || (kind === 'StatefulSet' && name === 'plat-attestation')
    for (const object of helm.render(values).filter(withFlags)) {
      const { command, args = [] } = podOf(object).containers[0]
      const [name = ''] = command
      const bin = path.join(ROOT, 'services', name.replace(/^plat-/, ''), 'bin', `${name}.mjs`)
      const { status, stderr } = spawnSync(process.execPath, [bin, ...args, '-version'], { encoding: 'utf8' })
      assert.equal(status, 0, stderr)
    }
  }
})

test('every object that the runbooks and the page on Kubernetes name is one of the chart', () => {
  const known = new Set([
    ...helm.render({ ...least, attestation: { enabled: true } }).map(({ metadata }) => metadata.name),
    ...helm.render(withConsole).map(({ metadata }) => metadata.name),
    ...MADE,
    ...BY_OPERATOR,
    NAMESPACE,
  ])
  for (const page of ['docs/runbooks.md', 'docs/kubernetes.md', 'docs/console-on-a-cluster.md']) {
    const text = readFileSync(path.join(ROOT, page), 'utf8')
    const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, lines = '']) => lines).join('')
    const named = [...blocks.matchAll(/(?<=[\s/:])plat-[a-z-]+/g)].map(([name]) => name)
    assert.ok(named.length >= 3)
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
      page,
    )
  }
})

/** Values that cannot be right, and what Helm says of them. */
const REFUSED: readonly (readonly [Values, RegExp])[] = [
  [{}, /image\.repository: name where the image of deploy\/Dockerfile was pushed/],
  [{ ...least, gatway: {} }, /[Aa]dditional propert.*gatway/],
  [{ ...least, gateway: { config: { listn: ':1' } } }, /[Aa]dditional propert.*listn/],
  [{ ...least, gateway: { config: { shutdownDelaySeconds: '5' } } }, /shutdownDelaySeconds.*integer/s],
  [
    { ...least, gateway: { replicas: 2 } },
    /gateway\.replicas: several replicas share .*stateBackend\.type to postgres/,
  ],
  [{ ...least, gateway: { autoscaling: { enabled: true } } }, /gateway\.autoscaling\.enabled: several replicas share/],
  [
    { ...least, gateway: { config: { stateBackend: { type: 'postgres' } } } },
    /gateway\.stateDsnSecret: .* is postgres/,
  ],
  [{ ...least, gateway: { stateDsnSecret: 'x' } }, /gateway\.stateDsnSecret: needs gateway\.config\.stateBackend/],
  [{ ...least, identity: { replicas: 2 } }, /identity\.replicas: .* set identity\.stateDsnSecret/],
  [{ ...least, identity: { flags: { listen: ':1' } } }, /identity\.flags\.listen: the chart sets it/],
  [{ ...least, operator: { flags: { namespace: 'x' } } }, /operator\.flags\.namespace: the chart sets it/],
  [
    { ...least, attestation: { enabled: true, flags: { listen: 'x' } } },
    /attestation\.flags\.listen: the chart sets it/,
  ],
  [{ ...least, alerts: { enabled: true } }, /alerts\.runbookBaseURL: write where docs\/runbooks\.md is read/],
  [{ ...least, alerts: { thresholds: { Nonsense: {} } } }, /[Aa]dditional propert.*Nonsense/],
]

test('values that cannot be right are refused with their name', () => {
  for (const [values, message] of REFUSED) assert.match(helm.refusal(values), message, JSON.stringify(values))
})

test('Helm installs, upgrades and removes the chart on a real API server', async () => {
  const access = [
    ...['--namespace', NAMESPACE, '--kube-apiserver', server.url, '--kube-ca-file', server.caFile],
    ...['--kube-token', 'admin'],
  ]
  const ok = ({ status, stdout, stderr }: { status: number | null; stdout: string; stderr: string }) => {
    assert.equal(status, 0, stderr)
    return stdout
  }
  const config = async () => {
    const { body } = await server.ask('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/plat-gateway`)
    return JSON.parse(Object(body.data)['gateway.json'])
  }
  const notes = ok(helm.run(['install', RELEASE], least, access))
  assert.match(notes, /gateway {3}http:\/\/plat-gateway\.plat-system\.svc:8080/)
  assert.match(notes, /The admin API is off/)
  // The definitions come with it.
  await served('plat.dev/v1alpha1/agents')
  const changed = { ...least, gateway: { config: { maxBodyBytes: 1_048_576 } } }
  ok(helm.run(['upgrade', RELEASE], changed, access))
  assert.equal((await config()).maxBodyBytes, 1_048_576)
  ok(helm.plain(['uninstall', RELEASE, ...access]))
  const { status } = await server.ask('GET', `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets/plat-gateway`)
  assert.equal(status, 404)
})
