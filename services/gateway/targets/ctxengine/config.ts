import { defineBlock, key, uniqueNames } from '@plat/config'
import Type, { type Static } from 'typebox'

const anchor = Type.Object({
  name: key.needed('Unique name.'),
  file: key.needed('The ledger of the engine, in the open format.'),
  intervalSeconds: key.seconds('How often it is read.', 60),
  continuation: key.flag('It may begin after record 0, and be replaced by a file that continues it.'),
  failClosed: key.flag('Calls of `ctxengine` routes are denied while it does not verify.'),
})

/** `ctxengine` (docs/spec/gateway.md): inference contexts of sessions. */
export const ctxengineBlock = defineBlock({
  path: 'ctxengine',
  feature: 'ctxengine',
  schema: Type.Object({
    upstream: key.url('Base URL including `/v1`, for routes of provider `ctxengine` that name none.'),
    apiKeyFile: key.file('Key for routes of provider `ctxengine` that name none.'),
    stateless: key.flag('Sessions have no contexts.'),
    contextIdleSeconds: key.seconds('Idle time after which a context is dropped.', 1800),
    maxContexts: key.whole('Contexts that are kept; the least recently used is dropped first.', 4096, 1),
    quarantineSnapshotDir: key.text(
      'Folder of the engine for contexts of revoked sessions; none are saved when empty.',
    ),
    checkpointDir: key.text('Folder of the engine; when empty, checkpoint and restore return 409.'),
    auditAnchors: Type.Array(anchor, { default: [], description: 'Ledgers of the engine that the gateway anchors.' }),
  }),
  rules: [uniqueNames('ctxengine.auditAnchors')],
})

export type CtxengineConfig = Readonly<Static<typeof ctxengineBlock.schema>>
