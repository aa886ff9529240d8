import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkGatewayConfig, type GatewayConfig, typedConfig } from '../../config.ts'
import { checks, findings, idleAccepts } from './checks.ts'
import { logPosture } from './index.ts'

/** A configuration with as few risks as this version allows. */
const careful = {
  listen: '127.0.0.1:8080',
  policyFile: '/p.json',
  upstreamsFile: '/u.json',
  auditPath: '/a.jsonl',
  auditFailurePolicy: 'closed',
  approvalStorePath: '/approvals.jsonl',
  pinStorePath: '/pins.jsonl',
  taintStorePath: '/taints.jsonl',
  revocationsFile: '/revocations.json',
  identity: { jwksURL: 'http://127.0.0.1:8081/jwks', issuer: 'plat-identity' },
  dpop: { require: true, publicURL: 'https://gateway.example' },
  modelPolicy: 'policy',
  sessionBudgetUSD: 1,
  posture: { accept: ['admin-static-token', 'audit-unsigned'] },
}

const hub = { name: 'hub', clientID: 'plat', issuer: 'https://hub.example', allowedServers: ['default/notes'] }

const vault = {
  enabled: true,
  keyURI: '/k',
  publicBaseURL: 'https://gateway.example',
  login: { issuer: 'https://login.example', clientID: 'plat' },
  providers: [hub],
}

const hook = { name: 'hook', type: 'webhook', url: 'https://hook.example', hmacSecretFile: '/hmac' }

const vaultOf = (own: object, provider: object = {}) => ({
  tokenVault: { ...vault, providers: [{ ...hub, ...provider }], ...own },
})

function configOf(own: object): GatewayConfig {
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...careful, ...own }), { exists: () => true })
  assert.deepEqual(
    problems.filter(({ severity }) => severity === 'error'),
    [],
  )
  return typedConfig(config)
}

const ids = (own: object) => findings(configOf(own)).map(({ id }) => id)

const guard = { name: 'g', type: 'lakera', url: 'https://guard.example/v2', failOpen: false }

/** An edge configuration without risks, with changes. */
const edgeOf = (own: object) => ({
  auditCheckpointKey: '/k',
  offline: {
    enabled: true,
    edgeId: 'north',
    collectorKeyFiles: ['/c'],
    maxRevocationStalenessSeconds: 60,
    forward: { url: 'https://hub.example' },
    ...own,
  },
})

