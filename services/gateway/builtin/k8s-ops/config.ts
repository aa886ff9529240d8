import { defineBlock, key, type Problem, type RuleOf } from '@plat/config'
import Type from 'typebox'

const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

const ACCOUNT = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/

const schema = Type.Object({
  enabled: key.flag('Governed cluster operations server.'),
  apiServer: key.url('Address of the cluster API; in-cluster when empty.'),
  tokenFile: key.file('Token for it; in-cluster when empty.'),
  caFile: key.file('Its authorities; in-cluster when empty.'),
  serviceAccount: key.text(
    '`<namespace>/<name>` impersonated on every call; empty uses the gateway, development only.',
  ),
  namespaces: key.texts('Default all.'),
  allowClusterScoped: key.flag('Kinds without a namespace.'),
  maxLogLines: key.whole('Lines of one log.', 200, 1, 5000),
  maxLogBytes: key.whole('Bytes of one log.', 64 * 1024, 1, 1024 * 1024),
  maxListItems: key.whole('Items of one list.', 200, 1, 1000),
  timeoutSeconds: key.seconds('Time for one answer.', 10),
  taintLabels: key.texts('Taints of everything that was read.', ['untrusted-input']),
  writes: key.group(
    {
      mode: key.choice(['disabled', 'proposal', 'apply'], 'proposal', 'What a write does.'),
      approval: key.choice(['required', 'policy'], 'required', 'Who lets a write pass.'),
      namespaces: key.texts('Default the read namespaces.'),
      maxReplicas: key.whole('Largest scale.', 50, 0),
    },
    'Writes.',
  ),
})

const serviceAccountIsOne: RuleOf<typeof schema> = ({ serviceAccount = '' }) =>
  serviceAccount === '' || ACCOUNT.test(serviceAccount)
    ? []
    : [{ path: 'k8sOps.serviceAccount', message: 'must be <namespace>/<name>', severity: 'error' }]

/** An impossible name would exclude the intended namespace. */
const namespacesAreNames: RuleOf<typeof schema> = ({ namespaces, writes }) => [
  ...strange('k8sOps.namespaces', namespaces),
  ...strange('k8sOps.writes.namespaces', writes?.namespaces),
]

function strange(path: string, list: readonly (string | undefined)[] = []): Problem[] {
  const message = 'must be the name of a namespace: no globs'
  return list.flatMap((name, index) =>
    name === undefined || NAMESPACE.test(name) ? [] : [{ path: `${path}[${index}]`, message, severity: 'error' }],
  )
}

/** Writable namespaces must be readable. */
const writesAreRead: RuleOf<typeof schema> = ({ namespaces = [], writes }) => {
  if (namespaces.length === 0) return []
  return (writes?.namespaces ?? []).flatMap((name, index) =>
    namespaces.includes(name)
      ? []
      : [
          {
            path: `k8sOps.writes.namespaces[${index}]`,
            message: 'must be in k8sOps.namespaces, too',
            severity: 'error',
          },
        ],
  )
}

/** `k8sOps` (docs/spec/gateway.md): the governed server of cluster operations. */
export const k8sOpsBlock = defineBlock({
  path: 'k8sOps',
  feature: 'k8s-ops',
  schema,
  rules: [serviceAccountIsOne, namespacesAreNames, writesAreRead],
})
