import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

const SESSION = '\\{session\\}'

/** `exec` (document 3): the code-interpreter proxy. */
export const execBlock = {
  path: 'exec',
  feature: 'sandbox',
  built: false,
  schema: Type.Object({
    enabled: key.flag('`POST /v1/sessions/{id}/exec` proxy.'),
    endpointTemplate: key.text(
      'Must contain `{session}`.',
      'http://{session}.{namespace}.svc.cluster.local:8888',
      SESSION,
    ),
    maxTimeoutSeconds: key.seconds('Per exec.', 300),
    maxOutputBytes: key.whole('Output cap.', 10 * 1024 * 1024, 1),
    keyFile: key.file('Sent as header `X-Plat-Exec-Key`.'),
  }),
} satisfies ConfigBlock

/** `egress` (document 3): the browser egress proxy. */
export const egressBlock = {
  path: 'egress',
  feature: 'sandbox',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Browser egress proxy (HTTP CONNECT on the main listener).'),
  }),
} satisfies ConfigBlock

/** `liveView` (document 3): watching a sandbox. */
export const liveViewBlock = {
  path: 'liveView',
  feature: 'sandbox',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Live-view proxy.'),
    endpointTemplate: key.text(
      'Must contain `{session}`.',
      'http://{session}.{namespace}.svc.cluster.local:6080',
      SESSION,
    ),
  }),
} satisfies ConfigBlock