/** Changes to the careful configuration that trigger each check. */
const risky: Readonly<Record<string, object>> = {
  'plain-http': { listen: ':8080', adminListen: '127.0.0.1:9090' },
  'admin-shared-listener': { listen: ':8080', tls: { certFile: '/c', keyFile: '/k' } },
  'admin-plain-http': { adminListen: ':9090' },
  'admin-static-token': { posture: { accept: ['audit-unsigned'] } },
  'dev-token-approvers': { adminAuth: { devTokenApprovers: true } },
  'audit-open': { auditFailurePolicy: 'open' },
  'audit-unsigned': { posture: { accept: ['admin-static-token'] } },
  'transparency-log-unverified': {
    auditCheckpointKey: '/k',
    transparencyLog: { enabled: true, url: 'https://log.example' },
  },
  'sinks-in-the-clear': { auditSinks: [{ name: 's', type: 'syslog', address: 'tcp://siem.example:514' }] },
  'traces-in-the-clear': { otel: { enabled: true, endpoint: 'http://collector.example:4318' } },
  'approvals-in-memory': { approvalStorePath: '' },
  'pins-in-memory': { pinStorePath: '' },
  'taints-in-memory': { taintStorePath: '' },
  'guards-fail-open': { guards: [{ ...guard, failOpen: true }] },
  'guards-in-the-clear': { guards: [{ ...guard, url: 'http://guard.example/v2' }] },
  'dlp-without-default': { dlpProfiles: { p: {} } },
  'dlp-oversize-passes': { dlpProfiles: { p: { onOversize: 'audit' } }, dlp: { defaultProfile: 'p' } },
  'dlp-streams-unheld': { dlpProfiles: { p: { streamCarryBytes: -1 } }, dlp: { defaultProfile: 'p' } },
  'raw-arguments-kept': { approvalPreview: { mode: 'full' } },
  'no-revocation-list': { revocationsFile: '' },
  'slow-reload': { policyReloadSeconds: 60 },
  'issuer-unchecked': { identity: { publicKeyFiles: ['/pub.pem'] } },
  'keys-in-the-clear': { identity: { jwksURL: 'http://identity.example/jwks', issuer: 'plat-identity' } },
  'endpoints-unplaced': { sovereigntyPolicyFile: '/s.json', tokenExchangeURL: 'https://sts.example/token' },
  'wide-leeway': { identity: { publicKeyFiles: ['/pub.pem'], issuer: 'plat-identity', leewaySeconds: 600 } },
  'bearer-tokens': { dpop: { require: false } },
  'vault-unverified-users': vaultOf({ allowUnverifiedPrincipal: true }),
  'vault-any-server': vaultOf({}, { allowAnyServer: true }),
  'vault-without-pkce': vaultOf({}, { disablePKCE: true }),
  'vault-in-the-clear': vaultOf({}, { tokenURL: 'http://hub.example/token' }),
  'notifications-in-memory': { notifiers: [hook], notifyOutboxPath: '' },
  'webhooks-unsigned': { notifiers: [{ ...hook, hmacSecretFile: '' }], notifyOutboxPath: '/o.jsonl' },
  'notices-in-the-clear': { ciba: { enabled: true, issuer: 'http://login.example', clientID: 'plat' } },
  'policy-engine-tried-out': { policy: { rego: { url: 'https://opa.example/v1/data/p', enforcement: 'dryRun' } } },
  'policy-engine-in-the-clear': { policy: { rego: { url: 'http://opa.example/v1/data/p' } } },
  'bundle-token-in-the-clear': {
    configBundle: {
      enabled: true,
      dir: '/live',
      trustedKeyFiles: ['/k.pem'],
      pull: { url: 'http://bundles.example/b.tgz', tokenFile: '/token' },
    },
  },
  'models-without-policy': { modelsFile: '/m.json', modelPolicy: 'scope-only' },
  'models-without-budget': { modelsFile: '/m.json', sessionBudgetUSD: 0 },
  'agent-cards-unsigned': { a2a: { routesFile: '/agents.json' } },
  'agent-webhooks-anywhere': { a2a: { pushNotificationHosts: ['*.*'] } },
  'static-upstreams': { upstreams: { notes: 'https://notes.example/mcp' } },
  'upstreams-in-the-clear': {
    upstreams: { notes: 'http://notes.example/mcp' },
    posture: { accept: [...careful.posture.accept, 'static-upstreams'] },
  },
  'edge-in-the-clear': edgeOf({ forward: { url: 'http://hub.example' } }),
  'edge-drops-segments': edgeOf({ fullPolicy: 'dropOldestForwarded' }),
  'edge-stale-revocations': edgeOf({ maxRevocationStalenessSeconds: 0 }),
  'web-anywhere': { web: { enabled: true, defaultAllow: true } },
  'exec-unkeyed': { exec: { enabled: true } },
  'web-unlabelled': { web: { enabled: true, taintLabels: [] } },
  'web-search-in-the-clear': { web: { enabled: true, search: { backend: 'searxng', url: 'http://search.example' } } },
  'cluster-as-gateway': { k8sOps: { enabled: true } },
  'cluster-unlabelled': { k8sOps: { enabled: true, serviceAccount: 'ops/reader', taintLabels: [] } },
  'cluster-in-the-clear': { k8sOps: { enabled: true, serviceAccount: 'ops/reader', apiServer: 'http://api.example' } },
  'cluster-changed-unseen': {
    k8sOps: { enabled: true, serviceAccount: 'ops/reader', writes: { mode: 'apply', approval: 'policy' } },
  },
  'infra-unseen': { infra: { enabled: true, requireApprovalAtTier: 5 } },
  'replicas-on-files': { posture: { ...careful.posture, replicas: 2 }, shutdownDelaySeconds: 5 },
  'no-shutdown-delay': { posture: { accept: [...careful.posture.accept, 'replicas-on-files'], replicas: 2 } },
}

test('a careful configuration has no finding, and each check finds its own risk alone', () => {
  // Shows D3.state.posture.replicas.
  assert.deepEqual(ids({}), [])
  assert.deepEqual(ids(vaultOf({})), [])
  assert.deepEqual(
    Object.keys(risky),
    checks.map(({ id }) => id),
  )
  for (const [id, own] of Object.entries(risky)) assert.deepEqual(ids(own), [id])
})

