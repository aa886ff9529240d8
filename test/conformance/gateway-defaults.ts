/** The default that the contract's tables give to every key of gateway.json. @table */

/** A path in gateway.json to its default. */
export type Defaults = Readonly<Record<string, unknown>>

const MIB = 1024 * 1024
const UNTRUSTED = ['untrusted-input']

/** Keys of which the contract says that nothing is set: an empty text, list or map, `false`, or 0 where 0 means off. */
const unset = `
  adminListen upstreamCAFile tls.certFile tls.keyFile tls.clientCAFile identity.jwksURL identity.issuer identity.resourceBaseURL
  policy.rego.url policy.rego.bearerTokenFile sovereigntyPolicyFile upstreamCredentialsDir tokenExchangeURL pinStorePath
  modelsFile pricingFile auditCheckpointKey auditCheckpointPQKey approvalStorePath consoleURL notifyOutboxPath revocationsFile
  budgetsFile energy.file energy.defaultRegion taintStorePath activity.apiServer activity.tokenFile activity.caFile
  sessions.traceURLTemplate memoryFile exec.keyFile web.search.url web.search.index web.search.authHeaderFile
  web.search.caFile k8sOps.apiServer k8sOps.tokenFile k8sOps.caFile k8sOps.serviceAccount a2a.routesFile a2a.cardSigningKey
  a2a.publicURL txnTokens.signingKey txnTokens.audience tokenVault.keyURI tokenVault.login.issuer tokenVault.login.clientID
  tokenVault.login.clientSecretFile tokenVault.login.usernameClaim tokenVault.login.caFile tokenVault.login.authorizationURL
  tokenVault.login.tokenURL tokenVault.login.jwksURL ciba.issuer ciba.backchannelAuthenticationEndpoint ciba.tokenEndpoint
  ciba.jwksURL ciba.clientID ciba.clientSecretFile ciba.caFile stateBackend.dsnFile configSync.apiServer configSync.tokenFile
  configSync.caFile resourceAPI.dir tenantsFile licenseFile otel.endpoint otel.headersFile otel.caFile
  otel.genAI.contentDlpProfile configBundle.dir configBundle.pull.url configBundle.pull.tokenFile configBundle.pull.caFile
  configBundle.dropDir offline.edgeId offline.forward.url offline.forward.tokenFile offline.forward.caFile
  offline.receiptDropDir auditCollector.dropDir ctxengine.upstream ctxengine.apiKeyFile ctxengine.quarantineSnapshotDir
  ctxengine.checkpointDir sbxd.url sbxd.tokenFile adminAuth.oidc.issuer adminAuth.oidc.audience adminAuth.oidc.jwksURL
  adminAuth.oidc.caFile adminAuth.oidc.clientID dlp.defaultProfile captureArgs.dir captureArgs.key transparencyLog.url
  auditRetention.path auditRetention.url auditRetention.region auditRetention.awsCredentialsDir auditRetention.caFile`

const emptyLists = `
  corsOrigins tls.svidTrustDomains identity.mldsaPublicKeyFiles identity.trustedIssuers auditCheckpointPublicKeyFiles auditSinks
  notifiers sandboxUsage.reporters guards captureArgs.namespaces web.allowedDomains web.deniedDomains web.allowedCIDRs
  k8sOps.namespaces infra.denyTypes a2a.pushNotificationHosts tokenVault.retiredKeyURIs tokenVault.login.scopes
  tokenVault.providers tokenVault.externalUserIssuers ciba.scopes ciba.acrValues configSync.items posture.accept
  configBundle.trustedKeyFiles configBundle.trustedIssuers offline.collectorKeyFiles offline.localApprovers
  auditCollector.edges ctxengine.auditAnchors clientAudit.anchors adminAuth.oidc.scopes transparencyLog.publicKeyFiles
  approvalQuorum.default.approverGroups infra.tiers.addSensitiveTypes infra.tiers.addDataBearingTypes
  infra.tiers.addProtectedAddresses`

