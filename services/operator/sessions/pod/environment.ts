import { type AgentSpec, modelPathOf, type Resource } from '@plat/resources'
import type { SandboxSettings } from '../settings.ts'

/** Variables by which an attested session redeems its tokens. */
export const RELEASE_ID = 'PLAT_RELEASE_ID'
export const ATTESTATION_URL = 'PLAT_ATTESTATION_URL'
/** Member of the session's Secret with the id of its release. */
export const RELEASE_KEY = 'release'

/** The Secret that holds the session's token, or the id of its release. */
export function sessionSecretOf(session: string): string {
  return `plat-session-${session}`
}

/** Path of the session token in its pod. */
export const TOKEN_DIR = '/var/run/plat/session'
export const TOKEN_FILE = `${TOKEN_DIR}/token`
/** Where the agent finds the control port of its browser, and where code is run: both on localhost only, behind one network of the pod. */
const BROWSER_URL = 'http://127.0.0.1:9222'

export type Variable = NonNullable<AgentSpec['env']>[number]

/**
 * The variables of the agent's container: what only the operator knows comes first, so that `$(PLAT_SESSION)` expands in those of the
 * Agent, and is not to be overridden; the Agent's own are handed on as they are, for the kubelet to resolve (docs/spec/crds.md, `env`).
 */
export function variablesOf(
  session: Resource<'AgentSession'>,
  spec: AgentSpec,
  { settings, hasToken }: { readonly settings: SandboxSettings; readonly hasToken: boolean },
): readonly Variable[] {
  const { namespace, name } = session.metadata
  const agent = session.spec.agentRef
  const own: Variable[] = [
    { name: 'PLAT_GATEWAY_URL', value: settings.gatewayUrl },
    { name: 'PLAT_NAMESPACE', value: namespace },
    { name: 'PLAT_AGENT', value: agent },
    { name: 'PLAT_SESSION', value: name },
  ]
  const model = modelPathOf({ namespace, name: agent }, spec)
  if (model !== null) own.push({ name: 'PLAT_MODEL_ENDPOINT', value: settings.gatewayUrl + model })
  if (hasToken) own.push({ name: 'PLAT_TOKEN_FILE', value: TOKEN_FILE })
  else if (settings.attestationUrl !== '') {
    // From the Secret: a session that is resumed has another release.
    const secretKeyRef = { name: sessionSecretOf(name), key: RELEASE_KEY }
    own.push({ name: RELEASE_ID, valueFrom: { secretKeyRef } })
    own.push({ name: ATTESTATION_URL, value: settings.attestationUrl })
  }
  if (spec.profile === 'browser') own.push({ name: 'PLAT_BROWSER_URL', value: BROWSER_URL })
  const names = new Set(own.map((variable) => variable.name))
  // A Sandbox takes a name once: the last one counts, as it does in a pod.
  const others = new Map<string, Variable>()
  for (const variable of spec.env ?? []) {
    if (names.has(variable.name)) continue
    others.delete(variable.name)
    others.set(variable.name, variable)
  }
  return [...own, ...others.values()]
}