test('state shared in Postgres is not a risk of memory or files', () => {
  const shared = { stateBackend: { type: 'postgres', dsnFile: '/dsn' }, shutdownDelaySeconds: 5 }
  const pathless = { approvalStorePath: '', pinStorePath: '', taintStorePath: '' }
  assert.deepEqual(ids({ ...shared, ...pathless, posture: { ...careful.posture, replicas: 2 } }), [])
  assert.deepEqual(ids(pathless), ['approvals-in-memory', 'pins-in-memory', 'taints-in-memory'])
})

test('an accepted risk is not reported, and an accepted id without a risk is named', () => {
  // Shows D3.state.posture.accept.
  const accepting = { ...careful.posture, accept: [...careful.posture.accept, 'audit-open', 'slow-reload'] }
  const config = configOf({ auditFailurePolicy: 'open', policyReloadSeconds: 60, posture: accepting })
  assert.deepEqual(findings(config), [])
  assert.deepEqual(idleAccepts(configOf({ posture: accepting })), ['audit-open', 'slow-reload'])
  assert.deepEqual(reported(config), [])
  assert.deepEqual(reported(configOf({ auditFailurePolicy: 'open' })), [
    { check: 'audit-open', fix: 'set auditFailurePolicy to closed' },
  ])
})

function reported(config: GatewayConfig): object[] {
  const lines: object[] = []
  logPosture(config, { warn: (fields) => void lines.push(fields) })
  return lines
}

test('key sets and token endpoints have a jurisdiction once all their origins state one', () => {
  const login = 'https://login.example'
  const hubs = {
    ...vault,
    providers: [
      { ...hub, clientSecretFile: '/secret', grant: 'id-jag', idJag: { idpTokenURL: 'https://idp.example/token' } },
    ],
  }
  const ciba = { enabled: true, issuer: 'https://ciba.example', clientID: 'plat' }
  const oidc = { issuer: 'https://admins.example', audience: 'plat' }
  const callbackOIDC = { issuer: 'https://chat.example', audience: 'plat', jwksURL: 'https://chat-keys.example/jwks' }
  const own = {
    sovereigntyPolicyFile: '/s.json',
    tokenExchangeURL: 'http://broker.plat.svc:8081/token',
    tokenVault: hubs,
    ciba,
    adminAuth: { mode: 'oidc', oidc },
    posture: { accept: ['audit-unsigned'] },
    notifiers: [
      {
        ...hook,
        type: 'teams',
        webhookURLFile: '/w',
        url: undefined,
        hmacSecretFile: undefined,
        userMap: { u1: 'ann' },
        callbackOIDC,
      },
    ],
    notifyOutboxPath: '/o.jsonl',
    identity: {
      ...careful.identity,
      resourceBaseURL: 'https://gateway.example',
      trustedIssuers: [{ issuer: 'https://customer.example', namespace: 'default' }],
    },
  }
  const origins = [login, 'https://hub.example', 'https://idp.example', ciba.issuer, oidc.issuer].concat(
    'https://chat-keys.example',
    'https://customer.example',
  )
  const stated = (all: readonly string[]) => ({
    endpointJurisdictions: Object.fromEntries(all.map((one) => [one, 'DE'])),
  })
  assert.deepEqual(ids({ ...own, ...stated(origins) }), [])
  for (const missing of origins)
    assert.deepEqual(
      ids({ ...own, ...stated(origins.filter((one) => one !== missing)) }),
      ['endpoints-unplaced'],
      missing,
    )
})

test('an id that no check has is an error', () => {
  const text = JSON.stringify({ ...careful, posture: { accept: ['audit-opn'] } })
  const { problems } = checkGatewayConfig(text, { exists: () => true })
  assert.deepEqual(
    problems.map(({ path, severity }) => [path, severity]),
    [['posture.accept[0]', 'error']],
  )
})

test('rendered budgets are budgets as well', () => {
  const models = { modelsFile: '/m.json', sessionBudgetUSD: 0 }
  const reported = (more: object) => findings(configOf({ ...models, ...more })).map(({ id }) => id)
  assert.deepEqual(reported({ budgetsFile: '/b.json' }), [])
  assert.deepEqual(reported({}), ['models-without-budget'])
})