const emptyMaps = `
  upstreams endpointJurisdictions models modelRouting.tierJurisdictions modelRouting.dataClassModels dlpProfiles dlp.namespaces dlp.servers dlp.models
  approvalQuorum.rules web.namespaces adminAuth.roles adminAuth.namespaceRoles otel.resourceAttributes infra.budgets.perSession
  infra.budgets.perAgent`

const off = `
  identity.acceptMLDSA auditAcceptDivergedMirror transparencyLog.enabled revocationMirror.enabled energy.enabled
  sandboxUsage.enabled captureArgs.enabled activity.enabled exec.enabled egress.enabled liveView.enabled web.enabled
  web.defaultAllow web.allowIPLiterals web.respectRobots k8sOps.enabled k8sOps.allowClusterScoped infra.enabled a2a.publicCards
  dpop.require tokenVault.enabled tokenVault.allowUnverifiedPrincipal tokenVault.isolateExternalIssuers
  tokenVault.keepOnKillSwitch tokenVault.mirror.enabled ciba.enabled configSync.enabled resourceAPI.enabled otel.enabled
  otel.recordArgs otel.recordUser otel.genAI.captureContent otel.genAI.emitLegacySystem configBundle.enabled configBundle.push
  offline.enabled auditCollector.enabled ctxengine.stateless sbxd.mirrorDecisions adminAuth.devTokenApprovers
  cloudCredentials.aws.imds cloudCredentials.azure.managedIdentity cloudCredentials.azure.identityBinding`

const each = (keys: string, value: unknown): Defaults =>
  Object.fromEntries(
    keys
      .trim()
      .split(/\s+/)
      .map((key) => [key, value]),
  )

