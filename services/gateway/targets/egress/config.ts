import { defineBlock, key } from '@plat/config'
import Type from 'typebox'

/** `egress` (docs/spec/gateway.md): the browser egress proxy. */
export const egressBlock = defineBlock({
  path: 'egress',
  feature: 'egress',
  schema: Type.Object({
    enabled: key.flag(
      'Browser egress proxy (HTTP CONNECT on the main listener); `web` and the Agent define the reachable hosts.',
    ),
  }),
})
