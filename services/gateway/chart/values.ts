/** The values of the chart beside gateway.config, and what they mean. @table */
import { key, type Node } from '@plat/config'
import Type from 'typebox'
import type { Thresholds } from './alerts.ts'

/** Defined by Kubernetes, which validates it when it is applied. */
const native = (description: string, preset: object = {}): Node => ({ type: 'object', default: preset, description })
const natives = (description: string): Node => ({
  type: 'array',
  items: { type: 'object' },
  default: [],
  description,
})

type Values = Readonly<Record<string, Node>>

/** Known values; `closed` of files.ts takes no others. */
const group = (properties: Values, description = ''): Node => ({ type: 'object', default: {}, description, properties })

const QUANTITY = '^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$'
const SECRET = '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$'
/** A DNS name. */
const HOST = '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$'
const secret = (description: string, preset = '') => key.text(description, preset, SECRET)

/** A flag of a binary: text, number, boolean or a list, which is joined by commas. */
const flags = (program: string) =>
  Type.Record(
    Type.String({ pattern: '^[a-z][a-z0-9-]*$' }),
    Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String())]),
    {
      default: {},
      additionalProperties: false,
      description: `Further flags of ${program} without the dash; those that the chart sets are refused here.`,
    },
  )

/** Where a component's pods run and what they may use. */
const pods = (cpu: string, memory: string, memoryLimit: string): Values => ({
  resources: native(
    'Compute resources of the container. The heap of Node may use 60 % of the memory limit, and new work is refused from 90 % on.',
    { requests: { cpu, memory }, limits: { memory: memoryLimit } },
  ),
  nodeSelector: native('Labels that a node must have.'),
  tolerations: natives('Taints that the pods tolerate.'),
  affinity: native('Where pods run beside others; without it replicas keep to different nodes where they can.'),
  topologySpreadConstraints: natives('How pods spread.'),
  priorityClassName: key.text('Priority class of the pods.'),
  podAnnotations: key.map(Type.String(), 'Annotations of the pods.'),
  podLabels: key.map(Type.String(), 'Further labels of the pods.'),
  serviceAccountAnnotations: key.map(Type.String(), 'Annotations of the service account, such as a cloud identity.'),
  env: natives('Further environment variables of the container.'),
  extraVolumes: natives('Further volumes: files that keys of the configuration name.'),
  extraVolumeMounts: natives('Where they are mounted.'),
})

const service = () => ({
  type: key.choice(['ClusterIP', 'NodePort', 'LoadBalancer'], 'ClusterIP', 'Type of the Service.'),
  annotations: key.map(Type.String(), 'Annotations of the Service.'),
})

const image = group(
  {
    repository: key.text('Where the image of deploy/Dockerfile was pushed, such as registry.example/plat; required.'),
    tag: key.text('Tag; the version of the chart when empty.'),
    digest: key.text('Digest instead of a tag.', '', '^(sha256:[0-9a-f]{64})?$'),
    pullPolicy: key.choice(['Always', 'IfNotPresent', 'Never'], 'IfNotPresent', 'When it is pulled.'),
    pullSecrets: key.texts('Names of the Secrets that it is pulled with.'),
  },
  'One image holds every component.',
)

const identity = {
  replicas: key.whole('More than one needs stateDsnSecret.', 1, 1),
  flags: flags('plat-identity'),
  signingKeySecret: secret(
    'Secret with key.pem and pub.pem, as `plat keys generate` writes them.',
    'plat-identity-key',
  ),
  brokerTokenSecret: secret('Secret whose key `token` is what the operator mints with.', 'plat-broker-token'),
  stateDsnSecret: secret('Secret whose key `dsn` is the connection string of the Postgres that replicas share.'),
  exchangeConfig: native('The exchange configuration file: audiences that tokens may be exchanged for.'),
  bootstrap: group({ enabled: key.flag('Serve warm-pool pods on port 8083.', true) }, 'Warm-pool bootstrap.'),
  service: group(service(), 'Service of the API and of bootstrap.'),
  ...pods('50m', '160Mi', '512Mi'),
}

const gateway = {
  replicas: key.whole('More than one needs gateway.config.stateBackend.type postgres.', 1, 1),
  auditKeySecret: secret(
    'Secret whose key `audit-signing.pem` signs checkpoints, when auditCheckpointKey is left as it is.',
    'plat-audit-key',
  ),
  adminTokenSecret: secret(
    'Secret whose key `token` is PLAT_ADMIN_TOKEN; without it mode `token` leaves the admin API off.',
  ),
  auditHmacKeySecret: secret('Secret whose key `key` is PLAT_AUDIT_HMAC_KEY.'),
  sealKeySecret: secret('Secret whose key `key` is PLAT_SEAL_KEY; without it one is made and kept with the state.'),
  stateDsnSecret: secret('Secret whose key `dsn` is the connection string of gateway.config.stateBackend.'),
  persistence: group(
    {
      enabled: key.flag(
        'Keep the ledger and the journals of each replica on a separate volume. Off loses them with the pod.',
        true,
      ),
      size: key.text('Size of the volume.', '20Gi', QUANTITY),
      storageClassName: key.text('Storage class; the default class when empty.'),
      retainOnDelete: key.flag('Keep the volumes when the release is deleted or scaled down.', true),
    },
    'Where the ledger lives.',
  ),
  autoscaling: group(
    {
      enabled: key.flag('Scale by CPU; needs what several replicas need.'),
      minReplicas: key.whole('Fewest replicas.', 2, 1),
      maxReplicas: key.whole('Most replicas.', 6, 1),
      targetCPUUtilizationPercentage: key.whole('Of what the container requests.', 70, 1, 100),
    },
    'HorizontalPodAutoscaler.',
  ),
  service: group(service(), 'Service of the main listener.'),
  ...pods('250m', '256Mi', '1Gi'),
}

