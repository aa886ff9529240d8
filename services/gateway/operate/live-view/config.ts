import { defineBlock, key } from '@plat/config'
import Type, { type Static } from 'typebox'
import { sandboxTemplateProblems } from '../../call/index.ts'

/** `liveView` (docs/spec/gateway.md): admins see the browsers of sandboxes. */
export const liveViewBlock = defineBlock({
  path: 'liveView',
  feature: 'live-view',
  schema: Type.Object({
    enabled: key.flag('Live-view proxy.'),
    endpointTemplate: key.text(
      'Must contain `{session}`; `{namespace}` is filled in as well. Its WebSocket is `<endpoint>/websockify`.',
      'http://{session}.{namespace}.svc.cluster.local:6080',
      '\\{session\\}',
    ),
    idleSeconds: key.seconds('A view ends after this long without anything to relay.', 600),
    maxSeconds: key.seconds('A view ends after this long.', 3600),
  }),
  rules: [({ endpointTemplate }) => sandboxTemplateProblems('liveView.endpointTemplate', endpointTemplate)],
})

export type LiveViewConfig = Readonly<Static<typeof liveViewBlock.schema>>
