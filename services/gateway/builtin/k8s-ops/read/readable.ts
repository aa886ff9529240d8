import type { Denial } from '../../../call/index.ts'
import { type ApiSession, type Refused, refused } from '../api.ts'
import { isSecret, type Kind, type KindName, NO_SECRETS } from '../kinds.ts'
import type { ClusterParts } from '../parts.ts'

/** The kind that a call reads, and from which namespace if any is named. */
interface ReadArguments extends KindName {
  readonly namespace?: string
}

/** Refuses Secrets, and namespaces outside of those that may be read; null: the call may go on. */
export function readDenial({ reach }: Pick<ClusterParts, 'reach'>, { kind, namespace }: ReadArguments): Denial | null {
  if (isSecret(kind)) return NO_SECRETS
  return namespace ? reach.readFault(namespace) : null
}

/** Finds the kind, and where it may be read: `within` is null for all namespaces, and for kinds without namespaces. */
export async function findReadable(
  { kinds, reach }: Pick<ClusterParts, 'kinds' | 'reach'>,
  session: ApiSession,
  args: ReadArguments,
): Promise<{ readonly kind: 'found'; readonly found: Kind; readonly within: string | null } | Refused> {
  const found = await kinds.find(session, args)
  if ('answer' in found) return found
  const within = found.namespaced ? (args.namespace ?? null) : null
  const denial = reach.kindFault(found, within)
  return denial === null ? { kind: 'found', found, within } : refused({ ...denial, attempts: session.attempts })
}
