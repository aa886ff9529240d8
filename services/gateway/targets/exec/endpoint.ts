import { withoutTrailing } from '@plat/core'
/** Whose sandbox is meant. */
export interface SandboxName {
  readonly session: string
  readonly namespace: string
}

/** The template with the names of one session in it. */
export function filled(template: string, { session, namespace }: SandboxName): string {
  return template.replaceAll('{session}', session).replaceAll('{namespace}', namespace)
}

/** One label of a host name (RFC 1123): with a dot in it, a session's name would lead to another host. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/i

/** Where the code of a session is sent; null: its name cannot stand in a host name. */
export function endpointOf(template: string, name: SandboxName): URL | null {
  if (!LABEL.test(name.session) || !LABEL.test(name.namespace)) return null
  return URL.parse(`${withoutTrailing(filled(template, name), '/')}/exec`)
}
