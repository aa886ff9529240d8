/** Values of keys of gateway.json that the contract allows and refuses: enumerations, patterns, bounds and required keys. @table */

/** Where a problem of a refused value is reported, the values, and the rest of the file around each value. */
export interface KeyValues {
  /** Path of the key, as problems name it. */
  readonly at: string
  readonly accepted: readonly unknown[]
  readonly refused: readonly unknown[]
  /** The file with the value; default: the value at `at` and nothing else. */
  readonly file?: (value: unknown) => object
}

const MIB = 1024 * 1024
const KEY = { auditCheckpointKey: 'file:///key.pem' }

const sink = (own: object) => ({ auditSinks: [{ name: 'siem', type: 'syslog', address: 'tls://siem:6514', ...own }] })
const http = (own: object) => sink({ type: 'http', address: undefined, url: 'https://siem.example/in', ...own })
const notifier = (own: object) => ({
  notifiers: [{ name: 'n', type: 'webhook', url: 'https://chat.example', hmacSecretFile: '/secret', ...own }],
})
const guard = (own: object) => ({
  guards: [{ name: 'g', type: 'http-json', url: 'https://guard.example/score', ...own }],
})
const route = (own: object) => ({ models: { r: { upstream: 'https://llm.example/v1', ...own } } })
const cloudRoute = (provider: string) => (mode: unknown) =>
  route({
    provider,
    mode,
    region: 'eu-central-1',
    ...(provider === 'vertex' && { project: 'pro-ject', region: 'europe-west1' }),
    ...(provider === 'azure-openai' && { region: undefined, apiKeyFile: '/key' }),
  })
const issuers = (own: object) => ({
  identity: {
    publicKeyFiles: ['/pub.pem'],
    resourceBaseURL: 'https://gateway.example',
    trustedIssuers: [{ issuer: 'https://login.example', namespace: 'team', algorithms: ['ES256'], ...own }],
  },
})
const vault = (own: object, provider: object = {}) => ({
  tokenVault: {
    enabled: true,
    keyURI: 'file:///key',
    publicBaseURL: 'https://gateway.example',
    login: { issuer: 'https://login.example', clientID: 'id' },
    providers: [
      {
        name: 'hub',
        issuer: 'https://hub.example',
        clientID: 'id',
        clientSecretFile: '/secret',
        scopes: ['read'],
        allowedServers: ['team/notes'],
        ...provider,
      },
    ],
    ...own,
  },
})
const ciba = (own: object) => ({
  ciba: { enabled: true, issuer: 'https://login.example', clientID: 'id', clientSecretFile: '/secret', ...own },
})
const txn = (own: object) => ({
  txnTokens: { mode: 'add', signingKey: 'file:///key.pem', audience: 'plat.local', ...own },
})
const oidc = (own: object, mode: unknown = 'oidc') => ({
  adminAuth: { mode, oidc: { issuer: 'https://login.example', audience: 'plat', ...own } },
})
const edge = (own: object) => ({ ...KEY, offline: { enabled: true, edgeId: 'north', ...own } })
const postgres = (own: object) => ({ stateBackend: { type: 'postgres', dsnFile: '/dsn', ...own } })
const search = (own: object) => ({
  web: { enabled: true, search: { backend: 'opensearch', url: 'https://search.example', index: 'pages', ...own } },
})

