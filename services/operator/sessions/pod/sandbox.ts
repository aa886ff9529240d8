import { rfc3339 } from '@plat/core'
import { type Members, member, textOf } from '@plat/kubernetes'
import type { AgentSpec, Resource } from '@plat/resources'
import type { SnapshotRequest } from '../life/hindrance.ts'
import { RELEASE_KEY, sessionSecretOf } from './environment.ts'
import { labelsOf, type PodParts, podTemplateOf, SESSION_LABEL, SNAPSHOT_GROUP, volumeClaimsOf } from './pod.ts'
import { hasLiveView } from './sidecars.ts'

/** Where the API server has the objects of agent-sandbox. */
export const SANDBOX_API = 'agents.x-k8s.io/v1beta1'
export const EXTENSIONS_API = 'extensions.agents.x-k8s.io/v1beta1'
/** Likewise, VolumeSnapshots. */
export const SNAPSHOT_API = `${SNAPSHOT_GROUP}/v1`
/** Likewise, NetworkPolicies. */
export const NETWORK_API = 'networking.k8s.io/v1'
/** Selects what belongs to sessions. */
export const OF_SESSIONS = SESSION_LABEL

export type Owner = Pick<Resource['metadata'], 'name' | 'uid'>

/** The controller reference of what ends with its owner. */
export function ownedBy(kind: 'AgentSession' | 'TrustTier', { name, uid }: Owner): readonly object[] {
  const owner = { apiVersion: 'plat.dev/v1alpha1', kind, name, uid }
  return [{ ...owner, controller: true, blockOwnerDeletion: false }]
}

/** Metadata of an object that ends with its session. */
export function metadataOf(session: Resource<'AgentSession'>) {
  const { name, namespace } = session.metadata
  return { name, namespace, labels: labelsOf(session), ownerReferences: ownedBy('AgentSession', session.metadata) }
}

/** The Sandbox of a session with a dedicated pod. It and its Service have the name of the session. */
export function sandboxOf(parts: PodParts): object {
  const claims = volumeClaimsOf(parts)
  return {
    apiVersion: SANDBOX_API,
    kind: 'Sandbox',
    metadata: metadataOf(parts.session),
    spec: {
      operatingMode: 'Running',
      service: needsService(parts.agent),
      podTemplate: podTemplateOf(parts),
      ...(claims.length > 0 && { volumeClaimTemplates: claims }),
    },
  }
}

/** The gateway calls into these by the name of their session. */
function needsService(agent: AgentSpec): boolean {
  return agent.profile === 'codeInterpreter' || hasLiveView(agent)
}

/** The claim of a session on a warm pool: without additional variables and volumes, which would cause a cold start. */
export function claimOf(session: Resource<'AgentSession'>, pool: string): object {
  return {
    apiVersion: EXTENSIONS_API,
    kind: 'SandboxClaim',
    metadata: metadataOf(session),
    spec: { warmPoolRef: { name: pool }, lifecycle: { shutdownPolicy: 'Delete' } },
  }
}

/** Name of the VolumeSnapshot that the workspace of a fork begins with. */
export function snapshotNameOf(session: string): string {
  return `plat-fork-${session}`
}

/** The VolumeSnapshot of the parent's workspace. It ends with the fork, not with the parent. */
export function snapshotOf(session: Resource<'AgentSession'>, { volumeClaim, className }: SnapshotRequest): object {
  return {
    apiVersion: SNAPSHOT_API,
    kind: 'VolumeSnapshot',
    metadata: { ...metadataOf(session), name: snapshotNameOf(session.metadata.name) },
    spec: { volumeSnapshotClassName: className, source: { persistentVolumeClaimName: volumeClaim } },
  }
}

/** Annotations of a token's Secret: which token it is, and when it is to be minted anew (RFC 3339). A later leader reads them back. */
const JTI = 'plat.dev/jti'
const REFRESH_AT = 'plat.dev/refresh-at'

/** The token of a session as it is in the Secret. */
export interface HeldToken {
  readonly token: string
  readonly jti: string
  /** When it is to be minted anew, in milliseconds since the epoch. */
  readonly refreshAt: number
}

/** The Secret with a session's token, mounted by its pod alone. */
export function tokenSecret(session: Resource<'AgentSession'>, { token, jti, refreshAt }: HeldToken): object {
  const metadata = { ...metadataOf(session), name: sessionSecretOf(session.metadata.name) }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'plat.dev/session-token',
    metadata: { ...metadata, annotations: { [JTI]: jti, [REFRESH_AT]: rfc3339(refreshAt) } },
    data: { token: Buffer.from(token).toString('base64') },
  }
}

/** The Secret with the id of an attested session's release, read by its pod when that starts. */
export function releaseSecret(session: Resource<'AgentSession'>, releaseId: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'plat.dev/session-release',
    metadata: { ...metadataOf(session), name: sessionSecretOf(session.metadata.name) },
    data: { [RELEASE_KEY]: Buffer.from(releaseId).toString('base64') },
  }
}

/** Reads what `tokenSecret` wrote. Returns null for any other object. */
export function heldTokenOf(secret: Members): HeldToken | null {
  const annotations = member(member(secret, 'metadata'), 'annotations')
  const token = Buffer.from(textOf(member(secret, 'data'), 'token'), 'base64').toString()
  const jti = textOf(annotations, JTI)
  const refreshAt = Date.parse(textOf(annotations, REFRESH_AT))
  return token === '' || jti === '' || Number.isNaN(refreshAt) ? null : { token, jti, refreshAt }
}

/** The warm pool of a tier in one namespace. */
export function poolName(tier: string): string {
  return `plat-${tier}`
}

export function poolOf(tier: Resource<'TrustTier'>, namespace: string): object {
  const { template = '', size = 1 } = tier.spec.warmPool ?? {}
  return {
    apiVersion: EXTENSIONS_API,
    kind: 'SandboxWarmPool',
    metadata: {
      name: poolName(tier.metadata.name),
      namespace,
      labels: { 'app.kubernetes.io/managed-by': 'plat-operator', 'plat.dev/tier': tier.metadata.name },
      ownerReferences: ownedBy('TrustTier', tier.metadata),
    },
    spec: { replicas: size, sandboxTemplateRef: { name: template } },
  }
}
