/** Every row of document 2, the resources Agent and MCPServer. @table */
import type { Section } from './row.ts'

export const document2: readonly Section[] = [
  {
    section: 'quantity',
    heading: 'Quantities',
    keys: 'string integer decimal binarySuffixes decimalSuffixes exponent',
  },
  {
    section: 'kind',
    heading: 'Agent and MCPServer, properties',
    keys: `agent.kind agent.plural agent.namespaced agent.shortNames agent.category agent.columns agent.required agent.statusSubresource
      server.kind server.plural server.namespaced server.shortNames server.category server.columns server.required
      server.statusSubresource apiVersion`,
  },
  {
    section: 'agent',
    heading: 'Agent',
    keys: `image tier profile profile.default profile.browser profile.codeInterpreter command args env resources.claims
      resources.limits resources.requests policyRef scopes scopes.default idleTimeout idleTimeout.default maxSessionTTL
      maxConcurrentSessions maxConcurrentSessions.zero tools web.allowedDomains web.deniedDomains browser.allowedDomains browser.liveView
      codeInterpreter.workspaceSize workspace.sandboxOnly workspace.size workspace.mountPath workspace.storageClassName
      workspace.volumeSnapshotClassName budget model a2a profile.browser.scope profile.codeInterpreter.scope`,
  },
  {
    section: 'env',
    heading: 'Agent, env[] entries',
    keys: `name value value.references value.escape valueFrom.exactlyOne valueFrom.notWithValue configMapKeyRef.key configMapKeyRef.name
      configMapKeyRef.optional secretKeyRef.key secretKeyRef.name secretKeyRef.optional fieldRef.fieldPath fieldRef.apiVersion
      fieldRef.supported resourceFieldRef.resource resourceFieldRef.containerName resourceFieldRef.divisor resourceFieldRef.supported
      fileKeyRef.volumeName fileKeyRef.path fileKeyRef.key fileKeyRef.optional fileKeyRef.featureGate fileKeyRef.relativePath
      fileKeyRef.keyLength`,
  },
  {
    section: 'tools',
    heading: 'Agent, tools[] entries',
    keys: `name name.pattern serverRef.name serverRef.namespace serverRef.sharedAcrossNamespaces upstreamURL
      upstreamURL.implicitServer`,
  },
  {
    section: 'budget',
    heading: 'Agent, budget',
    keys: 'currency currency.default currency.pattern currency.equalsGateway perSessionUSD perDayUSD perMonthUSD',
  },
  {
    section: 'model',
    heading: 'Agent, model',
    keys: `provider provider.max provider.ctxengine provider.ctxengine.adapter name endpoint endpoint.pattern endpoint.bareHost
      endpoint.chatCompletionsStripped endpoint.sandboxVariable adapter.openai adapter.azure-openai adapter.bedrock adapter.vertex
      adapter.gemini adapter.anthropic adapter.oci-genai adapterMode.azure-openai adapterMode.bedrock adapterMode.vertex
      adapterMode.anthropic adapterMode.default apiVersion apiVersion.pattern apiKeySecretRef.name apiKeySecretRef.key apiKeySecretRef.neverInSandbox
      apiKeySecretRef.notInherited aliases dlpProfile dlpProfile.none jurisdiction jurisdiction.preferred region region.jurisdiction project
      maxTokensPerRequest requestsPerMinute requestsPerMinute.failsOver tokensPerMinute reasoning reasoning.detected providerTools
      providerTools.max providerTools.values providerTools.refused providerTools.cappedByTier providerTools.noHostedMcp
      fallbacks.on.error fallbacks.on.timeout fallbacks.on.5xx fallbacks.on.429 fallbacks.on.openCircuit
      fallbacks.on.exhaustedRate fallbacks fallbacks.max fallbacks.order fallbacks.sovereignty`,
  },
  {
    section: 'fallback',
    heading: 'Agent, model.fallbacks[]',
    keys: `endpoint name name.default adapter adapterMode apiVersion jurisdiction project region requestsPerMinute
      apiKeySecretRef`,
  },
  {
    section: 'a2a',
    heading: 'Agent, a2a',
    keys: `expose expose.requiresEndpoint expose.signedCard endpoint endpoint.onlyGateway description allowedCallers
      allowedCallers.byName allowedCallers.byNamespace allowedCallers.globs allowedCallers.emptyMeansNamespace
      allowedCallers.needScope skills skills.unlistedDenied streaming timeoutSeconds trust trust.default version version.default
      skills.id skills.id.selects skills.id.policyTool skills.name skills.description skills.examples skills.tags`,
  },
  {
    section: 'agentStatus',
    heading: 'Agent, status',
    keys: 'activeSessions conditions observedGeneration',
  },
  {
    section: 'server',
    heading: 'MCPServer',
    keys: `url url.pattern transport transport.onlyStreamableHttp protocolVersions protocolVersions.refused trust trust.default
      dataClass dataClass.default jurisdiction timeoutSeconds shared allowedNamespaces dlpProfile dlpProfile.precedence dlpProfile.none
      caBundleRef.name caBundleRef.key toolLabels.taints toolLabels.clearTaints toolLabels.clearTaints.all toolLabels.sinks
      toolPins.mergedWithPolicy toolPins.mode toolPins.mode.default toolPins.onChange toolPins.onChange.default
      toolPins.allowUnpinned toolPins.pins auth reachedAtMcpName scope`,
  },
  {
    section: 'auth',
    heading: 'MCPServer, auth',
    keys: `type type.default none bearerSecret headerSecret headerSecret.headerName oauthClientCredentials
      oauthClientCredentials.cached tokenExchange tokenExchange.actSub mtls perUser perUser.provider perUser.type
      provider.onlyWithPerUser secretRef.name secretRef.key oauth.tokenURL oauth.clientIdRef oauth.clientSecretRef oauth.audience
      oauth.resource oauth.scopes tokenExchange.audience mtls.certSecretRef provider.pattern`,
  },
  {
    section: 'serverStatus',
    heading: 'MCPServer, status',
    keys: 'conditions driftedTools driftedTools.max gatewayKey lastSeen observedGeneration observedTools',
  },
  {
    section: 'condition',
    heading: 'Condition object (both statuses)',
    keys: 'type status reason message lastTransitionTime observedGeneration',
  },
  {
    section: 'state',
    heading: 'States and transitions',
    keys: `agent.Ready agent.SovereigntyCompliant agent.ProviderToolsAllowed session.QuotaExceeded session.terminalPhases
      session.idleSuspended server.Ready server.SovereigntyCompliant server.Pinned server.pinnedTrue server.pinnedFalse
      session.staysPending`,
  },
  {
    section: 'error',
    heading: 'Errors',
    keys: `unknown_skill provider_hosted_tool protocolVersion budgetCurrency validation.exposeWithoutEndpoint validation.serverAuth
      validation.ctxengineAdapter`,
  },
]
