import { isHttpUrl, type Problem } from '@plat/config'
import { withoutTrailing } from '@plat/core'

/** Session of a sandbox. */
export interface SandboxName {
  readonly session: string
  readonly namespace: string
}

/** One DNS label (RFC 1123): a session name with a dot could select another host. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/i

/** Returns the URL of an endpoint of a session's sandbox, with `path` added; null if its name is not a DNS label. */
export function sandboxUrl(template: string, name: SandboxName, path: string): URL | null {
  if (!LABEL.test(name.session) || !LABEL.test(name.namespace)) return null
  return URL.parse(`${withoutTrailing(filled(template, name), '/')}${path}`)
}

/** Problems of an `endpointTemplate` at `path`. Unknown placeholders would stay literally in the host name. */
export function sandboxTemplateProblems(path: string, template: string | undefined): readonly Problem[] {
  if (template === undefined) return []
  const example = filled(template, { session: 's', namespace: 'n' })
  if (!/[{}]/.test(example) && isHttpUrl(example) && !/[?#@]/.test(example)) return []
  const message =
    'must be an http(s) URL without credentials and query, with no placeholder but {session} and {namespace}'
  return [{ path, message, severity: 'error' }]
}

function filled(template: string, { session, namespace }: SandboxName): string {
  return template.replaceAll('{session}', session).replaceAll('{namespace}', namespace)
}
