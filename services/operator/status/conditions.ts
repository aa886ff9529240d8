import type { Resource } from '@plat/resources'

type Status = NonNullable<Resource<'MCPServer'>['status']>

/** The standard condition of a status (docs/spec/crds.md). */
export type Condition = NonNullable<Status['conditions']>[number]

/** A condition without its transition time. */
export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** Characters of a message that every API server takes. */
const MESSAGE_MAX = 32_768

/**
 * The conditions that now hold, sorted by type. `lastTransitionTime` moves only when `status` does; conditions that others
 * wrote stay.
 */
export function withFindings(
  before: readonly Condition[],
  findings: readonly Finding[],
  { generation, now }: { readonly generation: number /** RFC 3339. */; readonly now: string },
): Condition[] {
  const known = new Map(before.map((condition) => [condition.type, condition]))
  for (const finding of findings) {
    const old = known.get(finding.type)
    known.set(finding.type, {
      ...finding,
      message: finding.message.slice(0, MESSAGE_MAX).toWellFormed(),
      lastTransitionTime: old?.status === finding.status ? old.lastTransitionTime : now,
      observedGeneration: generation,
    })
  }
  return [...known.values()].toSorted((a, b) => (a.type < b.type ? -1 : 1))
}