export const gatewayValues: Readonly<Record<string, KeyValues>> = {
  'D3.rule.auditFailurePolicy': { at: 'auditFailurePolicy', accepted: ['open', 'closed'], refused: ['half', ''] },
  'D3.rule.modelPolicy': { at: 'modelPolicy', accepted: ['scope-only', 'policy'], refused: ['none'] },
  'D3.rule.upstreamNames': {
    at: 'upstreams',
    accepted: ['a', 'A.b_c-9', 'x'.repeat(63)],
    refused: ['', '-a', 'a b', 'a/b', 'x'.repeat(64)],
    file: (name) => ({ upstreams: { [String(name)]: 'https://notes.example/mcp' } }),
  },
  'D3.listen.logLevel': {
    at: 'logLevel',
    accepted: ['debug', 'info', 'warn', 'error', 'anything else'],
    refused: [5],
  },
  'D3.listen.tls.svidMode': {
    at: 'tls.svidMode',
    accepted: ['off', 'optional', 'required'],
    refused: ['always'],
    file: (svidMode) => ({ tls: { certFile: '/c', keyFile: '/k', clientCAFile: '/ca', svidMode } }),
  },
  'D3.identity.resourceBaseURL': {
    at: 'identity.resourceBaseURL',
    accepted: ['https://gateway.example'],
    refused: [''],
    file: (resourceBaseURL) => ({ identity: { ...issuers({}).identity, resourceBaseURL } }),
  },
  'D3.trustedIssuers.issuer': {
    at: 'identity.trustedIssuers[0].issuer',
    accepted: ['https://login.example'],
    refused: [undefined, ''],
    file: (issuer) => issuers({ issuer }),
  },
  'D3.trustedIssuers.namespace': {
    at: 'identity.trustedIssuers[0].namespace',
    accepted: ['team'],
    refused: [undefined, ''],
    file: (namespace) => issuers({ namespace }),
  },
  'D3.policy.rego.enforcement': { at: 'policy.rego.enforcement', accepted: ['enforce', 'dryRun'], refused: ['warn'] },
  'D3.route.upstream': {
    at: 'models.r.upstream',
    accepted: ['https://llm.example/v1'],
    refused: [undefined],
    file: (upstream) => route({ upstream }),
  },
  'D3.route.mode.azure-openai': {
    at: 'models.r.mode',
    accepted: ['v1', 'deployments'],
    refused: ['converse', 'native', 'direct'],
    file: cloudRoute('azure-openai'),
  },
  'D3.route.mode.bedrock': {
    at: 'models.r.mode',
    accepted: ['converse', 'openai'],
    refused: ['v1', 'native', 'direct'],
    file: cloudRoute('bedrock'),
  },
  'D3.route.mode.vertex': {
    at: 'models.r.mode',
    accepted: ['native', 'openai'],
    refused: ['v1', 'converse', 'direct'],
    file: cloudRoute('vertex'),
  },
  'D3.route.mode.anthropic': {
    at: 'models.r.mode',
    accepted: ['direct', 'vertex', 'bedrock'],
    refused: ['v1', 'converse', 'native'],
    file: (mode) =>
      route({
        provider: 'anthropic',
        mode,
        ...(mode === 'vertex' && { region: 'europe-west1', project: 'pro-ject' }),
        ...(mode === 'bedrock' && { region: 'eu-central-1' }),
        ...(mode === 'direct' && { apiKeyFile: '/key' }),
      }),
  },
  'D3.modelRouting.dataClassModels': {
    at: 'modelRouting.dataClassModels',
    accepted: ['public', 'internal', 'confidential', 'restricted'],
    refused: ['secret'],
    file: (name) => ({ modelRouting: { dataClassModels: { [String(name)]: ['small-*'] } } }),
  },
  'D3.auditSinks.name': {
    at: 'auditSinks[0].name',
    accepted: ['a', '0-a', 'x'.repeat(40)],
    refused: [undefined, '', 'A', '-a', 'a_b', 'x'.repeat(41)],
    file: (name) => sink({ name }),
  },
  'D3.auditSinks.address': {
    at: 'auditSinks[0].address',
    accepted: ['tcp://siem.example:514', 'tls://siem.example:6514'],
    refused: ['udp://siem.example:514', 'siem.example:514', 'tls://siem.example', undefined],
    file: (address) => sink({ address }),
  },
  'D3.auditSinks.url': {
    at: 'auditSinks[0].url',
    accepted: ['https://siem.example/in'],
    refused: ['https://user:secret@siem.example/in', undefined],
    file: (url) => http({ url }),
  },
  'D3.auditSinks.format.json': {
    at: 'auditSinks[0].format',
    accepted: ['json', 'cef', 'ocsf'],
    refused: ['xml'],
    file: (format) => http({ format }),
  },
  'D3.transparencyLog.api': {
    at: 'transparencyLog.api',
    accepted: ['v1', 'v2'],
    refused: ['v3'],
    file: (api) => ({ ...KEY, transparencyLog: { enabled: true, url: 'https://log.example', api } }),
  },
  'D3.transparencyLog.enabled': {
    at: 'transparencyLog.url',
    accepted: ['https://log.example'],
    refused: [''],
    file: (url) => ({ ...KEY, transparencyLog: { enabled: true, url } }),
  },
  'D3.approvals.approvalPreview.mode': {
    at: 'approvalPreview.mode',
    accepted: ['none', 'hash', 'redacted', 'full'],
    refused: ['some'],
  },
  'D3.approvals.quorum.minApprovers': {
    at: 'approvalQuorum.rules',
    accepted: [1, 10],
    refused: [-1, 11, 1.5],
    file: (minApprovers) => ({ approvalQuorum: { rules: { 'pay/*': { minApprovers } } } }),
  },
  'D3.notifiers.name': {
    at: 'notifiers',
    accepted: ['other'],
    refused: ['n'],
    file: (name) => ({ notifiers: [...notifier({}).notifiers, ...notifier({ name }).notifiers] }),
  },
  'D3.notifiers.url': {
    at: 'notifiers[0].url',
    accepted: ['https://chat.example'],
    refused: [undefined],
    file: (url) => notifier({ url }),
  },
  'D3.notifiers.accessTokenFile': {
    at: 'notifiers[0].accessTokenFile',
    accepted: ['/token'],
    refused: [undefined],
    file: (accessTokenFile) =>
      notifier({
        type: 'matrix',
        url: undefined,
        hmacSecretFile: undefined,
        homeserver: 'https://matrix.example',
        roomId: '!r:matrix.example',
        accessTokenFile,
      }),
  },
  'D3.dlp.profile.custom': {
    at: 'dlpProfiles.p.custom[0].id',
    accepted: ['a', 'order_9', 'x'.repeat(40)],
    refused: ['', 'A', 'a-b', 'x'.repeat(41)],
    file: (id) => ({ dlpProfiles: { p: { custom: [{ id, regex: 'ORDER-[0-9]+' }] } } }),
  },
  'D3.dlp.profile.requestAction': {
    at: 'dlpProfiles.p.requestAction',
    accepted: ['off', 'audit', 'redact', 'deny'],
    refused: ['block'],
    file: (requestAction) => ({ dlpProfiles: { p: { requestAction } } }),
  },
  'D3.dlp.profile.responseAction': {
    at: 'dlpProfiles.p.responseAction',
    accepted: ['off', 'audit', 'redact', 'deny'],
    refused: ['block'],
    file: (responseAction) => ({ dlpProfiles: { p: { responseAction } } }),
  },
  'D3.dlp.profile.streamCarryBytes': {
    at: 'dlpProfiles.p.streamCarryBytes',
    accepted: [-1, 256],
    refused: [-2],
    file: (streamCarryBytes) => ({ dlpProfiles: { p: { streamCarryBytes } } }),
  },
  'D3.guards.name': {
    at: 'guards',
    accepted: ['other'],
    refused: ['g'],
    file: (name) => ({ guards: [...guard({}).guards, ...guard({ name }).guards] }),
  },
  'D3.guards.url': {
    at: 'guards[0].url',
    accepted: ['https://guard.example'],
    refused: [undefined, ''],
    file: (url) => guard({ url }),
  },
  'D3.guards.on': {
    at: 'guards[0].on',
    accepted: [['toolResult'], ['toolArgs', 'llmPrompt']],
    refused: [['everything']],
    file: (on) => guard({ on }),
  },
  'D3.guards.threshold': {
    at: 'guards[0].threshold',
    accepted: [0.01, 1],
    refused: [0, 1.01, -1],
    file: (threshold) => guard({ threshold }),
  },
  'D3.guards.action': {
    at: 'guards[0].action',
    accepted: ['taint', 'block'],
    refused: ['warn'],
    file: (action) => guard({ action }),
  },
  'D3.captureArgs.dir': {
    at: 'captureArgs.dir',
    accepted: ['/captures'],
    refused: [''],
    file: (dir) => ({ captureArgs: { enabled: true, key: 'file:///key', dir } }),
  },
  'D3.captureArgs.key': {
    at: 'captureArgs.key',
    accepted: ['file:///key'],
    refused: ['', 'https://key'],
    file: (key) => ({ captureArgs: { enabled: true, dir: '/captures', key } }),
  },
  'D3.sessions.timelineMaxItems': { at: 'sessions.timelineMaxItems', accepted: [1, 10_000], refused: [0, 10_001] },
  'D3.sessions.listMaxSessions': { at: 'sessions.listMaxSessions', accepted: [1, 5000], refused: [0, 5001] },
  'D3.sessions.exec.endpointTemplate': {
    at: 'exec.endpointTemplate',
    accepted: ['http://{session}.example:8888'],
    refused: ['http://box.example:8888'],
  },
  'D3.web.maxBytes': { at: 'web.maxBytes', accepted: [1, 32 * MIB], refused: [32 * MIB + 1] },
  'D3.web.search.backend': {
    at: 'web.search.backend',
    accepted: ['none', 'searxng', 'opensearch'],
    refused: ['other'],
    file: (backend) => search({ backend, ...(backend === 'none' && { url: '', index: '' }) }),
  },
  'D3.web.search.index': {
    at: 'web.search.index',
    accepted: ['pages'],
    refused: [''],
    file: (index) => search({ index }),
  },
  'D3.web.search.maxResults': { at: 'web.search.maxResults', accepted: [1, 50], refused: [0, 51] },
  'D3.k8sOps.maxLogLines': { at: 'k8sOps.maxLogLines', accepted: [1, 5000], refused: [0, 5001] },
  'D3.k8sOps.maxLogBytes': { at: 'k8sOps.maxLogBytes', accepted: [MIB], refused: [MIB + 1] },
  'D3.k8sOps.maxListItems': { at: 'k8sOps.maxListItems', accepted: [1, 1000], refused: [0, 1001] },
  'D3.k8sOps.writes.mode': {
    at: 'k8sOps.writes.mode',
    accepted: ['disabled', 'proposal', 'apply'],
    refused: ['force'],
  },
  'D3.k8sOps.writes.approval': { at: 'k8sOps.writes.approval', accepted: ['required', 'policy'], refused: ['never'] },
  'D3.infra.maxPlanBytes': { at: 'infra.maxPlanBytes', accepted: [256 * MIB], refused: [256 * MIB + 1] },
  'D3.a2a.cardSigningKey': {
    at: 'a2a',
    accepted: ['https://gateway.example'],
    refused: [''],
    file: (publicURL) => ({ a2a: { cardSigningKey: 'file:///key.pem', publicURL } }),
  },
  'D3.txnTokens.mode.off': {
    at: 'txnTokens.mode',
    accepted: ['off', 'add', 'replace'],
    refused: ['both'],
    file: (mode) => txn({ mode }),
  },
  'D3.txnTokens.signingKey': {
    at: 'txnTokens.signingKey',
    accepted: ['file:///key.pem'],
    refused: [''],
    file: (signingKey) => txn({ signingKey }),
  },
  'D3.txnTokens.audience': {
    at: 'txnTokens.audience',
    accepted: ['plat.local'],
    refused: [''],
    file: (audience) => txn({ audience }),
  },
  'D3.txnTokens.ttlSeconds': {
    at: 'txnTokens.ttlSeconds',
    accepted: [1, 300],
    refused: [0, 301],
    file: (ttlSeconds) => txn({ ttlSeconds }),
  },
  'D3.dpop.maxAgeSeconds': { at: 'dpop.maxAgeSeconds', accepted: [0, 600], refused: [-1, 601] },
  'D3.tokenVault.keyURI': {
    at: 'tokenVault.keyURI',
    accepted: ['file:///key'],
    refused: ['', 'https://key'],
    file: (keyURI) => vault({ keyURI }),
  },
  'D3.tokenVault.providers.preset': {
    at: 'tokenVault.providers[0].preset',
    accepted: ['github', 'microsoft', 'google', 'salesforce', 'slack', 'generic'],
    refused: ['other'],
    file: (preset) => vault({}, { preset, ...(preset !== 'generic' && { issuer: undefined }) }),
  },
  'D3.tokenVault.providers.clientAuth': {
    at: 'tokenVault.providers[0].clientAuth',
    accepted: ['post', 'basic'],
    refused: ['none'],
    file: (clientAuth) => vault({}, { clientAuth }),
  },
  'D3.tokenVault.providers.grant': {
    at: 'tokenVault.providers[0].grant',
    accepted: ['authorization_code', 'id-jag'],
    refused: ['password'],
    file: (grant) => vault({}, { grant }),
  },
  'D3.ciba.issuer': {
    at: 'ciba.issuer',
    accepted: ['https://login.example'],
    refused: [''],
    file: (issuer) => ciba({ issuer }),
  },
  'D3.ciba.clientID': {
    at: 'ciba.clientID',
    accepted: ['id'],
    refused: [''],
    file: (clientID) => ciba({ clientID }),
  },
  'D3.ciba.clientAuth': {
    at: 'ciba.clientAuth',
    accepted: ['basic', 'post'],
    refused: ['none'],
    file: (clientAuth) => ciba({ clientAuth }),
  },
  'D3.ciba.fallback': {
    at: 'ciba.fallback',
    accepted: ['approvers', 'deny'],
    refused: ['allow'],
    file: (fallback) => ciba({ fallback }),
  },
  'D3.state.stateBackend.type': {
    at: 'stateBackend.type',
    accepted: ['file', 'postgres'],
    refused: ['redis'],
    file: (type) => ({ stateBackend: { type, ...(type === 'postgres' && { dsnFile: '/dsn' }) } }),
  },
  'D3.state.stateBackend.dsnFile': {
    at: 'stateBackend.dsnFile',
    accepted: ['/dsn'],
    refused: [''],
    file: (dsnFile) => postgres({ dsnFile }),
  },
  'D3.state.stateBackend.schema': {
    at: 'stateBackend.schema',
    accepted: ['_', 'plat_2', `a${'x'.repeat(62)}`],
    refused: ['', '2a', 'Plat', 'a-b', `a${'x'.repeat(63)}`],
    file: (schema) => postgres({ schema }),
  },
  'D3.state.stateBackend.counters': {
    at: 'stateBackend.counters',
    accepted: ['local'],
    refused: ['shared', 'none'],
    file: (counters) => ({ stateBackend: { counters } }),
  },
  'D3.state.configSync.items': {
    at: 'configSync.items[0]',
    accepted: [{ configMap: 'm', key: 'k', path: '/p' }],
    refused: [
      { key: 'k', path: '/p' },
      { configMap: 'm', path: '/p' },
      { configMap: 'm', key: 'k' },
    ],
    file: (item) => ({ configSync: { items: [item] } }),
  },
  'D3.otel.endpoint': {
    at: 'otel.endpoint',
    accepted: ['https://otel.example'],
    refused: [''],
    file: (endpoint) => ({ otel: { enabled: true, endpoint } }),
  },
  'D3.otel.protocol': { at: 'otel.protocol', accepted: ['http/json'], refused: ['grpc', 'http/protobuf'] },
  'D3.otel.sampleRatio': { at: 'otel.sampleRatio', accepted: [0, 0.5, 1], refused: [-0.1, 1.1] },
  'D3.configBundle.dir': {
    at: 'configBundle.dir',
    accepted: ['/live'],
    refused: [''],
    file: (dir) => ({ configBundle: { enabled: true, trustedKeyFiles: ['/pub.pem'], push: true, dir } }),
  },
  'D3.configBundle.signaturePolicy': {
    at: 'configBundle.signaturePolicy',
    accepted: ['classical', 'hybrid', 'pq'],
    refused: ['none'],
  },
  'D3.offline.edgeId': {
    at: 'offline.edgeId',
    accepted: ['North.1_a-b'],
    refused: ['', 'a b', 'a/b', 'é'],
    file: (edgeId) => edge({ edgeId }),
  },
  'D3.offline.enabled': {
    at: 'auditCheckpointKey',
    accepted: ['file:///key.pem'],
    refused: [''],
    file: (auditCheckpointKey) => ({ ...edge({}), auditCheckpointKey }),
  },
  'D3.offline.fullPolicy': {
    at: 'offline.fullPolicy',
    accepted: ['failClosed', 'dropOldestForwarded'],
    refused: ['drop'],
    file: (fullPolicy) => edge({ fullPolicy }),
  },
  'D3.offline.approvals': {
    at: 'offline.approvals',
    accepted: ['deny', 'localApprovers'],
    refused: ['allow'],
    file: (approvals) => edge({ approvals, localApprovers: ['user:ada'] }),
  },
  'D3.auditCollector.enabled': {
    at: 'auditCheckpointKey',
    accepted: ['file:///key.pem'],
    refused: [''],
    file: (auditCheckpointKey) => ({
      auditCheckpointKey,
      auditCollector: { enabled: true, edges: [{ id: 'north', publicKeyFiles: ['/pub.pem'] }] },
    }),
  },
  'D3.ctxengine.auditAnchors.file': {
    at: 'ctxengine.auditAnchors[0].file',
    accepted: ['/ledger.jsonl'],
    refused: [undefined, ''],
    file: (file) => ({ ctxengine: { upstream: 'https://engine.example', auditAnchors: [{ name: 'a', file }] } }),
  },
  'D3.sbxd.url': {
    at: 'sbxd.tokenFile',
    accepted: ['/token'],
    refused: [''],
    file: (tokenFile) => ({ sbxd: { url: 'https://box.example', mirrorDecisions: true, tokenFile } }),
  },
  'D3.clientAudit.file': {
    at: 'clientAudit.anchors[0].file',
    accepted: ['/ledger.jsonl'],
    refused: [undefined, ''],
    file: (file) => ({ clientAudit: { anchors: [{ name: 'a', file }] } }),
  },
  'D3.clientAudit.pubkey': {
    at: 'clientAudit.anchors[0].pubkey',
    accepted: ['ab'.repeat(32)],
    refused: ['ab', 'zz'.repeat(32)],
    file: (pubkey) => ({ clientAudit: { anchors: [{ name: 'a', file: '/ledger.jsonl', pubkey }] } }),
  },
  'D3.adminAuth.mode.token': {
    at: 'adminAuth.mode',
    accepted: ['token', 'oidc', 'both'],
    refused: ['none'],
    file: (mode) => (mode === 'token' ? { adminAuth: { mode } } : oidc({}, mode)),
  },
  'D3.adminAuth.roles': {
    at: 'adminAuth.roles',
    accepted: ['viewer', 'approver', 'auditor', 'admin', 'killswitch', 'audit-forwarder'],
    refused: ['owner'],
    file: (role) => ({ adminAuth: { ...oidc({}).adminAuth, roles: { [String(role)]: ['staff', 'user:ada'] } } }),
  },
  'D3.adminAuth.oidc.issuer': {
    at: 'adminAuth.oidc.issuer',
    accepted: ['https://login.example', 'http://login.example'],
    refused: ['', 'ftp://login.example', 'login.example'],
    file: (issuer) => oidc({ issuer }),
  },
  'D3.adminAuth.oidc.audience': {
    at: 'adminAuth.oidc.audience',
    accepted: ['plat'],
    refused: [''],
    file: (audience) => oidc({ audience }, 'both'),
  },
}
