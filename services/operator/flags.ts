import type { FlagTable, FlagValues } from '@plat/config'
import { parseQuantity } from '@plat/core'
import { type EndpointJurisdictions, endpointFault } from '@plat/resources/regions/endpoint'
import type { StdioSettings } from './stdio/place.ts'

const SECOND_MS = 1000
const leader = 'Leader election'
const cluster = 'Cluster'
const sandboxes = 'Sandboxes'
const stdio = 'Stdio servers'

export const operatorFlags = {
  'metrics-bind-address': {
    type: 'string',
    default: ':8080',
    help: 'Address of /metrics, /healthz, /readyz and /version.',
  },
  'budget-currency': {
    type: 'string',
    default: 'USD',
    help: 'ISO 4217: the budgetCurrency of the gateway. Budgets in another currency are refused.',
  },
  'model-keys-dir': {
    type: 'string',
    default: '/var/run/plat/model-keys',
    help: 'Folder at which the gateway mounts the Secret plat-model-keys; model routes name files in it.',
  },
  'endpoint-jurisdictions': {
    type: 'list',
    help: 'The endpointJurisdictions of the gateway: https://login.example=DE, separated by commas. SovereigntyCompliant needs them.',
  },
  'license-file': {
    type: 'string',
    help: 'The licence, as licenseFile of the gateway; Community when empty. It switches paid features and nothing else.',
  },
  'node-count-interval': {
    type: 'duration',
    default: 60 * SECOND_MS,
    min: SECOND_MS,
    help: 'How often the nodes that run sandboxes are counted.',
  },
  version: { type: 'bool', help: 'Print the version and exit.' },
  kubeconfig: {
    type: 'string',
    group: cluster,
    help: 'Path of a kubeconfig. Default: the service account of the pod that this runs in.',
  },
  context: { type: 'string', group: cluster, help: 'Context of the kubeconfig. Default: its current one.' },
  namespace: {
    type: 'string',
    group: cluster,
    help: 'Namespace of what is rendered and of the Lease. Default: that of the pod or of the context, else plat-system.',
  },
  'watch-namespaces': {
    type: 'list',
    group: cluster,
    help: 'Namespaces whose resources are rendered, separated by commas. Default: all of them.',
  },
  'identity-url': {
    type: 'string',
    group: sandboxes,
    help: 'URL of the identity broker. With it AgentSessions are made into sandboxes; needs PLAT_BROKER_TOKEN or PLAT_BROKER_TOKEN_FILE.',
  },
  'identity-ca-file': {
    type: 'string',
    group: sandboxes,
    help: "PEM of the authority of the broker's certificate, beside the system's.",
  },
  'attestation-url': {
    type: 'string',
    group: sandboxes,
    help: 'URL of the attestation service as pods reach it. With it sessions of attested tiers get releases; needs PLAT_ATTESTATION_TOKEN or PLAT_ATTESTATION_TOKEN_FILE.',
  },
  'attestation-ca-file': {
    type: 'string',
    group: sandboxes,
    help: "PEM of the authority of the attestation service's certificate, beside the system's.",
  },
  'gateway-url': {
    type: 'string',
    default: 'http://plat-gateway.plat-system.svc:8080',
    group: sandboxes,
    help: 'URL of the gateway as pods reach it: PLAT_GATEWAY_URL.',
  },
  'workspace-size': {
    type: 'string',
    default: '1Gi',
    group: sandboxes,
    help: 'Size of the workspace of the profile codeInterpreter where the Agent names none.',
  },
  'browser-image': {
    type: 'string',
    group: sandboxes,
    help: 'Image of the sidecar of the profile browser. Without it no session has that profile.',
  },
  'code-interpreter-image': {
    type: 'string',
    group: sandboxes,
    help: 'Image of the sidecar of the profile codeInterpreter. Without it no session has that profile.',
  },
  'stdio-image': {
    type: 'string',
    group: stdio,
    help: 'Image of plat, which pods pull. With it MCPServers with stdio are made into Deployments; needs -gateway-labels.',
  },
  'gateway-labels': {
    type: 'list',
    group: cluster,
    help: "Labels of the gateway's pods in the namespace of the operator, as name=value, separated by commas: only they reach stdio servers and live views of browsers.",
  },
  'leader-elect': {
    type: 'bool',
    default: true,
    group: leader,
    help: 'Let one of several replicas lead. Off only where there is never a second one.',
  },
  'leader-elect-lease-duration': {
    type: 'duration',
    default: 15 * SECOND_MS,
    min: SECOND_MS,
    group: leader,
    help: 'How long others wait after the leader was last seen.',
  },
  'leader-elect-renew-deadline': {
    type: 'duration',
    default: 10 * SECOND_MS,
    min: SECOND_MS / 2,
    group: leader,
    help: 'How long the leader goes on without having renewed its Lease; less than the duration.',
  },
  'leader-elect-retry-period': {
    type: 'duration',
    default: 2 * SECOND_MS,
    min: SECOND_MS / 10,
    group: leader,
    help: 'Pause between two attempts; less than the deadline.',
  },
} as const satisfies FlagTable

