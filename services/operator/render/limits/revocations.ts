import { rfc3339 } from '@plat/core'
import type { Resource } from '@plat/resources'
import { problemLine } from '../../validate/problem.ts'
import { keyOf } from '../declared.ts'
import { CONFIG_MAP_BYTES, isWithinLimits, type PackedFile, packFile, roomOf } from '../size/packed.ts'
import { exceededShares, OVER_SHARE } from '../size/shares.ts'

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

/** Entries that a gateway accepts in one file. */
export const MAX_REVOCATIONS = 100_000
/** The last time that RFC 3339 can name, in milliseconds since the epoch. */
const LAST_TIME = Date.parse('9999-12-31T23:59:59Z')
/** Parts of the limit that are tried in turn: what fits by itself may take a little more room together. */
const MARGINS = [0.95, 0.8, 0.5]

type Revocation = Resource<'AgentRevocation'>
type Target = Revocation['spec']['target']

/**
 * AgentRevocations as the gateway's revocationsFile. One in a namespace of agents reaches no further than that namespace; `home` is the
 * operator's own, whose entries reach everywhere. `ended`: entries of sessions that have ended.
 */
export function renderRevocations(
  revocations: readonly Revocation[],
  home: string,
  ended: readonly RevocationEntry[] = [],
): { file: RevocationsFile; refused: string[] } {
  const refused: string[] = []
  const entries: RevocationEntry[] = []
  for (const revocation of revocations.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    if (reaches(revocation, home)) entries.push(entryOf(revocation))
    else {
      const why = `reaches beyond ${revocation.metadata.namespace}: put it into the namespace ${home}`
      refused.push(problemLine(revocation, { path: 'target', why }))
    }
  }
  return { file: { version: 1, revocations: [...entries, ...ended] }, refused }
}

/**
 * Renders the revocations so that a ConfigMap holds them. Where it would not, namespaces share it evenly, and one that exceeds its share is
 * suspended as a whole instead: a revocation is never left out. Those of the own namespace come first.
 */
export async function renderRevocationsWithinShares(
  revocations: readonly Revocation[],
  { home, ended, now }: { readonly home: string; readonly ended: readonly RevocationEntry[]; readonly now: number },
): Promise<{ packed: PackedFile; refused: readonly string[] }> {
  const { file, refused } = renderRevocations(revocations, home, ended)
  let packed = await pack(file.revocations)
  const suspended = new Set<string>()
  for (const margin of MARGINS) {
    if (isWithinLimits(packed) && file.revocations.length <= MAX_REVOCATIONS) break
    for (const namespace of await exceedingNamespaces(file.revocations, home, margin)) suspended.add(namespace)
    const remaining = file.revocations.filter((entry) => !suspended.has(namespaceOf(entry)))
    packed = await pack([...remaining, ...[...suspended].toSorted().map((namespace) => suspensionOf(namespace, now))])
  }
  const why = `the revocations of the namespace exceed its share: the whole namespace is suspended until they fit`
  const affected = revocations.filter(({ metadata }) => suspended.has(metadata.namespace))
  return { packed, refused: [...refused, ...affected.map((one) => problemLine(one, { path: 'metadata.name', why }))] }
}

function pack(revocations: readonly RevocationEntry[]): Promise<PackedFile> {
  return packFile('revocations.json', JSON.stringify({ version: 1, revocations }))
}

async function exceedingNamespaces(
  entries: readonly RevocationEntry[],
  home: string,
  margin: number,
): Promise<Iterable<string>> {
  const needed = new Map<string, number>()
  for (const [namespace, own] of Map.groupBy(entries, namespaceOf)) {
    const room = await roomOf(JSON.stringify(own))
    needed.set(namespace, Math.max(room, Math.ceil((own.length / MAX_REVOCATIONS) * CONFIG_MAP_BYTES)))
  }
  const left = CONFIG_MAP_BYTES * margin - (needed.get(home) ?? 0)
  needed.delete(home)
  return left <= 0 ? [] : exceededShares(needed, left).keys()
}

/** The namespace of an entry's object, which is part of its id. */
function namespaceOf({ id }: RevocationEntry): string {
  return id.split('/')[1] ?? ''
}

function suspensionOf(namespace: string, now: number): RevocationEntry {
  return {
    id: `Namespace/${namespace}`,
    target: { namespace },
    mode: 'suspend',
    reason: `what is revoked in it ${OVER_SHARE}`,
    createdAt: rfc3339(now),
  }
}

function reaches({ metadata, spec: { target } }: Revocation, home: string): boolean {
  if (metadata.namespace === home) return true
  const within = target.namespace ?? target.agent?.split('/')[0] ?? target.session?.split('/')[0]
  return within === metadata.namespace
}

function entryOf({ metadata, spec }: Revocation): RevocationEntry {
  const { target, mode = 'revoke', reason = '', expiresAt } = spec
  const created = Date.parse(metadata.creationTimestamp)
  return {
    id: `AgentRevocation/${metadata.namespace}/${metadata.name}`,
    target,
    mode,
    reason,
    createdAt: rfc3339(Number.isNaN(created) ? 0 : created),
    ...endOf(expiresAt),
  }
}

/** In the form that a gateway accepts, or it would refuse the whole file. An end that cannot be named is none. */
function endOf(expiresAt: string | undefined): Pick<RevocationEntry, 'expiresAt'> {
  const end = Date.parse(expiresAt ?? '')
  return Number.isNaN(end) || end > LAST_TIME ? {} : { expiresAt: rfc3339(Math.max(0, end)) }
}