/** The console of people; docs/console-on-a-cluster.md. */
const console = {
  enabled: key.flag(
    'Serve the console to browsers: sets consoleURL, and adminListen to :9090 where it is left out. People log in by gateway.config.adminAuth.oidc.',
  ),
  host: key.text('Host name that browsers open; required when enabled.', '', HOST),
  clientSecretSecret: secret(
    'Secret whose key `secret` is that of the client at the identity provider; empty for a public client.',
  ),
  ingress: group(
    {
      enabled: key.flag(
        'An Ingress for /console and /v1 of adminListen; its controller must be named in networkPolicy.admin.',
      ),
      className: key.text('Ingress class; the default class when empty.'),
      annotations: key.map(Type.String(), 'Annotations of the Ingress.'),
      tlsSecret: secret('Secret with tls.crt and tls.key of the host; the certificate of the controller when empty.'),
    },
    'How browsers reach it.',
  ),
}

const operator = {
  enabled: key.flag(
    'Render resources into the files of the gateway. Without it the ConfigMaps are yours to write.',
    true,
  ),
  replicas: key.whole('One of them leads.', 1, 1),
  flags: flags('plat-operator'),
  sandboxes: group(
    {
      enabled: key.flag('Make AgentSessions into sandboxes; needs agent-sandbox, and the rights of docs/sessions.md.'),
    },
    'Sessions in sandboxes.',
  ),
  stdioServers: group(
    { enabled: key.flag('Run MCPServers with stdio in Deployments; needs the rights of docs/stdio.md.') },
    'MCP servers on stdin and stdout.',
  ),
  ...pods('50m', '200Mi', '1Gi'),
}

const attestation = {
  enabled: key.flag(
    'Give sessions of attested tiers their tokens for evidence; name the tiers in identity.flags.attested-tiers.',
  ),
  flags: flags('plat-attestation'),
  tokenSecret: secret('Secret whose key `token` opens the making of releases.', 'plat-attestation-token'),
  storageSize: key.text('Size of the volume with the journal of releases.', '1Gi', QUANTITY),
  storageClassName: key.text('Storage class of that volume; the default class when empty.'),
  service: group(service(), 'Service of the API.'),
  ...pods('50m', '160Mi', '512Mi'),
}

const networkPolicy = group(
  {
    enabled: key.flag('Let in only what is named here.', true),
    agents: natives('Peers that may reach the gateway and the broker; every pod of the cluster when empty.'),
    admin: natives('Peers that may reach adminListen; none when empty.'),
    monitoring: natives('Peers that may read metrics on ports that agents do not use; every pod when empty.'),
    identityEgress: natives('Egress rules of the broker beside DNS; anything when empty.'),
    gatewayEgress: natives('Egress rules of the gateway beside DNS and the broker; anything when empty.'),
    operatorEgress: natives('Egress rules of the operator beside DNS and the broker; anything when empty.'),
  },
  'NetworkPolicies, where the network of the cluster enforces them. Peers and rules are written as Kubernetes has them.',
)

const monitoring = group(
  {
    serviceMonitor: group(
      {
        enabled: key.flag('Needs the CustomResourceDefinitions of the Prometheus Operator.'),
        interval: key.text('How often metrics are read.', '15s', '^[0-9]+(ms|s|m)$'),
        labels: key.map(Type.String(), 'Labels by which Prometheus finds it.'),
      },
      'ServiceMonitors, one for each component.',
    ),
  },
  'How Prometheus finds the components.',
)

const alerts = (thresholds: Thresholds) =>
  group(
    {
      enabled: key.flag('A PrometheusRule; needs the CustomResourceDefinitions of the Prometheus Operator.'),
      runbookBaseURL: key.text('Where docs/runbooks.md is read; required when enabled.'),
      labels: key.map(Type.String(), 'Labels by which Prometheus finds it.'),
      thresholds: group(
        Object.fromEntries(
          Object.entries(thresholds).map(([alert, values]) => [
            alert,
            group(
              Object.fromEntries(
                Object.entries(values).map(([name, value]) => [name, Type.Number({ default: value, minimum: 0 })]),
              ),
            ),
          ]),
        ),
        'What each alert compares with.',
      ),
    },
    'Alert rules, as alerts.yaml writes them.',
  )

const dashboards = group(
  {
    enabled: key.flag('A ConfigMap with each dashboard, for the sidecar of the Grafana chart.'),
    labels: Type.Record(Type.String(), Type.String(), {
      default: { grafana_dashboard: '1' },
      description: 'Labels by which the sidecar finds them.',
    }),
    annotations: key.map(Type.String(), 'Annotations of the ConfigMaps, such as the folder for the sidecar.'),
  },
  'Grafana dashboards.',
)

/** Every value, in the order of values.yaml. `config` is gateway.json. */
export function chartValues(config: Node, thresholds: Thresholds): Node {
  return group({
    image,
    fullnameOverride: key.text('Name of the release in the names of objects.'),
    identity: group(identity, 'The identity broker.'),
    gateway: group({ config, ...gateway }, 'The gateway.'),
    console: group(console, 'The console of people, in a browser.'),
    operator: group(operator, 'The operator.'),
    attestation: group(attestation, 'The attestation service: one pod.'),
    networkPolicy,
    monitoring,
    alerts: alerts(thresholds),
    dashboards,
  })
}
