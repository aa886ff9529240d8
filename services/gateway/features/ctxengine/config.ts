import { type ConfigBlock, key, uniqueNames } from '@plat/config'
import Type from 'typebox'

const anchor = Type.Object({
  name: key.needed('Unique name.'),
  file: key.needed('The ledger.'),
  intervalSeconds: key.seconds('How often.', 60),
  continuation: key.text('How a new ledger goes on from an old one.'),
  failClosed: key.flag('Calls are denied while it does not verify.'),
})

/** `ctxengine` (document 3): a managed engine of inference contexts. */
export const ctxengineBlock = {
  path: 'ctxengine',
  feature: 'ctxengine',
  built: false,
  schema: Type.Object({
    upstream: key.url('Where it stands.'),
    apiKeyFile: key.file('Its key.'),
    stateless: key.flag('Keep no contexts.'),
    contextIdleSeconds: key.seconds('Idle time after which a context is dropped.', 1800),
    maxContexts: key.whole('Contexts that are kept; the least recently used goes.', 4096, 1),
    quarantineSnapshotDir: key.text('Snapshots of quarantined contexts.'),
    checkpointDir: key.text('Unset answers 409 to checkpoint and restore.'),
    auditAnchors: Type.Array(anchor, { default: [], description: 'Its ledgers that ours vouches for.' }),
  }),
  rules: [uniqueNames('ctxengine.auditAnchors')],
} satisfies ConfigBlock
