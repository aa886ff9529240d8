import { withoutTrailing } from '@plat/core'
/** Session of a sandbox. */
export interface SandboxName {
  readonly session: string
  readonly namespace: string
}

/** Fills in the names of a session. */
export function filled(template: string, { session, namespace }: SandboxName): string {
  return template.replaceAll('{session}', session).replaceAll('{namespace}', namespace)
}

/** One DNS label (RFC 1123): a session name with a dot could select another host. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/i

/** Returns the URL for a session's code, or null if its name is not a DNS label. */
export function endpointOf(template: string, name: SandboxName): URL | null {
  if (!LABEL.test(name.session) || !LABEL.test(name.namespace)) return null
  return URL.parse(`${withoutTrailing(filled(template, name), '/')}/exec`)
}
