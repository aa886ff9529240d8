import { isObject, parseQuantity } from '@plat/core'
import { type Members, member, textOf } from '@plat/kubernetes'
import type { AgentSpec, Resource, TrustTierSpec } from '@plat/resources'
import type { SnapshotView } from '../life/workspace.ts'
import type { SandboxSettings } from '../settings.ts'
import { sessionSecretOf, TOKEN_DIR, variablesOf } from './environment.ts'
import { CONTAINER_SECURITY, sidecarsOf } from './sidecars.ts'

/** The folder of the workspace where the Agent names none. */
const WORKSPACE_DIR = '/workspace'
/** Volumes that the operator writes; a tier cannot have others of these names. */
const WORKSPACE = 'workspace'
const SESSION = 'session'
/** API group of VolumeSnapshots. */
export const SNAPSHOT_GROUP = 'snapshot.storage.k8s.io'
/** `-r--r--r--`: the agent's user is the image's. */
const READ_ONLY = 0o444

/** The label by which NetworkPolicies select the pods of sessions. */
export const SESSION_LABEL = 'plat.dev/session'

/** Labels of everything that belongs to a session. */
export function labelsOf({ metadata, spec }: Resource<'AgentSession'>): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/managed-by': 'plat-operator',
    'app.kubernetes.io/part-of': 'plat',
    [SESSION_LABEL]: metadata.name,
    'plat.dev/agent': spec.agentRef,
  }
}

export interface PodParts {
  readonly session: Resource<'AgentSession'>
  readonly agent: AgentSpec
  readonly tier: TrustTierSpec
  readonly settings: SandboxSettings
  /** Content of the workspace at the beginning. Absent: it is empty. */
  readonly snapshot?: Pick<SnapshotView, 'name' | 'restoreSize'>
}

/** Attested sessions get no token: they redeem one for evidence. */
export function hasToken(tier: TrustTierSpec): boolean {
  return tier.attested !== true
}

/** The template of a session's own pod: the Agent's container, the sidecars of its profile, and what its TrustTier says of every pod. */
export function podTemplateOf(parts: PodParts): object {
  const { session, agent, tier, settings } = parts
  const workspace = workspaceMount(agent)
  const { volumes = [], volumeMounts = [], imagePullSecrets = [], ...defaults } = tier.podDefaults ?? {}
  const token = hasToken(tier)
  const sidecars = sidecarsOf(agent, { settings, hasToken: token, workspace })
  const mounts = [
    ...(token ? [{ name: SESSION, mountPath: TOKEN_DIR, readOnly: true }] : []),
    ...(workspace === null ? [] : [workspace]),
    ...volumeMounts,
  ]
  const spec = {
    ...(tier.runtimeClassName !== undefined && { runtimeClassName: tier.runtimeClassName }),
    ...(defaults.serviceAccountName !== undefined && { serviceAccountName: defaults.serviceAccountName }),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // How the agent ends is how the session ends.
    restartPolicy: 'Never',
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' }, ...defaults.securityContext },
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    ...(defaults.nodeSelector !== undefined && { nodeSelector: defaults.nodeSelector }),
    ...(defaults.tolerations !== undefined && { tolerations: defaults.tolerations }),
    ...(sidecars.length > 0 && { initContainers: sidecars }),
    containers: [
      {
        name: 'agent',
        image: agent.image,
        ...(agent.command !== undefined && { command: agent.command }),
        ...(agent.args !== undefined && { args: agent.args }),
        env: variablesOf(session, agent, { settings, hasToken: token }),
        ...(agent.resources !== undefined && { resources: agent.resources }),
        ...(mounts.length > 0 && { volumeMounts: mounts }),
        securityContext: CONTAINER_SECURITY,
      },
    ],
    ...volumesOf(parts, volumes),
  }
  return { metadata: { labels: labelsOf(session) }, spec }
}

function volumesOf({ session, agent, tier, settings }: PodParts, others: readonly object[]): object {
  const volumes: object[] = []
  if (hasToken(tier)) {
    const secret = { secretName: sessionSecretOf(session.metadata.name), defaultMode: READ_ONLY }
    volumes.push({ name: SESSION, secret })
  }
  // A volume that outlives the pod comes from a claim template of its Sandbox.
  if (agent.profile === 'codeInterpreter' && agent.workspace === undefined) {
    const sizeLimit = String(agent.codeInterpreter?.workspaceSize ?? settings.workspaceSize)
    volumes.push({ name: WORKSPACE, emptyDir: { sizeLimit } })
  }
  volumes.push(...others)
  return volumes.length === 0 ? {} : { volumes }
}

function workspaceMount({ profile, workspace }: AgentSpec): { name: string; mountPath: string } | null {
  if (workspace !== undefined) return { name: WORKSPACE, mountPath: workspace.mountPath ?? WORKSPACE_DIR }
  return profile === 'codeInterpreter' ? { name: WORKSPACE, mountPath: WORKSPACE_DIR } : null
}

/** The volumes that a Sandbox brings for its pod (docs/spec/crds.md, `workspace`). */
export function volumeClaimsOf({ agent, snapshot }: Pick<PodParts, 'agent' | 'snapshot'>): readonly object[] {
  const { workspace } = agent
  if (workspace === undefined) return []
  const spec = {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: larger(String(workspace.size), snapshot?.restoreSize ?? '') } },
    ...(workspace.storageClassName !== undefined && { storageClassName: workspace.storageClassName }),
    ...(snapshot !== undefined && {
      dataSource: { apiGroup: SNAPSHOT_GROUP, kind: 'VolumeSnapshot', name: snapshot.name },
    }),
  }
  return [{ metadata: { name: WORKSPACE }, spec }]
}

/** A snapshot is not restored into a smaller volume: drivers round sizes up, and the Agent's may have changed since. */
function larger(size: string, restoreSize: string): string {
  return (parseQuantity(restoreSize) ?? 0n) > (parseQuantity(size) ?? 0n) ? restoreSize : size
}

/** Whether a Sandbox has a volume for the workspace, as `volumeClaimsOf` made it. */
export function hasWorkspaceClaim(sandbox: Members): boolean {
  const { volumeClaimTemplates } = member(sandbox, 'spec')
  const templates = Array.isArray(volumeClaimTemplates) ? volumeClaimTemplates.filter(isObject) : []
  return templates.some((template) => textOf(member(template, 'metadata'), 'name') === WORKSPACE)
}

/** The PersistentVolumeClaim that agent-sandbox makes of a Sandbox's template for the workspace. */
export function workspaceClaimOf(sandbox: string): string {
  return `${WORKSPACE}-${sandbox}`
}

/** The problem of a tier's volumes, or null. */
export function volumeProblem({ podDefaults }: TrustTierSpec, modelSecrets: ReadonlySet<string>): string | null {
  for (const [index, volume] of (podDefaults?.volumes ?? []).entries()) {
    const where = `podDefaults.volumes[${index}]`
    if (volume.name === WORKSPACE || volume.name === SESSION)
      return `${where}: the name ${volume.name} is the operator's`
    if (namesSecret(volume, modelSecrets)) return `${where}: holds the key of the model, which never reaches a sandbox`
  }
  return null
}

function namesSecret(volume: Readonly<Record<string, unknown>>, names: ReadonlySet<string>): boolean {
  const { secret, projected }: { secret?: { secretName?: string }; projected?: { sources?: readonly object[] } } =
    volume
  if (secret?.secretName !== undefined && names.has(secret.secretName)) return true
  return (projected?.sources ?? []).some((source: { secret?: { name?: string } }) =>
    names.has(source.secret?.name ?? ''),
  )
}
