/** Every row of document 1, the identity broker. @table */
import type { Section } from './row.ts'

export const document1: readonly Section[] = [
  {
    section: 'service',
    heading: 'What the service does',
    keys: `issuesSessionTokens verifiesTokens bindsDpopKeys issuesNonces exchanges delegates publishesJwks publishesDiscovery
      bootstraps servesProbes defaultPort bootstrapOffByDefault healthzOnBothPorts`,
  },
  {
    section: 'header',
    heading: 'Session token',
    keys: 'compactJws alg kid otherAlgorithmsRejected transactionTokenRefused noKidOnlyWithOneKey',
  },
  {
    section: 'claim',
    heading: 'Session token',
    keys: `iss sub subMatchesClaims aud iat nbf exp jti act actNested scope plat_ns plat_agent plat_session plat_tier plat_groups
      plat_principal_verified plat_parent_jti plat_delegator_jti plat_parent_session plat_fork_root plat_inherited_taints
      plat_substrate plat_substrate.check plat_substrate.sandbox plat_substrate.isolation plat_substrate.attestation
      plat_substrate.egress plat_substrate.digest plat_substrate.platform plat_substrate.workload plat_substrate.jurisdiction cnf.jkt`,
  },
  {
    section: 'scope',
    heading: 'Session token',
    keys: 'tools models agents tier-0 tier-1 tier-2',
  },
  {
    section: 'proof',
    heading: 'Proof object (in the mint request)',
    keys: `check check.kubernetes check.spiffe check.aws-iid check.gcp-identity check.azure-imds check.tee check.sandboxDriver
      sandbox nonce token document signature format x5c evidence`,
  },
  {
    section: 'exchangeConfig',
    heading: 'Exchange configuration file',
    keys: `audiences maxTTLSeconds maxTTLSeconds.default allowedScopes allowedNamespaces provider provider.aws-sts provider.gcp-sts
      provider.azure-entra params params.roleArn`,
  },
  {
    section: 'discovery',
    heading: 'Federation discovery document',
    keys: `issuer jwks_uri response_types_supported subject_types_supported id_token_signing_alg_values_supported
      claims_supported`,
  },
  {
    section: 'flag',
    heading: 'Broker flags that shape the API',
    keys: `listen bootstrap-listen trust-domain issuer audience default-ttl max-ttl exchange-config max-delegation-depth
      txn-token-keys txn-token-audience tenants-file tenant-keys-dir tenant-reload identity-checks sandbox-check require-proof
      federation-key federation-issuer previous-keys sign-alg public-url tls-cert tls-key bootstrap-audience shutdown-delay`,
  },
  {
    section: 'state',
    heading: 'States and transitions',
    keys: `mintWithDpopJkt bindBearer firstBindWins bindBoundToken bindAnotherKey bootstrapFirstPod bootstrapOtherPod
      readinessDrains bindRecordPerReplica`,
  },
  {
    section: 'endpoint',
    heading: 'Endpoints',
    keys: `token token.verify token.bind proof.nonce exchange jwks openid-configuration federation.jwks healthz readyz version
      metrics bootstrap noStore keyDocumentsCached`,
  },
  {
    section: 'mint',
    heading: 'POST /v1/token',
    keys: `namespace agent session user scopes tier ttlSeconds ttlSeconds.zero ttlSeconds.capped ttlSeconds.negative audience groups
      groups.max principalVerified parentSession forkRoot inheritedTaints proof dpopJkt unknownFieldRejected contentType
      response.token response.expiresAt response.spiffeId response.jti response.kid response.tokenType response.substrate`,
  },
  {
    section: 'nonce',
    heading: 'POST /v1/proof/nonce',
    keys: 'check response.check response.nonce response.expiresAt singleUse checkWithoutNonces',
  },
  {
    section: 'verify',
    heading: 'POST /v1/token/verify',
    keys: 'token audience checks.signature checks.issuer checks.expiry checks.audience checks.tenantKey valid invalid missingToken',
  },
  {
    section: 'bind',
    heading: 'POST /v1/token/bind',
    keys: `authorization dpopProof ath response.token response.tokenType response.expiresAt response.jti response.jkt
      challenge`,
  },
  {
    section: 'exchange',
    heading: 'POST /v1/exchange',
    keys: `form json grant_type subject_token subject_token_type.jwt subject_token_type.access_token subject_token_type.txn_token
      audience scope scope.empty requested_ttl_seconds actor_token actor_token_type requested_token_type response.access_token
      response.issued_token_type response.token_type response.expires_in response.scope rule.sessionTokenOnly rule.notExchanged
      rule.audienceListed rule.namespaceAllowed rule.scopesIntersected rule.lifetime rule.neverLongerThanSubject rule.parentJti
      rule.providerCredential rule.boundSubjectNeedsProof rule.downScopeKeepsBinding`,
  },
  {
    section: 'delegation',
    heading: 'POST /v1/exchange, delegation rules',
    keys: `actorIsOwnSessionToken boundActorNeedsProof subject.transactionToken subject.sessionToken subject.grantsAgent
      subject.grantsAgentAcrossNamespaces subject.notBound audienceDefault actChain delegatorJti lifetime depth sameTenant`,
  },
  {
    section: 'jwks',
    heading: 'GET /.well-known/jwks.json',
    keys: `contentType cacheControl signingKey retiredKeys tenantKeys mlDsaKey federationKey members okpKeys
      otherKeysIgnored refreshSeconds refreshOnUnknownKid`,
  },
  {
    section: 'oidc',
    heading: 'OIDC discovery (federation)',
    keys: 'openid-configuration federation.jwks cached issuerRoutes',
  },
  {
    section: 'bootstrap',
    heading: 'POST /v1/bootstrap',
    keys: `authorization wait wait.cap tokenReview boundPodFollowed response.namespace response.session response.agent
      response.attested response.token response.expiresAt response.spiffeId response.jti response.env response.env.PLAT_GATEWAY_URL
      response.env.PLAT_SESSION attestedGetsNoToken refresh`,
  },
  {
    section: 'probe',
    heading: 'Probes, version, metrics',
    keys: `healthz readyz readyz.draining version.component version.version version.commit version.buildDate version.goVersion
      version.platform version.tags metrics.buildInfoOnly`,
  },
  {
    section: 'auth',
    heading: 'Authentication',
    keys: `brokerToken.env brokerToken.file brokerToken.required brokerToken.wrong brokerToken.challenge exchangeByBody bindByToken
      bootstrapByServiceAccount dpop.EdDSA dpop.ES256 clientSvid`,
  },
  {
    section: 'error',
    heading: 'Errors',
    keys: `brokerTokenShape exchangeShape bindShape token.400.invalidJSON token.400.ttlSeconds token.400.invalidScope
      token.400.invalidPrincipalVerified token.400.badDpopJkt token.400.unknownProofCheck token.401.unauthorized token.403.proofFailed
      token.403.proofRequired token.503.tenantKey token.503.trustAnchors nonce.400 verify.400 bind.400.invalid_request
      bind.400.invalid_dpop_proof bind.400.invalid_grant bind.401.invalid_token bind.409.invalid_grant bind.503.tenantKey
      exchange.400.invalid_request exchange.400.unsupported_grant_type exchange.400.invalid_target exchange.400.invalid_grant
      exchange.400.invalid_scope exchange.400.invalid_dpop_proof exchange.502.server_error exchange.503.temporarily_unavailable
      bootstrap.400.invalid_request bootstrap.401.invalid_token bootstrap.403.access_denied bootstrap.403.session_revoked
      bootstrap.409.already_bootstrapped bootstrap.409.session_suspended bootstrap.410.session_gone bootstrap.425.not_adopted
      bootstrap.425.not_prepared bootstrap.503.temporarily_unavailable readyz.503`,
  },
  {
    section: 'limit',
    heading: 'Limits',
    keys: `body defaultLifetime maximumLifetime groups exchangeLifetime delegatedLifetime delegationDepth bootstrapWait
      keyDocumentCaching unknownKidRefresh tenantKeyReload`,
  },
  {
    section: 'versioning',
    heading: 'Versioning',
    keys: 'pathPrefix buildInfoEverywhere',
  },
]