/** Keys whose default is a value, or that are unset, in a gateway.json that says no more than it must. */
export const gatewayDefaults: Defaults = {
  ...each(unset, ''),
  ...each(emptyLists, []),
  ...each(emptyMaps, {}),
  ...each(off, false),
  listen: ':8080',
  maxBodyBytes: 4_194_304,
  bodyReadTimeoutSeconds: 60,
  upstreamTimeoutSeconds: 60,
  logLevel: 'info',
  shutdownDelaySeconds: 0,
  shutdownTimeoutSeconds: 20,
  'tls.svidMode': 'off',
  'tls.reloadSeconds': 30,
  'identity.jwksRefreshSeconds': 300,
  'identity.audience': 'plat-gateway',
  'identity.leewaySeconds': 30,
  policyReloadSeconds: 2,
  modelPolicy: 'scope-only',
  refusals: 'result',
  mcpSeparator: '__',
  mcpListSeconds: 4,
  'policy.rego.timeoutMs': 250,
  'policy.rego.enforcement': 'enforce',
  pinCacheSeconds: 60,
  'modelRouting.failureThreshold': 3,
  'modelRouting.cooldownSeconds': 30,
  'modelRouting.probeIntervalSeconds': 0,
  'modelRouting.cacheMaxBytes': 32 * MIB,
  'modelUploads.maxBytes': 32 * MIB,
  'modelUploads.totalBytes': 1024 * MIB,
  'modelUploads.dir': '',
  auditFailurePolicy: 'open',
  auditCheckpointIntervalSeconds: 60,
  auditCheckpointEvery: 1000,
  auditSegmentBytes: 268_435_456,
  auditSegmentSeconds: 0,
  auditSegmentCompression: 'none',
  'auditRetention.archive': 'none',
  'auditRetention.days': 0,
  'auditRetention.bytes': 0,
  'auditRetention.timeoutSeconds': 60,
  auditVerifyBytesPerSecond: 33_554_432,
  'transparencyLog.api': 'v1',
  'transparencyLog.intervalSeconds': 0,
  'transparencyLog.timeoutSeconds': 30,
  approvalTimeoutSeconds: 300,
  approvalAnswerAfterSeconds: 4,
  'approvalPreview.mode': 'redacted',
  'approvalPreview.maxBytes': 4096,
  'approvalQuorum.default.minApprovers': 1,
  revocationsRecheckMillis: 250,
  'revocationMirror.namespace': 'plat-system',
  sessionBudgetUSD: 0,
  budgetTimezone: 'UTC',
  finopsSaveSeconds: 10,
  'sandboxUsage.audience': 'plat-sandbox-usage',
  taintRetentionSeconds: 86_400,
  'captureArgs.retentionDays': 30,
  'activity.intervalSeconds': 60,
  'sessions.timelineMaxItems': 1000,
  'sessions.listMaxSessions': 500,
  memorySweepSeconds: 3600,
  'exec.endpointTemplate': 'http://{session}.{namespace}.svc.cluster.local:8888',
  'exec.maxTimeoutSeconds': 300,
  'exec.maxOutputBytes': 10 * MIB,
  'liveView.endpointTemplate': 'http://{session}.{namespace}.svc.cluster.local:6080',
  'evidence.maxBytes': 50 * MIB,
  'web.allowedPorts': [80, 443],
  'web.maxBytes': 2 * MIB,
  'web.timeoutSeconds': 15,
  'web.maxRedirects': 5,
  'web.contentTypes': [
    'text/html',
    'text/plain',
    'text/markdown',
    'text/csv',
    'text/xml',
    'application/xhtml+xml',
    'application/xml',
    'application/json',
  ],
  'web.userAgent': 'plat-web/1.0 (+governed fetch)',
  'web.taintLabels': UNTRUSTED,
  'web.search.backend': 'none',
  'web.search.fields': ['title^2', 'content'],
  'web.search.urlField': 'url',
  'web.search.titleField': 'title',
  'web.search.snippetField': 'content',
  'web.search.maxResults': 10,
  'k8sOps.maxLogLines': 200,
  'k8sOps.maxLogBytes': 65_536,
  'k8sOps.maxListItems': 200,
  'k8sOps.timeoutSeconds': 10,
  'k8sOps.taintLabels': UNTRUSTED,
  'k8sOps.writes.mode': 'proposal',
  'k8sOps.writes.approval': 'required',
  'k8sOps.writes.maxReplicas': 50,
  'infra.tiers.maxResources': 50,
  'infra.requireApprovalAtTier': 3,
  'infra.maxTier': 4,
  'infra.maxPlanBytes': 16 * MIB,
  'infra.authorizationTTLSeconds': 3600,
  'a2a.cardCacheSeconds': 300,
  'a2a.maxDelegationDepth': 5,
  'txnTokens.mode': 'off',
  'txnTokens.issuer': 'plat-gateway',
  'txnTokens.ttlSeconds': 60,
  'dpop.maxAgeSeconds': 60,
  'tokenVault.flowTTLSeconds': 600,
  'tokenVault.mirror.namespace': 'plat-system',
  'ciba.clientAuth': 'basic',
  'ciba.fallback': 'approvers',
  'ciba.bindingMessagePrefix': 'PLAT',
  'stateBackend.type': 'file',
  'stateBackend.schema': 'plat',
  'stateBackend.maxConns': 10,
  'stateBackend.pollMillis': 250,
  'stateBackend.leader.retryMillis': 1000,
  'configSync.pollMillis': 1000,
  'posture.replicas': 0,
  'otel.protocol': 'http/json',
  'otel.serviceName': 'plat-gateway',
  'otel.sampleRatio': 1,
  'otel.maxQueueSize': 2048,
  'otel.maxExportBatchSize': 512,
  'otel.exportIntervalMillis': 5000,
  'otel.exportTimeoutSeconds': 10,
  'otel.genAI.maxContentBytes': 16_384,
  'configBundle.signaturePolicy': 'classical',
  'configBundle.maxBytes': 64 * MIB,
  'configBundle.leewaySeconds': 60,
  'configBundle.pull.maxBackoffSeconds': 300,
  'configBundle.pollSeconds': 30,
  'offline.spoolMaxBytes': 1024 * MIB,
  'offline.fullPolicy': 'failClosed',
  'offline.segmentMaxRecords': 1000,
  'offline.sealIntervalSeconds': 60,
  'offline.forward.intervalSeconds': 10,
  'offline.forward.maxBackoffSeconds': 300,
  'offline.forward.timeoutSeconds': 30,
  'offline.disconnectedAfterSeconds': 300,
  'offline.maxRevocationStalenessSeconds': 0,
  'offline.approvals': 'deny',
  'auditCollector.pollSeconds': 30,
  'auditCollector.maxSegmentBytes': 64 * MIB,
  'ctxengine.contextIdleSeconds': 1800,
  'ctxengine.maxContexts': 4096,
  'sbxd.anchorIntervalSeconds': 0,
  'sbxd.queueSize': 1024,
  'adminAuth.mode': 'token',
  'adminAuth.oidc.jwksRefreshSeconds': 300,
  'adminAuth.oidc.groupsClaim': 'groups',
  'adminAuth.oidc.algorithms': ['RS256', 'ES256', 'EdDSA'],
}

