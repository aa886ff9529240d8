/** Every row of document 3, the gateway's configuration, endpoints and metrics. @table */
import { document3Metrics } from './document3-metrics.ts'
import type { Section } from './row.ts'

export const document3: readonly Section[] = [
  {
    section: 'load',
    heading: 'What the service does',
    keys: `path.flag path.env path.default unknownKeys allErrorsTogether exit1 listenOverrides secret.adminToken secret.auditHmacKey
      secret.fileVariants secret.neverInFile validator.warnings validator.strict validator.exitCodes`,
  },
  { section: 'flag', heading: 'What the service does', keys: 'config listen check-config version' },
  {
    section: 'rule',
    heading: 'Core validation rules',
    keys: `policyFile auditPath identityKeys upstreamsOrModels adminListenDiffers auditFailurePolicy modelPolicy tokenExchangeURL
      upstreamNames upstreamURLs sessionBudgetUSD shutdownSeconds`,
  },
  {
    section: 'listen',
    heading: 'Listeners and HTTP',
    keys: `listen adminListen maxBodyBytes bodyReadTimeoutSeconds upstreamTimeoutSeconds upstreamCAFile corsOrigins logLevel
      shutdownDelaySeconds shutdownTimeoutSeconds tls.certFile tls.keyFile tls.clientCAFile tls.svidMode tls.svidMode.off tls.svidMode.optional tls.svidMode.required tls.svidTrustDomains
      tls.reloadSeconds`,
  },
  {
    section: 'identity',
    heading: 'Identity',
    keys: `publicKeyFiles jwksURL jwksRefreshSeconds issuer audience leewaySeconds acceptMLDSA mldsaPublicKeyFiles resourceBaseURL
      trustedIssuers`,
  },
  {
    section: 'trustedIssuers',
    heading: 'Identity, trustedIssuers[]',
    keys: `issuer namespace jwksURL caFile algorithms jwksRefreshSeconds leewaySeconds authorizationServer agent agentClaim
      usernameClaim groupsClaim scopePrefix servers stepUpScopes`,
  },
  {
    section: 'policy',
    heading: 'Policies',
    keys: `policyFile policyReloadSeconds modelPolicy rego.url rego.strictestWins rego.timeoutMs rego.enforcement rego.enforcement.enforce rego.enforcement.dryRun rego.bearerTokenFile
      sovereigntyPolicyFile`,
  },
  {
    section: 'mcp',
    heading: 'MCP servers',
    keys: `upstreamsFile upstreamsFile.precedence upstreams upstreamCredentialsDir tokenExchangeURL pinStorePath pinCacheSeconds
      resolution.binding resolution.ownNamespace resolution.shared resolution.ambiguous resolution.static resolution.implicit
      resolution.unknown`,
  },
  {
    section: 'registry',
    heading: 'MCP servers, registry entries',
    keys: `url namespaces implicit trust dataClass jurisdiction protocolVersions timeoutSeconds caPEM auth dlpProfile pins
      toolLabels`,
  },
  {
    section: 'models',
    heading: 'Model routes',
    keys: 'modelsFile modelsFile.missing modelsFile.overrides models modelRouting pricingFile cloudCredentials',
  },
  {
    section: 'route',
    heading: 'Model routes, route keys',
    keys: `upstream model namespaces agents dlpProfile jurisdiction preferJurisdiction requestsPerMinute apiKeyFile
      sessionTokenStripped providerTools fallbacks fallbacks.nothingInherited provider.openai provider.azure-openai provider.bedrock
      provider.vertex provider.gemini provider.anthropic provider.oci-genai provider.ctxengine mode.azure-openai mode.bedrock
      mode.vertex mode.anthropic region project apiVersion auth.type.api-key auth.type.bearer auth.type.aws-sigv4 auth.type.gcp
      auth.type.azure-entra auth.type.oci auth.type.none auth.type.default auth.tokenFile auth.tokenEnv auth.accessKeyIdFile
      auth.secretAccessKeyFile auth.sessionTokenFile auth.signingService aliases reasoning`,
  },
  {
    section: 'modelRouting',
    heading: 'Model routes, modelRouting',
    keys: 'failureThreshold cooldownSeconds attemptTimeoutSeconds probeIntervalSeconds tierJurisdictions dataClassModels',
  },
  {
    section: 'cloudCredentials',
    heading: 'Model routes, cloudCredentials',
    keys: `aws.region aws.imds aws.partitionDNSSuffix aws.stsEndpoint azure.managedIdentity azure.identityBinding
      gcp.metadataHost`,
  },
  {
    section: 'audit',
    heading: 'Audit ledger',
    keys: `auditPath auditFailurePolicy.open auditFailurePolicy.closed auditCheckpointKey keyURI.file keyURI.kms keyURI.azurekv keyURI.pkcs11 auditCheckpointPQKey
      auditCheckpointIntervalSeconds auditCheckpointEvery auditCheckpointPublicKeyFiles auditSinks auditAcceptDivergedMirror
      transparencyLog`,
  },
  {
    section: 'auditSinks',
    heading: 'Audit ledger, auditSinks[]',
    keys: `name type.syslog type.http type.jsonl type.sentinel type.chronicle type.cloudwatch type.splunk-hec address url path
      format.json format.rfc5424-json format.cef format.ocsf format.default caFile certFile keyFile serverName headersFile batchSize
      pollIntervalMillis facility sdId timeoutSeconds tokenFile awsCredentialsDir credentials credentials.aws credentials.azure credentials.gcp dcrImmutableId streamName chronicleMode
      logType region logGroup logStream index source sourceType maxBatchBytes deadLetterPath deadLetterMaxBytes`,
  },
  {
    section: 'transparencyLog',
    heading: 'Audit ledger, transparencyLog',
    keys: 'enabled url api intervalSeconds publicKeyFiles timeoutSeconds',
  },
  {
    section: 'approvals',
    heading: 'Approvals',
    keys: `approvalTimeoutSeconds approvalStorePath approvalPreview.mode approvalPreview.mode.none
      approvalPreview.mode.hash approvalPreview.mode.redacted approvalPreview.mode.full approvalPreview.maxBytes approvalQuorum.default
      approvalQuorum.rules quorum.minApprovers quorum.approverGroups quorum.userConfirmation consoleURL notifiers
      notifyOutboxPath`,
  },
  {
    section: 'notifiers',
    heading: 'Approvals, notifiers[]',
    keys: `name type.webhook type.slack type.teams type.matrix url webhookURLFile hmacSecretFile signingSecretFile homeserver roomId
      accessTokenFile events userMap callbackOIDC.issuer callbackOIDC.audience callbackOIDC.jwksURL callbackOIDC.discoveryURL`,
  },
  {
    section: 'cost',
    heading: 'Revocations, budgets, cost',
    keys: `revocationsFile revocationsFile.failsClosed revocationsRecheckMillis revocationsJournalPath revocationMirror.enabled
      revocationMirror.namespace sessionBudgetUSD budgetsFile budgetTimezone budgetCurrency finopsStatePath finopsSaveSeconds
      energy.enabled energy.file energy.defaultRegion sandboxUsage.enabled sandboxUsage.reporters sandboxUsage.audience`,
  },
  {
    section: 'dlp',
    heading: 'DLP, taint, guards',
    keys: `dlpProfiles defaultProfile namespaces servers models precedence none taintStorePath taintRetentionSeconds guards
      captureArgs profile.requestAction.off profile.requestAction.audit profile.requestAction.redact profile.requestAction.deny
      profile.responseAction.off profile.responseAction.audit profile.responseAction.redact profile.responseAction.deny
      profile.detectors profile.custom profile.requestAction profile.responseAction profile.onSecret profile.maxScanBytes
      profile.onOversize profile.streamCarryBytes profile.entropyMinLength profile.entropyThreshold`,
  },
  {
    section: 'guards',
    heading: 'DLP, taint, guards, guards[]',
    keys: `name type.openai-moderation type.llama-prompt-guard type.lakera type.bedrock-guardrail type.http-json url model
      apiKeyFile on on.toolResult on.toolArgs on.llmPrompt namespaces servers tools threshold label action action.taint action.block timeoutMs failOpen maxBytes scorePath category positiveIndex
      region`,
  },
  {
    section: 'captureArgs',
    heading: 'DLP, taint, guards, captureArgs',
    keys: 'enabled dir key namespaces retentionDays dlpProfile',
  },
  {
    section: 'sessions',
    heading: 'Sessions, sandbox tools, memory',
    keys: `activity.enabled activity.intervalSeconds activity.apiServer activity.tokenFile activity.caFile traceURLTemplate
      timelineMaxItems listMaxSessions memoryFile memoryDataDir memorySweepSeconds exec.enabled exec.endpointTemplate
      exec.maxTimeoutSeconds exec.maxOutputBytes exec.keyFile egress.enabled liveView.enabled liveView.endpointTemplate evidence.dir
      evidence.maxBytes`,
  },
  {
    section: 'web',
    heading: 'Sessions, sandbox tools, memory, web',
    keys: `enabled allowedDomains deniedDomains namespaces defaultAllow allowedPorts allowedCIDRs allowIPLiterals maxBytes
      timeoutSeconds maxRedirects contentTypes respectRobots userAgent taintLabels search.backend search.url search.index
      search.fields search.urlField search.titleField search.snippetField search.authHeaderFile search.caFile search.maxResults`,
  },
  {
    section: 'k8sOps',
    heading: 'Sessions, sandbox tools, memory, k8sOps',
    keys: `enabled apiServer tokenFile caFile serviceAccount namespaces allowClusterScoped maxLogLines maxLogBytes maxListItems
      timeoutSeconds taintLabels writes.mode writes.approval writes.namespaces writes.maxReplicas`,
  },
  {
    section: 'infra',
    heading: 'Sessions, sandbox tools, memory, infra',
    keys: `enabled tiers.sensitiveTypes tiers.addSensitiveTypes tiers.dataBearingTypes tiers.addDataBearingTypes
      tiers.protectedAddresses tiers.addProtectedAddresses tiers.maxResources requireApprovalAtTier maxTier denyTypes maxPlanBytes
      authorizationTTLSeconds budgets.perSession budgets.perAgent budgets.perSession.resourcesPerHour budgets.perSession.maxTier
      budgets.perAgent.resourcesPerHour budgets.perAgent.maxTier budgets.perAgent.everyOther`,
  },
  {
    section: 'a2a',
    heading: 'Agent-to-agent, delegation, user credentials',
    keys: `routesFile cardSigningKey publicURL publicCards cardCacheSeconds maxDelegationDepth pushNotificationHosts`,
  },
  {
    section: 'txnTokens',
    heading: 'Agent-to-agent, delegation, user credentials',
    keys: 'mode.off mode.add mode.replace signingKey issuer audience workloadID ttlSeconds',
  },
  {
    section: 'dpop',
    heading: 'Agent-to-agent, delegation, user credentials',
    keys: 'require maxAgeSeconds publicURL',
  },
  {
    section: 'tokenVault',
    heading: 'Agent-to-agent, delegation, user credentials, tokenVault',
    keys: `enabled keyURI retiredKeyURIs storePath publicBaseURL login.issuer login.clientID login.clientSecretFile login.scopes
      login.usernameClaim login.caFile login.authorizationURL login.tokenURL login.jwksURL providers.name providers.preset
      providers.clientID providers.clientSecretFile providers.authorizationURL providers.tokenURL providers.revocationURL
      providers.scopes providers.extraAuthParams providers.tenant providers.domain providers.clientAuth providers.disablePKCE
      providers.issuer providers.resource providers.caFile providers.grant providers.idJag.idpTokenURL providers.idJag.idpClientID
      providers.idJag.idpClientSecretFile providers.idJag.audience providers.idJag.resource providers.idJag.scopes
      providers.allowedServers providers.allowedNamespaces providers.allowAnyServer flowTTLSeconds allowUnverifiedPrincipal
      externalUserIssuers userRealm isolateExternalIssuers keepOnKillSwitch mirror.enabled mirror.namespace`,
  },
  {
    section: 'ciba',
    heading: 'Agent-to-agent, delegation, user credentials, ciba',
    keys: `enabled issuer backchannelAuthenticationEndpoint tokenEndpoint jwksURL clientID clientSecretFile clientAuth caFile scopes
      acrValues userClaim requestedExpirySeconds fallback fallback.approvers fallback.deny bindingMessagePrefix`,
  },
  {
    section: 'state',
    heading: 'State backend, configuration sync',
    keys: `stateBackend.type stateBackend.dsnFile stateBackend.schema stateBackend.maxConns stateBackend.pollMillis
      stateBackend.leader.retryMillis stateBackend.counters configSync.enabled configSync.namespace configSync.pollMillis
      configSync.apiServer configSync.tokenFile configSync.caFile configSync.items resourceAPI.enabled resourceAPI.dir posture.replicas
      posture.accept tenantsFile tenantLedgerDir licenseFile`,
  },
  {
    section: 'otel',
    heading: 'Telemetry',
    keys: `enabled endpoint protocol headersFile caFile serviceName sampleRatio recordArgs recordUser resourceAttributes maxQueueSize
      maxExportBatchSize exportIntervalMillis exportTimeoutSeconds genAI.captureContent genAI.contentDlpProfile genAI.maxContentBytes
      genAI.emitLegacySystem`,
  },
  {
    section: 'configBundle',
    heading: 'Evidence, bundles, offline edge, collector, integrations',
    keys: `enabled dir trustedKeyFiles trustedIssuers signaturePolicy statePath maxBytes leewaySeconds push pull.url pull.tokenFile
      pull.caFile pull.maxBackoffSeconds dropDir pollSeconds`,
  },
  {
    section: 'offline',
    heading: 'Evidence, bundles, offline edge, collector, integrations',
    keys: `enabled edgeId spoolDir spoolMaxBytes fullPolicy segmentMaxRecords sealIntervalSeconds collectorKeyFiles forward.url
      forward.tokenFile forward.caFile forward.intervalSeconds forward.maxBackoffSeconds forward.timeoutSeconds receiptDropDir
      disconnectedAfterSeconds maxRevocationStalenessSeconds highRiskTools approvals localApprovers`,
  },
  {
    section: 'auditCollector',
    heading: 'Evidence, bundles, offline edge, collector, integrations',
    keys: 'enabled id dir edges dropDir pollSeconds maxSegmentBytes',
  },
  {
    section: 'ctxengine',
    heading: 'Evidence, bundles, offline edge, collector, integrations',
    keys: `upstream apiKeyFile stateless contextIdleSeconds maxContexts quarantineSnapshotDir checkpointDir auditAnchors.name
      auditAnchors.file auditAnchors.intervalSeconds auditAnchors.continuation auditAnchors.failClosed`,
  },
  {
    section: 'sbxd',
    heading: 'Evidence, bundles, offline edge, collector, integrations',
    keys: 'socket url tokenFile mirrorDecisions anchorIntervalSeconds queueSize',
  },
  {
    section: 'clientAudit',
    heading: 'Evidence, bundles, offline edge, collector, integrations',
    keys: 'name file pubkey requireSigned allowRestarts intervalSeconds',
  },
  {
    section: 'chart',
    heading: 'Deployment chart defaults',
    keys: `configMap policyFile auditPath jwksURL tokenExchangeURL shutdownDelaySeconds publicKeyFiles checkpointKey
      configSyncPaths`,
  },
  { section: 'default', heading: 'Resources and their fields', keys: 'keys complete entries computed' },
  {
    section: 'endpoint',
    heading: 'Endpoints',
    keys: `mcp llm a2a connectProxy exec sessions timeline revocations audit.jwks usage.sandbox connect auth.config config.bundle
      metrics readyz`,
  },
  {
    section: 'adminAuth',
    heading: 'Authentication',
    keys: `mode.token mode.oidc mode.both roles role.viewer role.approver role.auditor role.admin role.killswitch
      role.audit-forwarder namespaceRoles devTokenApprovers oidc.issuer oidc.audience oidc.jwksURL oidc.jwksRefreshSeconds
      oidc.usernameClaim oidc.groupsClaim oidc.algorithms oidc.caFile oidc.leewaySeconds oidc.clientID oidc.scopes`,
  },
  {
    section: 'event',
    heading: 'Events',
    keys: 'everyCallRecorded checkpointsSigned sinksStreamed segmentsForwarded notifiersTold budgetThreshold',
  },
  ...document3Metrics,
  {
    section: 'alert',
    heading: 'Alert rules shipped with the chart',
    keys: `runbookLinks thresholds SessionReadySLO.claim SessionReadySLO.direct SessionFailureRate WarmPoolEmpty TokenMintSlow
      OperatorReconcileErrors ConfigMapNearLimit GatewayAuditCommitSlow AuditLedgerUnavailable GatewayNotReady ApprovalsBacklog
      RevocationListUnavailable RevocationLag ConfigSyncFailures GatewayDenyRateHigh GatewayUpstreamErrors BudgetExceeded
      ModelCircuitOpen AuditSinkLag AttestationFailureRate LicenseExpiring LicenseNodeLimitExceeded`,
  },
  {
    section: 'error',
    heading: 'Errors',
    keys: `unknownKey coreRule revocationsFile adminToken unknown_server ambiguous_server policyEngine guard_unavailable spoolFull
      adminOnMainListener budgetCurrency provider_hosted_tool`,
  },
  {
    section: 'limit',
    heading: 'Limits',
    keys: `body bodyRead upstreamHeaders drain approvalLifetime minApprovers txnTokenLifetime dpopAge delegationDepth
      failover fallbacks providerTools web exec clusterOps timelinePage sessionPage guardText dlpScan checkpoints sinkBatch deadLetter
      offlineSpool segmentRecords disconnected bundles plan configMap`,
  },
]
