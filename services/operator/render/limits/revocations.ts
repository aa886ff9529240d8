import { rfc3339 } from '@plat/core'
import type { Resource } from '@plat/resources'
import { keyOf } from '../declared.ts'
import { faultLine } from '../unbuilt.ts'

/** Format `revocationsFile`: who may not call. */
export interface RevocationsFile {
  readonly version: 1
  readonly revocations: readonly RevocationEntry[]
}

export interface RevocationEntry {
  /** `AgentRevocation/<namespace>/<name>` */
  readonly id: string
  readonly target: Target
  readonly mode: 'revoke' | 'suspend'
  readonly reason: string
  /** RFC 3339. */
  readonly createdAt: string
  readonly expiresAt?: string
}

type Target = Resource<'AgentRevocation'>['spec']['target']

/**
 * AgentRevocations as the gateway's revocationsFile. One that stands in a namespace of agents reaches no further than that namespace;
 * `home` is the operator's own, whose entries reach everywhere. `ended`: entries of sessions that have ended.
 */
export function renderRevocations(
  revocations: readonly Resource<'AgentRevocation'>[],
  home: string,
  ended: readonly RevocationEntry[] = [],
): { file: RevocationsFile; refused: string[] } {
  const refused: string[] = []
  const entries: RevocationEntry[] = []
  for (const revocation of revocations.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    if (reaches(revocation, home)) entries.push(entryOf(revocation))
    else {
      const why = `reaches beyond ${revocation.metadata.namespace}: put it into the namespace ${home}`
      refused.push(faultLine(revocation, { path: 'target', why }))
    }
  }
  return { file: { version: 1, revocations: [...entries, ...ended] }, refused }
}

function reaches({ metadata, spec: { target } }: Resource<'AgentRevocation'>, home: string): boolean {
  if (metadata.namespace === home) return true
  const within = target.namespace ?? target.agent?.split('/')[0] ?? target.session?.split('/')[0]
  return within === metadata.namespace
}

function entryOf({ metadata, spec }: Resource<'AgentRevocation'>): RevocationEntry {
  const { target, mode = 'revoke', reason = '', expiresAt } = spec
  const created = Date.parse(metadata.creationTimestamp)
  return {
    id: `AgentRevocation/${metadata.namespace}/${metadata.name}`,
    target,
    mode,
    reason,
    createdAt: rfc3339(Number.isNaN(created) ? 0 : created),
    ...(expiresAt !== undefined && { expiresAt }),
  }
}
