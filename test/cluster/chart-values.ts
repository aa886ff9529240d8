import type { Values } from './helm.ts'

const image = { repository: 'registry.example/plat' }

/** The least that can be said. */
export const least: Values = { image }

/** Everything at once, for several replicas. */
export const everything: Values = {
  image: { ...image, digest: `sha256:${'0'.repeat(64)}`, pullPolicy: 'Always', pullSecrets: ['registry'] },
  identity: {
    replicas: 2,
    stateDsnSecret: 'plat-postgres',
    flags: {
      issuer: 'https://plat.example',
      'default-ttl': '10m',
      'attested-tiers': ['tier-2'],
      'identity-checks': ['spiffe', 'kubernetes'],
    },
    exchangeConfig: { audiences: { crm: { maxTTLSeconds: 120, allowedScopes: ['tools:crm'] } } },
    service: { annotations: { 'example.com/zone': 'a' } },
  },
  gateway: {
    config: {
      adminListen: ':9090',
      auditFailurePolicy: 'closed',
      stateBackend: { type: 'postgres' },
      tls: { certFile: '/etc/plat/tls/tls.crt', keyFile: '/etc/plat/tls/tls.key' },
      shutdownTimeoutSeconds: 60,
      budgetCurrency: 'EUR',
      adminAuth: { mode: 'token' },
      configSync: { enabled: true },
      pinReports: { enabled: true },
      sandboxUsage: { enabled: true, reporters: ['system:serviceaccount:plat-system:sandbox-meter'] },
    },
    stateDsnSecret: 'plat-postgres',
    adminTokenSecret: 'plat-admin-token',
    auditHmacKeySecret: 'plat-audit-hmac',
    sealKeySecret: 'plat-seal',
    autoscaling: { enabled: true, minReplicas: 2, maxReplicas: 8 },
    persistence: { size: '100Gi', storageClassName: 'fast', retainOnDelete: false },
    service: { type: 'LoadBalancer' },
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [{ key: 'plat', operator: 'Exists' }],
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
    ],
    priorityClassName: 'system-cluster-critical',
    podAnnotations: { 'example.com/team': 'platform' },
    podLabels: { 'example.com/team': 'platform' },
    serviceAccountAnnotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/plat' },
    env: [{ name: 'AWS_REGION', value: 'eu-central-1' }],
    extraVolumes: [{ name: 'tls', secret: { secretName: 'plat-tls' } }],
    extraVolumeMounts: [{ name: 'tls', mountPath: '/etc/plat/tls', readOnly: true }],
  },
  operator: {
    replicas: 2,
    sandboxes: { enabled: true },
    stdioServers: { enabled: true },
    flags: { 'watch-namespaces': ['team-a', 'team-b'] },
  },
  attestation: {
    enabled: true,
    flags: { 'token-ttl': '2m', 'public-url': 'https://attest.example' },
    storageClassName: 'fast',
    service: { type: 'LoadBalancer' },
  },
  networkPolicy: {
    agents: [{ namespaceSelector: { matchLabels: { 'example.com/agents': 'yes' } } }],
    admin: [{ podSelector: { matchLabels: { app: 'console' } } }],
    monitoring: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
    identityEgress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }], ports: [{ port: 5432 }] }],
    gatewayEgress: [{ ports: [{ port: 443 }] }],
    operatorEgress: [{ ports: [{ port: 443 }] }],
  },
  monitoring: { serviceMonitor: { enabled: true, labels: { release: 'prometheus' } } },
  dashboards: { enabled: true },
  alerts: {
    enabled: true,
    runbookBaseURL: 'https://git.example/plat/docs/runbooks.md',
    labels: { release: 'prometheus' },
    thresholds: { ApprovalsBacklog: { approvals: 7 }, GatewayAuditCommitSlow: { seconds: 0.2 } },
  },
}

/** Without what can be left out: files that others write, a ledger that may go, no network policies. */
export const bare: Values = {
  image,
  identity: { bootstrap: { enabled: false } },
  operator: { enabled: false },
  networkPolicy: { enabled: false },
  gateway: {
    persistence: { enabled: false },
    config: { auditCheckpointKey: '', upstreams: { notes: 'http://notes.team.svc/mcp' } },
  },
}

/** The console behind an Ingress, for people of an identity provider. */
export const withConsole: Values = {
  image,
  console: {
    enabled: true,
    host: 'plat.example.com',
    clientSecretSecret: 'plat-console-client',
    ingress: {
      enabled: true,
      className: 'nginx',
      annotations: { 'cert-manager.io/cluster-issuer': 'letsencrypt' },
      tlsSecret: 'plat-console-tls',
    },
  },
  networkPolicy: {
    admin: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } }],
  },
  gateway: {
    config: {
      adminAuth: {
        mode: 'oidc',
        roles: { viewer: ['staff'], approver: ['leads'] },
        oidc: { issuer: 'https://login.example.com', audience: 'plat-admin', clientID: 'plat-console' },
        stepUp: { approve: { maxAgeSeconds: 300 } },
      },
    },
  },
}
