import { type ConfigBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `sbxd` (document 3): the sandbox runtime daemon. */
export const sbxdBlock = {
  path: 'sbxd',
  feature: 'sbxd',
  built: false,
  schema: Type.Object({
    socket: key.text('Default a per-user unix socket when `url` is empty.'),
    url: key.url('Needs `tokenFile`.'),
    tokenFile: key.file('Token for `url`.'),
    mirrorDecisions: key.flag('Tell it every decision.'),
    anchorIntervalSeconds: key.seconds('How often its ledger is anchored; 0 off.', 0, 0),
    queueSize: key.whole('Decisions that wait; overflow is dropped and counted.', 1024, 1),
  }),
  rules: [requires('sbxd', ['tokenFile'], ({ url }) => url !== '', 'with sbxd.url')],
} satisfies ConfigBlock
