import { defineBlock, key } from '@plat/config'
import Type, { type Static } from 'typebox'
import { sandboxTemplateProblems } from '../../call/index.ts'

const schema = Type.Object({
  enabled: key.flag('`POST /v1/sessions/{id}/exec` proxy.'),
  endpointTemplate: key.text(
    'Must contain `{session}`; `{namespace}` is filled in as well. Code is sent to `<endpoint>/exec`.',
    'http://{session}.{namespace}.svc.cluster.local:8888',
    '\\{session\\}',
  ),
  maxTimeoutSeconds: key.seconds('Per exec.', 300),
  maxOutputBytes: key.whole('Output cap.', 10 * 1024 * 1024, 1),
  keyFile: key.file('Sent as header `X-Plat-Exec-Key`.'),
  taintLabels: key.texts('Taints of all output of code; none if its sandbox is trusted.', ['untrusted-input']),
})

/** `exec` (docs/spec/gateway.md): the code-interpreter proxy. */
export const execBlock = defineBlock({
  path: 'exec',
  feature: 'exec',
  schema,
  rules: [({ endpointTemplate }) => sandboxTemplateProblems('exec.endpointTemplate', endpointTemplate)],
})

export type ExecConfig = Readonly<Static<typeof execBlock.schema>>