/** Keys whose default is computed from another key or the environment: `D3.default.computed.<key>`, shown by the tests of their features. */
export const computedDefaults: readonly string[] = `
  modelRouting.attemptTimeoutSeconds cloudCredentials.aws.region cloudCredentials.aws.partitionDNSSuffix
  cloudCredentials.aws.stsEndpoint cloudCredentials.gcp.metadataHost revocationsJournalPath budgetCurrency finopsStatePath
  captureArgs.dlpProfile memoryDataDir evidence.dir k8sOps.writes.namespaces infra.tiers.sensitiveTypes
  infra.tiers.dataBearingTypes infra.tiers.protectedAddresses txnTokens.workloadID dpop.publicURL tokenVault.storePath
  tokenVault.publicBaseURL tokenVault.userRealm ciba.userClaim ciba.requestedExpirySeconds configSync.namespace tenantLedgerDir
  configBundle.statePath offline.spoolDir offline.highRiskTools auditCollector.id auditCollector.dir sbxd.socket
  adminAuth.oidc.usernameClaim`
  .trim()
  .split(/\s+/)

/** Keys that the contract does not name. */
export const keysBeyondContract: readonly string[] = [
  'approvalPreview.maxStoredBytes',
  'maxConnectionsPerPeer',
  'trustedProxies',
  'tokenExchangeAudiences',
  'adminAuth.people',
  'adminAuth.tenantRoles',
  'adminAuth.oidc.resource',
  'endpointJurisdictions',
  'adminAuth.stepUp.approve.acr',
  'adminAuth.stepUp.approve.amr',
  'adminAuth.stepUp.approve.maxAgeSeconds',
  'adminAuth.stepUp.revoke.acr',
  'adminAuth.stepUp.revoke.amr',
  'adminAuth.stepUp.revoke.maxAgeSeconds',
  'adminAuth.stepUp.accept.acr',
  'adminAuth.stepUp.accept.amr',
  'adminAuth.stepUp.accept.maxAgeSeconds',
  'adminAuth.stepUp.view.acr',
  'adminAuth.stepUp.view.amr',
  'adminAuth.stepUp.view.maxAgeSeconds',
  'adminAuth.stepUp.control.acr',
  'adminAuth.stepUp.control.amr',
  'adminAuth.stepUp.control.maxAgeSeconds',
  'liveView.idleSeconds',
  'liveView.maxSeconds',
  'console.clientID',
  'console.clientSecretFile',
  'console.sessionSeconds',
  'console.idleSeconds',
  'otel.jurisdiction',
  'policy.rego.jurisdiction',
  'auditRetention.jurisdiction',
  'auditRetention.tenants',
  'transparencyLog.jurisdiction',
  'offline.forward.jurisdiction',
  'exec.taintLabels',
  'pinReports.enabled',
  'pinReports.intervalSeconds',
  'pinReports.apiServer',
  'pinReports.tokenFile',
  'pinReports.caFile',
]

