import { defineBlock, key, requires, requiresTop } from '@plat/config'
import Type, { type Static } from 'typebox'

const isOn = ({ enabled }: Record<string, unknown>) => enabled === true

/** `transparencyLog` (docs/spec/gateway.md): anchors of ledger heads. */
export const transparencyLogBlock = defineBlock({
  path: 'transparencyLog',
  feature: 'transparency',
  schema: Type.Object({
    enabled: key.flag('Needs `url` and `auditCheckpointKey`.'),
    url: key.url('Base URL of the log (Rekor).'),
    api: Type.Enum(['v1', 'v2'], {
      default: 'v1',
      description: 'Protocol of the log; `v2` accepts only P-256 and RSA keys.',
    }),
    intervalSeconds: key.seconds('How often a checkpoint is anchored; 0 means on demand.', 0, 0),
    publicKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
      default: [],
      description: 'Public keys of the log; without one its signature is not checked.',
    }),
    timeoutSeconds: key.seconds('Per request to the log.', 30),
    jurisdiction: key.jurisdiction('Where the log runs; checked against the SovereigntyPolicy.'),
  }),
  rules: [
    requires('transparencyLog', ['url'], isOn, 'with transparencyLog.enabled'),
    requiresTop('auditCheckpointKey', isOn, 'with transparencyLog.enabled'),
  ],
})

export type TransparencyLogConfig = Readonly<Static<typeof transparencyLogBlock.schema>>
