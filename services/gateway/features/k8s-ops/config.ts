import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

/** `k8sOps` (document 3): the governed server of cluster operations. */
export const k8sOpsBlock = {
  path: 'k8sOps',
  feature: 'k8s-ops',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Governed cluster operations server.'),
    apiServer: key.url('Address of the cluster API; in-cluster when empty.'),
    tokenFile: key.file('Token for it; in-cluster when empty.'),
    caFile: key.file('Its authorities; in-cluster when empty.'),
    serviceAccount: key.text(
      '`<namespace>/<name>` impersonated on every call; empty uses the gateway, development only.',
      '',
      '^$|^[^/]+/[^/]+$',
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
  }),
} satisfies ConfigBlock
