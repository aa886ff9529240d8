import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

/** `liveView` (document 3): watching a sandbox. */
export const liveViewBlock = {
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
} satisfies ConfigBlock
