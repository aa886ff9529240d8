import { type ConfigBlock, defineBlock, key, uniqueNames } from '@plat/config'
import Type from 'typebox'

const tenants = defineBlock({
  path: '',
  feature: 'tenants',
  built: false,
  schema: Type.Object({
    tenantsFile: Type.String({ default: '', description: 'Tenant list; single tenant when empty.' }),
    tenantLedgerDir: Type.String({
      default: '',
      description: 'Ledgers `<dir>/<tenant>/audit.jsonl`; default `<dir of auditPath>/tenants`.',
    }),
  }),
})

const liveView = defineBlock({
  path: 'liveView',
  feature: 'live-view',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Live-view proxy.'),
    endpointTemplate: key.text(
      'Must contain `{session}`.',
      'http://{session}.{namespace}.svc.cluster.local:6080',
      '\\{session\\}',
    ),
  }),
})

const engineAnchor = Type.Object({
  name: key.needed('Unique name.'),
  file: key.needed('The ledger.'),
  intervalSeconds: key.seconds('How often.', 60),
  continuation: key.text('How a new ledger continues an old one.'),
  failClosed: key.flag('Calls are denied while it does not verify.'),
})

const ctxengine = defineBlock({
  path: 'ctxengine',
  feature: 'ctxengine',
  built: false,
  schema: Type.Object({
    upstream: key.url('Its address.'),
    apiKeyFile: key.file('Its key.'),
    stateless: key.flag('Keep no contexts.'),
    contextIdleSeconds: key.seconds('Idle time after which a context is dropped.', 1800),
    maxContexts: key.whole('Contexts that are kept; the least recently used is dropped first.', 4096, 1),
    quarantineSnapshotDir: key.text('Snapshots of quarantined contexts.'),
    checkpointDir: key.text('When unset, checkpoint and restore return 409.'),
    auditAnchors: Type.Array(engineAnchor, { default: [], description: 'Its ledgers that the gateway anchors.' }),
  }),
  rules: [uniqueNames('ctxengine.auditAnchors')],
})

/**
 * Tables of `gateway.json` whose features are not built. Their keys are validated and documented like all others; any value but the default is
 * refused with `<path>: not built yet in this version`.
 */
export const unbuiltBlocks: readonly ConfigBlock[] = [liveView, tenants, ctxengine]