/** An entry of a list or map of gateway.json that says only what it must, and the defaults that the contract gives to the rest. */
export interface EntryDefaults {
  /** The key that holds it, and one entry with its required members. */
  readonly file: object
  /** Path of the entry, with indexes and names as members. */
  readonly at: string
  readonly defaults: Defaults
}

export const entryDefaults: readonly EntryDefaults[] = [
  {
    file: {
      identity: {
        publicKeyFiles: ['/k'],
        resourceBaseURL: 'https://gateway.example',
        trustedIssuers: [{ issuer: 'https://login.example', namespace: 'team', algorithms: ['ES256'] }],
      },
    },
    at: 'identity.trustedIssuers.0',
    defaults: { jwksRefreshSeconds: 300, agent: 'external', groupsClaim: 'groups', jwksURL: '', servers: [] },
  },
  {
    file: { models: { small: { upstream: 'https://llm.example/v1' } } },
    at: 'models.small',
    defaults: {
      provider: 'openai',
      requestsPerMinute: 0,
      weight: 1,
      contextTokens: 0,
      balancing: 'order',
      retries: { attempts: 0, budgetPercent: 20, maxWaitSeconds: 10 },
      cache: { ttlSeconds: 0, scope: 'user' },
      providerTools: [],
      fallbacks: [],
      aliases: {},
    },
  },
  {
    file: { auditSinks: [{ name: 'siem', type: 'syslog', address: 'tls://siem.example:6514' }] },
    at: 'auditSinks.0',
    defaults: {
      batchSize: 100,
      pollIntervalMillis: 1000,
      facility: 13,
      sdId: 'plat@32473',
      timeoutSeconds: 15,
      sourceType: 'plat:audit',
      deadLetterMaxBytes: 64 * MIB,
    },
  },
  {
    file: { approvalQuorum: { rules: { 'pay/*': {} } } },
    at: 'approvalQuorum.rules.pay/*',
    defaults: { minApprovers: 1, approverGroups: [] },
  },
  {
    file: { dlpProfiles: { standard: {} } },
    at: 'dlpProfiles.standard',
    defaults: {
      requestAction: 'redact',
      responseAction: 'redact',
      maxScanBytes: MIB,
      streamCarryBytes: 256,
      entropyMinLength: 32,
      entropyThreshold: 4.3,
    },
  },
  {
    file: { guards: [{ name: 'g', type: 'http-json', url: 'https://guard.example/score' }] },
    at: 'guards.0',
    defaults: {
      on: ['toolResult'],
      threshold: 0.5,
      label: 'prompt-injection-suspected',
      action: 'taint',
      timeoutMs: 300,
      failOpen: true,
      maxBytes: 16_384,
      scorePath: 'score',
      positiveIndex: 1,
    },
  },
  {
    file: {
      tokenVault: {
        providers: [{ name: 'notes', clientID: 'id' }],
      },
    },
    at: 'tokenVault.providers.0',
    defaults: {
      preset: 'generic',
      clientAuth: 'post',
      disablePKCE: false,
      grant: 'authorization_code',
      allowAnyServer: false,
    },
  },
  {
    file: { ctxengine: { auditAnchors: [{ name: 'a', file: '/f' }] } },
    at: 'ctxengine.auditAnchors.0',
    defaults: { intervalSeconds: 60 },
  },
  {
    file: { clientAudit: { anchors: [{ name: 'a', file: '/f' }] } },
    at: 'clientAudit.anchors.0',
    defaults: { intervalSeconds: 60 },
  },
]
