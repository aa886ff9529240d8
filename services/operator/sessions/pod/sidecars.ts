import type { AgentSpec } from '@plat/resources'
import type { SandboxSettings } from '../settings.ts'
import { TOKEN_DIR, TOKEN_FILE } from './environment.ts'

/** Where the live view of a browser and the code server answer, as the gateway's `endpointTemplate`s have them. */
export const LIVE_VIEW_PORT = 6080
export const CODE_PORT = 8888

/** Whether the pods of an Agent show their browser. */
export function hasLiveView({ profile, browser }: AgentSpec): boolean {
  return profile === 'browser' && browser?.liveView === true
}

/** Security context of a container: no privileges. */
export const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
} as const

interface Mount {
  readonly name: string
  readonly mountPath: string
  readonly readOnly?: boolean
}

/**
 * Sidecars of the agent by its profile (docs/spec/crds.md, `profile`): a browser, which accesses the internet through the gateway, or a
 * server that runs code in the workspace. Both are containers that start before the agent and end with it.
 */
export function sidecarsOf(
  spec: AgentSpec,
  { settings, hasToken, workspace }: { settings: SandboxSettings; hasToken: boolean; workspace: Mount | null },
): readonly object[] {
  if (spec.profile === 'browser') return [browserOf(spec, settings, hasToken)]
  if (spec.profile === 'codeInterpreter') return [codeServer(settings, workspace)]
  return []
}

function browserOf(spec: AgentSpec, { browserImage, gatewayUrl }: SandboxSettings, hasToken: boolean): object {
  const liveView = hasLiveView(spec)
  return {
    name: 'browser',
    image: browserImage,
    restartPolicy: 'Always',
    env: [
      { name: 'PLAT_BROWSER_LISTEN', value: '127.0.0.1:9222' },
      // CONNECT of the gateway: the only way out, shown the session's token.
      { name: 'PLAT_BROWSER_PROXY', value: gatewayUrl },
      ...(hasToken ? [{ name: 'PLAT_TOKEN_FILE', value: TOKEN_FILE }] : []),
      { name: 'PLAT_LIVE_VIEW', value: String(liveView) },
    ],
    ...(liveView && { ports: [{ name: 'live-view', containerPort: LIVE_VIEW_PORT, protocol: 'TCP' }] }),
    ...(hasToken && { volumeMounts: [{ name: 'session', mountPath: TOKEN_DIR, readOnly: true }] }),
    securityContext: CONTAINER_SECURITY,
  }
}

function codeServer({ codeInterpreterImage }: SandboxSettings, workspace: Mount | null): object {
  return {
    name: 'code-interpreter',
    image: codeInterpreterImage,
    restartPolicy: 'Always',
    env: [{ name: 'PLAT_CODE_LISTEN', value: `:${CODE_PORT}` }],
    ports: [{ name: 'code', containerPort: CODE_PORT, protocol: 'TCP' }],
    ...(workspace !== null && { workingDir: workspace.mountPath, volumeMounts: [workspace] }),
    securityContext: CONTAINER_SECURITY,
  }
}
