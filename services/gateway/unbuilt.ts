import { type ConfigBlock, defineBlock, key } from '@plat/config'
import Type from 'typebox'

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

/**
 * Tables of `gateway.json` whose features are not built. Their keys are validated and documented like all others; any value but the default is
 * refused with `<path>: not built yet in this version`.
 */
export const unbuiltBlocks: readonly ConfigBlock[] = [liveView]
