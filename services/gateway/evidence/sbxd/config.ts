import { defineBlock, key, requires } from '@plat/config'
import Type, { type Static } from 'typebox'

const schema = Type.Object({
  socket: key.text(
    'Default `$XDG_RUNTIME_DIR/plat-sbxd.sock`, else `/run/user/<uid>/plat-sbxd.sock`, when `url` is empty.',
  ),
  url: key.url('Needs `tokenFile`.'),
  tokenFile: key.file('Bearer token for the daemon; read for each request.'),
  mirrorDecisions: key.flag('Send it the decision of every call.'),
  anchorIntervalSeconds: key.seconds('How often both ledgers anchor each other; 0 off.', 0, 0),
  queueSize: key.whole('Decisions that wait; overflow is dropped and counted.', 1024, 1),
})

/** `sbxd` (docs/spec/gateway.md): the daemon that runs sandboxes. */
export const sbxdBlock = defineBlock({
  path: 'sbxd',
  feature: 'sbxd',
  schema,
  rules: [requires('sbxd', ['tokenFile'], ({ url }) => url !== '', 'with sbxd.url')],
})

export type SbxdConfig = Readonly<Static<typeof sbxdBlock.schema>>