export type OperatorFlags = FlagValues<typeof operatorFlags>

/** Returns the jurisdictions of `-endpoint-jurisdictions` by origin. */
export function endpointsOf(flags: Pick<OperatorFlags, 'endpoint-jurisdictions'>): EndpointJurisdictions {
  return Object.fromEntries(flags['endpoint-jurisdictions'].map(originAndJurisdiction))
}

function originAndJurisdiction(entry: string): [origin: string, jurisdiction: string] {
  const end = entry.lastIndexOf('=')
  return end === -1 ? [entry, ''] : [entry.slice(0, end), entry.slice(end + 1)]
}

/** Returns the settings of stdio servers, or null if there are none. */
export function stdioSettingsOf(flags: Pick<OperatorFlags, 'stdio-image' | 'gateway-labels'>): StdioSettings | null {
  if (flags['stdio-image'] === '') return null
  return { bridgeImage: flags['stdio-image'], gatewayLabels: gatewayLabelsOf(flags) }
}

/** Returns the labels of the gateway's pods by name. */
export function gatewayLabelsOf(flags: Pick<OperatorFlags, 'gateway-labels'>): Readonly<Record<string, string>> {
  return Object.fromEntries(flags['gateway-labels'].map((entry) => entry.split('=', 2)))
}

/** `name=value` of a label as Kubernetes has them. */
const LABEL_ENTRY =
  /^([-a-z0-9.]{1,253}\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** Problems of the flags, one line each, with the name of the flag. */
export function flagProblems(flags: OperatorFlags): readonly string[] {
  const problems: string[] = []
  if (!/^[A-Z]{3}$/.test(flags['budget-currency'])) {
    problems.push(`-budget-currency ${flags['budget-currency']}: must be an ISO 4217 code such as USD`)
  }
  for (const entry of flags['endpoint-jurisdictions']) {
    const [origin, jurisdiction] = originAndJurisdiction(entry)
    const why =
      jurisdiction === '' ? 'must be written as https://login.example=DE' : endpointFault(origin, jurisdiction)
    if (why !== null) problems.push(`-endpoint-jurisdictions ${entry}: ${why}`)
  }
  if (!flags['model-keys-dir'].startsWith('/')) problems.push('-model-keys-dir: must be an absolute path')
  if (flags.context !== '' && flags.kubeconfig === '') problems.push('-context: needs -kubeconfig')
  for (const namespace of [flags.namespace, ...flags['watch-namespaces']].filter((name) => name !== '')) {
    if (!LABEL.test(namespace))
      problems.push(`${namespace}: is not a name of a namespace, see -namespace, -watch-namespaces`)
  }
  for (const name of ['identity-url', 'attestation-url', 'gateway-url'] as const) {
    const url = URL.parse(flags[name])
    if (flags[name] !== '' && (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== ''))
      problems.push(`-${name} ${flags[name]}: must be an http or https URL without query and fragment`)
  }
  if (flags['identity-url'] === '') {
    for (const name of ['identity-ca-file', 'attestation-url', 'browser-image', 'code-interpreter-image'] as const)
      if (flags[name] !== '') problems.push(`-${name}: needs -identity-url, without which there are no sandboxes`)
  }
  if (flags['attestation-ca-file'] !== '' && flags['attestation-url'] === '')
    problems.push('-attestation-ca-file: needs -attestation-url')
  for (const entry of flags['gateway-labels'])
    if (!LABEL_ENTRY.test(entry)) problems.push(`-gateway-labels ${entry}: must be written as name=value`)
  if (flags['stdio-image'] !== '' && flags['gateway-labels'].length === 0)
    problems.push('-stdio-image: needs -gateway-labels, without which every pod could call the servers')
  if (parseQuantity(flags['workspace-size']) === null)
    problems.push(`-workspace-size ${flags['workspace-size']}: must be a quantity such as 1Gi`)
  const [lease, renew, retry] = [
    flags['leader-elect-lease-duration'],
    flags['leader-elect-renew-deadline'],
    flags['leader-elect-retry-period'],
  ]
  if (renew >= lease) problems.push('-leader-elect-renew-deadline: must be less than -leader-elect-lease-duration')
  if (retry >= renew) problems.push('-leader-elect-retry-period: must be less than -leader-elect-renew-deadline')
  return problems
}
