import { unplacedEndpoints } from './endpoints.ts'
import type { Posture, VaultAddresses } from './posture.ts'

/** One risk that a valid configuration can have. */
export interface Check {
  readonly id: string
  /** One sentence: what can go wrong. */
  readonly risk: string
  /** One sentence: what to set. */
  readonly fix: string
  applies(config: Posture): boolean
}

const STALE_REVOCATION_SECONDS = 10
const WIDE_LEEWAY_SECONDS = 120

/** All checks, in the order in which they are reported. */
export const checks: readonly Check[] = [
  {
    id: 'plain-http',
    risk: 'tokens and arguments cross the network in the clear',
    fix: 'set tls.certFile and tls.keyFile, or listen on loopback behind a proxy that serves TLS',
    applies: (config) => config.tls.certFile === '' && !isLoopback(config.listen),
  },
  {
    id: 'admin-shared-listener',
    risk: 'agents can reach the admin API and the metrics',
    fix: 'set adminListen to an address that agents cannot reach',
    applies: (config) => config.adminListen === '' && !isLoopback(config.listen),
  },
  {
    id: 'admin-plain-http',
    risk: 'the admin token crosses the network in the clear',
    fix: 'set tls.certFile and tls.keyFile, or bind adminListen to loopback',
    applies: ({ adminListen, tls }) => adminListen !== '' && tls.certFile === '' && !isLoopback(adminListen),
  },
  {
    id: 'admin-static-token',
    risk: 'the ledger does not name the person who used the admin API',
    fix: 'set adminAuth.mode to oidc',
    applies: (config) => config.adminAuth.mode === 'token',
  },
  {
    id: 'dev-token-approvers',
    risk: 'anyone with the admin token decides approvals anonymously',
    fix: 'turn adminAuth.devTokenApprovers off',
    applies: (config) => config.adminAuth.devTokenApprovers,
  },
  {
    id: 'audit-open',
    risk: 'calls pass while the ledger cannot be written',
    fix: 'set auditFailurePolicy to closed',
    applies: (config) => config.auditFailurePolicy === 'open',
  },
  {
    id: 'audit-unsigned',
    risk: 'anyone who can write the ledger file can rewrite all of it',
    fix: 'set auditCheckpointKey and keep checkpoints elsewhere',
    applies: (config) => config.auditCheckpointKey === '',
  },
  {
    id: 'transparency-log-unverified',
    risk: 'an impostor of the transparency log is accepted',
    fix: 'set transparencyLog.publicKeyFiles',
    applies: ({ transparencyLog: { enabled, publicKeyFiles } }) => enabled && publicKeyFiles.length === 0,
  },
  {
    id: 'sinks-in-the-clear',
    risk: 'audit records cross the network in the clear, where an attacker can change them',
    fix: 'use https in the url and tls in the address of every entry of auditSinks',
    applies: ({ auditSinks }) => auditSinks.some(({ url, address }) => isPlainAway(url) || isPlainAway(address)),
  },
  {
    id: 'traces-in-the-clear',
    risk: 'traces, and captured content of calls, cross the network in the clear',
    fix: 'use https in otel.endpoint',
    applies: ({ otel }) => otel.enabled && isPlainAway(otel.endpoint),
  },
  {
    id: 'approvals-in-memory',
    risk: 'a restart forgets grants and pending approvals',
    fix: 'set approvalStorePath',
    applies: (config) => config.approvalStorePath === '' && config.stateBackend.type === 'file',
  },
  {
    id: 'pins-in-memory',
    risk: 'a restart forgets which tool definitions were seen',
    fix: 'set pinStorePath',
    applies: (config) => config.pinStorePath === '' && config.stateBackend.type === 'file',
  },
  {
    id: 'taints-in-memory',
    risk: 'a restart forgets which sessions are tainted',
    fix: 'set taintStorePath',
    applies: (config) => config.taintStorePath === '' && config.stateBackend.type === 'file',
  },
  {
    id: 'guards-fail-open',
    risk: 'texts pass unchecked while a classifier does not respond',
    fix: 'set failOpen of every guard to false',
    applies: (config) => config.guards.some(({ failOpen }) => failOpen),
  },
  {
    id: 'guards-in-the-clear',
    risk: 'arguments and results cross the network in the clear on their way to a classifier',
    fix: 'use https in the url of every guard',
    applies: (config) => config.guards.some(({ url }) => isPlainAway(url)),
  },
  {
    id: 'dlp-without-default',
    risk: 'calls that no binding names pass without data-loss prevention',
    fix: 'set dlp.defaultProfile',
    applies: ({ dlp, dlpProfiles }) =>
      Object.keys(dlpProfiles).length > 0 && (dlp.defaultProfile === '' || dlp.defaultProfile === 'none'),
  },
  {
    id: 'dlp-oversize-passes',
    risk: 'a secret passes in a message that is too long to be scanned',
    fix: 'set onOversize of the profile to deny, and maxScanBytes to what is needed',
    applies: ({ dlpProfiles }) => Object.values(dlpProfiles).some(({ onOversize }) => onOversize === 'audit'),
  },
  {
    id: 'dlp-streams-unheld',
    risk: 'a secret passes in two pieces of a stream',
    fix: 'set streamCarryBytes of the profile to 256',
    applies: ({ dlpProfiles }) => Object.values(dlpProfiles).some(({ streamCarryBytes }) => streamCarryBytes < 0),
  },
  {
    id: 'raw-arguments-kept',
    risk: 'the approvals journal holds raw arguments',
    fix: 'set approvalPreview.mode to redacted',
    applies: (config) => config.approvalPreview.mode === 'full',
  },
  {
    id: 'no-revocation-list',
    risk: 'only the admin API of this replica can stop an agent',
    fix: 'set revocationsFile',
    applies: (config) => config.revocationsFile === '',
  },
  {
    id: 'slow-reload',
    risk: 'a policy that was tightened takes effect late',
    fix: `set policyReloadSeconds to at most ${STALE_REVOCATION_SECONDS}`,
    applies: (config) => config.policyReloadSeconds > STALE_REVOCATION_SECONDS,
  },
  {
    id: 'issuer-unchecked',
    risk: 'a token of any issuer with a trusted key is accepted',
    fix: 'set identity.issuer',
    applies: (config) => config.identity.issuer === '',
  },
  {
    id: 'keys-in-the-clear',
    risk: 'an attacker on the network can replace the keys of the broker',
    fix: 'use https in identity.jwksURL',
    applies: ({ identity }) => isPlainAway(identity.jwksURL),
  },
  {
    id: 'endpoints-unplaced',
    risk: 'keys and tokens come from endpoints in unknown jurisdictions; a policy that requires one refuses them',
    fix: 'list the origins of key sets and token endpoints in endpointJurisdictions',
    applies: (config) => config.sovereigntyPolicyFile !== '' && unplacedEndpoints(config).length > 0,
  },
  {
    id: 'wide-leeway',
    risk: 'expired tokens are accepted for minutes',
    fix: `set identity.leewaySeconds to at most ${WIDE_LEEWAY_SECONDS}`,
    applies: (config) => config.identity.leewaySeconds > WIDE_LEEWAY_SECONDS,
  },
  {
    id: 'bearer-tokens',
    risk: 'a stolen session token can be used',
    fix: 'set dpop.require, or tls.svidMode to required',
    applies: ({ dpop, tls }) => !dpop.require && tls.svidMode !== 'required',
  },
  {
    id: 'vault-unverified-users',
    risk: 'a session with an unverified user claim uses the accounts of that user',
    fix: 'set tokenVault.allowUnverifiedPrincipal to false',
    applies: ({ tokenVault }) => tokenVault.enabled && tokenVault.allowUnverifiedPrincipal,
  },
  {
    id: 'vault-any-server',
    risk: 'anyone who can create an MCPServer can collect user tokens',
    fix: 'list tokenVault.providers[].allowedServers instead of allowAnyServer',
    applies: ({ tokenVault }) =>
      tokenVault.enabled && tokenVault.providers.some(({ allowAnyServer }) => allowAnyServer),
  },
  {
    id: 'vault-without-pkce',
    risk: 'an authorization code that leaks can be put into the flow of somebody else',
    fix: 'set disablePKCE to false in every tokenVault.providers entry',
    applies: ({ tokenVault }) => tokenVault.enabled && tokenVault.providers.some(({ disablePKCE }) => disablePKCE),
  },
  {
    id: 'vault-in-the-clear',
    risk: 'logins, codes and tokens of users cross the network in the clear',
    fix: 'use https in every address of tokenVault, publicBaseURL included',
    applies: ({ tokenVault: { enabled, publicBaseURL, login, providers } }) =>
      enabled && [publicBaseURL, ...[login, ...providers].flatMap(addressesOf)].some(isPlainAway),
  },
  {
    id: 'notifications-in-memory',
    risk: 'a restart loses undelivered notifications',
    fix: 'set notifyOutboxPath',
    applies: ({ notifiers, notifyOutboxPath }) => notifiers.length > 0 && notifyOutboxPath === '',
  },
  {
    id: 'webhooks-unsigned',
    risk: 'anyone who knows the address of a webhook can send it forged notifications',
    fix: 'set hmacSecretFile of every notifier of type webhook',
    applies: ({ notifiers }) =>
      notifiers.some(({ type, hmacSecretFile }) => type === 'webhook' && hmacSecretFile === ''),
  },
  {
    id: 'notices-in-the-clear',
    risk: 'notifications, and confirmations of users, cross the network in the clear',
    fix: 'use https in url and homeserver of every notifier, and in ciba.issuer',
    applies: ({ notifiers, ciba }) =>
      [...notifiers.flatMap(({ url, homeserver }) => [url, homeserver]), ciba.enabled ? ciba.issuer : ''].some(
        isPlainAway,
      ),
  },
  {
    id: 'policy-engine-tried-out',
    risk: 'calls denied by the policy engine pass',
    fix: 'set policy.rego.enforcement to enforce',
    applies: ({ policy }) => policy.rego.url !== '' && policy.rego.enforcement === 'dryRun',
  },
  {
    id: 'policy-engine-in-the-clear',
    risk: 'arguments and verdicts cross the network in the clear, where an attacker can change them',
    fix: 'use https in policy.rego.url',
    applies: ({ policy }) => isPlainAway(policy.rego.url),
  },
  {
    id: 'bundle-token-in-the-clear',
    risk: 'the token that fetches configuration bundles crosses the network in the clear',
    fix: 'use https in configBundle.pull.url',
    applies: ({ configBundle: { enabled, pull } }) => enabled && pull.tokenFile !== '' && isPlainAway(pull.url),
  },
  {
    id: 'models-without-policy',
    risk: 'a scope alone lets an agent call a model',
    fix: 'set modelPolicy to policy',
    applies: (config) => config.modelPolicy === 'scope-only' && hasModels(config),
  },
  {
    id: 'models-without-budget',
    risk: 'a looping agent spends without limit',
    fix: 'set sessionBudgetUSD or budgetsFile, and pricingFile',
    applies: (config) => config.sessionBudgetUSD === 0 && config.budgetsFile === '' && hasModels(config),
  },
  {
    id: 'agent-cards-unsigned',
    risk: 'an attacker on the network can redirect the callers of an agent by its card',
    fix: 'set a2a.cardSigningKey and a2a.publicURL',
    applies: ({ a2a }) => a2a.routesFile !== '' && a2a.cardSigningKey === '',
  },
  {
    id: 'agent-webhooks-anywhere',
    risk: 'an agent can have results of its tasks sent to any host',
    fix: 'list hosts in a2a.pushNotificationHosts instead of a glob that matches all',
    applies: ({ a2a }) => a2a.pushNotificationHosts.some((host) => /^[*.]+$/.test(host)),
  },
  {
    id: 'static-upstreams',
    risk: 'static servers have no owner and serve every namespace',
    fix: 'describe them as MCPServer resources and set upstreamsFile',
    applies: (config) => Object.keys(config.upstreams).length > 0,
  },
  {
    id: 'upstreams-in-the-clear',
    risk: 'arguments and results cross the network in the clear',
    fix: 'use https in upstreams',
    applies: ({ upstreams }) => Object.values(upstreams).some(isPlainAway),
  },
  {
    id: 'edge-in-the-clear',
    risk: 'segments of the ledger and the token for the collector cross the network in the clear',
    fix: 'use https in offline.forward.url',
    applies: ({ offline }) => offline.enabled && isPlainAway(offline.forward.url),
  },
  {
    id: 'edge-drops-segments',
    risk: 'a full spool drops segments without a valid receipt of a collector',
    fix: 'set offline.fullPolicy to failClosed',
    applies: ({ offline }) => offline.enabled && offline.fullPolicy === 'dropOldestForwarded',
  },
  {
    id: 'edge-stale-revocations',
    risk: 'a disconnected edge applies its last revocation list forever',
    fix: 'set offline.maxRevocationStalenessSeconds',
    applies: ({ offline }) => offline.enabled && offline.maxRevocationStalenessSeconds === 0,
  },
  {
    id: 'web-anywhere',
    risk: 'agents can carry data to any site of the internet that no list denies',
    fix: 'name what may be read in web.allowedDomains, web.namespaces or Agent.spec.web, and leave web.defaultAllow off',
    applies: ({ web, egress }) => (web.enabled || egress.enabled) && web.defaultAllow,
  },
  {
    id: 'exec-unkeyed',
    risk: 'a sandbox cannot authenticate the gateway, and runs code from any client that reaches its port',
    fix: 'set exec.keyFile, and let sandboxes refuse clients without the key',
    applies: ({ exec }) => exec.enabled && exec.keyFile === '',
  },
  {
    id: 'web-unlabelled',
    risk: 'policies cannot distinguish sessions that have read untrusted pages',
    fix: 'name a label in web.taintLabels',
    applies: ({ web }) => web.enabled && web.taintLabels.length === 0,
  },
  {
    id: 'web-search-in-the-clear',
    risk: 'what agents search for, and the header of the search backend, cross the network in the clear',
    fix: 'use https in web.search.url',
    applies: ({ web }) => web.enabled && isPlainAway(web.search.url),
  },
  {
    id: 'cluster-as-gateway',
    risk: 'agents act in the cluster with every right of the gateway',
    fix: 'set k8sOps.serviceAccount to an account with the rights that agents need',
    applies: ({ k8sOps }) => k8sOps.enabled && k8sOps.serviceAccount === '',
  },
  {
    id: 'cluster-unlabelled',
    risk: 'policies cannot distinguish sessions that have read untrusted log lines',
    fix: 'set k8sOps.taintLabels',
    applies: ({ k8sOps }) => k8sOps.enabled && k8sOps.taintLabels.length === 0,
  },
  {
    id: 'cluster-in-the-clear',
    risk: "the gateway's token of the cluster crosses the network in the clear",
    fix: 'use https in k8sOps.apiServer',
    applies: ({ k8sOps }) => k8sOps.enabled && isPlainAway(k8sOps.apiServer),
  },
  {
    id: 'cluster-changed-unseen',
    risk: 'agents change the cluster without an approval',
    fix: 'set k8sOps.writes.approval to required',
    applies: ({ k8sOps: { enabled, writes } }) => enabled && writes.mode === 'apply' && writes.approval === 'policy',
  },
  {
    id: 'infra-unseen',
    risk: 'plans that destroy data pass without an approval',
    fix: 'set infra.requireApprovalAtTier to at most 4',
    applies: ({ infra }) => infra.enabled && infra.requireApprovalAtTier > infra.maxTier && infra.maxTier === 4,
  },
  {
    id: 'replicas-on-files',
    risk: 'replicas share no budgets, approvals or break-glass revocations',
    fix: 'set stateBackend.type to postgres, or run one replica',
    applies: ({ posture, stateBackend }) => posture.replicas > 1 && stateBackend.type === 'file',
  },
  {
    id: 'no-shutdown-delay',
    risk: 'a load balancer sends calls to a replica that has gone: in a measured rolling restart 43 of 3,450 failed, with a delay of 2 s none',
    fix: 'set shutdownDelaySeconds to 5',
    applies: ({ posture, shutdownDelaySeconds }) => posture.replicas > 1 && shutdownDelaySeconds === 0,
  },
]

export function findings(config: Posture): readonly Check[] {
  return checks.filter(({ id, applies }) => applies(config) && !config.posture.accept.includes(id))
}

/** Returns accepted ids whose risk no longer applies: they could hide a later one. */
export function idleAccepts(config: Posture): readonly string[] {
  const applying = new Set(checks.filter((check) => check.applies(config)).map(({ id }) => id))
  return config.posture.accept.filter((id) => !applying.has(id))
}

function hasModels({ models, modelsFile }: Posture): boolean {
  return modelsFile !== '' || Object.keys(models).length > 0
}

function addressesOf({ issuer, authorizationURL, tokenURL }: VaultAddresses): string[] {
  return [issuer, authorizationURL, tokenURL]
}

function isLoopback(address: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\]):\d+$/.test(address)
}

/** Whether the URL is http, or plain TCP, to another machine. */
function isPlainAway(url: string): boolean {
  if (!/^(?:http|tcp):/i.test(url) || !URL.canParse(url)) return false
  return !isLoopback(`${new URL(url).hostname}:0`)
}
