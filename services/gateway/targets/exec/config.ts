import { defineBlock, isHttpUrl, key, type Problem, type RuleOf } from '@plat/config'
import Type, { type Static } from 'typebox'
import { filled } from './endpoint.ts'

const error = (path: string, message: string): Problem => ({ path, message, severity: 'error' })

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

/** Unknown placeholders would stay literally in the host name. */
const templateLeadsSomewhere: RuleOf<typeof schema> = ({ endpointTemplate }) => {
  if (endpointTemplate === undefined) return []
  const example = filled(endpointTemplate, { session: 's', namespace: 'n' })
  return !/[{}]/.test(example) && isHttpUrl(example) && !/[?#@]/.test(example)
    ? []
    : [
        error(
          'exec.endpointTemplate',
          'must be an http(s) URL without credentials and query, with no placeholder but {session} and {namespace}',
        ),
      ]
}

/** `exec` (docs/spec/gateway.md): the code-interpreter proxy. */
export const execBlock = defineBlock({
  path: 'exec',
  feature: 'exec',
  schema,
  rules: [templateLeadsSomewhere],
})

export type ExecConfig = Readonly<Static<typeof execBlock.schema>>
