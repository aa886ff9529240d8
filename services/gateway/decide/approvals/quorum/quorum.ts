import { glob } from '@plat/core'
import type { ApprovalQuorumConfig } from '../config.ts'
import type { Question } from '../store/events.ts'

/** The approvers that an approval needs. */
export type Quorum = Question['quorum']

export interface ApprovalRule {
  /** `<namespace>/<name>`. Null: no policy requires it, for example a changed tool. */
  readonly policy: string | null
  readonly rule: string | null
  readonly quorum: Partial<Quorum> | null
}

interface Entry {
  readonly quorum: Quorum
  /** 2: key names policy and rule; 1: only the policy; 0: only the rule. */
  readonly exactness: number
  readonly key: string
  matches(policy: string, rule: string): boolean
}

/** `approvalQuorum`: minimum quorum of every approval. */
export class QuorumFloor {
  readonly #byDefault: Quorum
  /** Most exact first. */
  readonly #entries: readonly Entry[]

  constructor(config: ApprovalQuorumConfig) {
    this.#byDefault = config.default
    this.#entries = Object.entries(config.rules)
      .map(([key, quorum]) => entryOf(key, quorum))
      .toSorted(moreExactFirst)
  }

  /**
   * Merges the quorums of all matching approval rules: the highest number of approvers, the groups that all of them share, and user
   * confirmation if one of them needs it. Returns a text if no one could approve.
   */
  over(approvalRules: readonly ApprovalRule[]): Quorum | string {
    const all = approvalRules.flatMap(({ policy, rule, quorum }) => [
      this.#least(policy ?? '', rule ?? ''),
      ...(quorum === null ? [] : [quorum]),
    ])
    const approverGroups = sharedGroups(all)
    if (approverGroups === null) return 'this cannot be approved: its approval rules have no group in common'
    return {
      // Includes the gateway's own quorum, whatever the rules say.
      minApprovers: Math.max(...all.map(({ minApprovers = 0 }) => minApprovers)),
      approverGroups,
      ...(all.some(({ userConfirmation }) => userConfirmation === 'ciba') && { userConfirmation: 'ciba' as const }),
    }
  }

  #least(policy: string, rule: string): Quorum {
    return this.#entries.find((entry) => entry.matches(policy, rule))?.quorum ?? this.#byDefault
  }
}

/** A policy part with a slash is compared with the whole name, otherwise with the name within its namespace. */
function entryOf(key: string, quorum: Quorum): Entry {
  const slash = key.lastIndexOf('/')
  const [policyPart, rulePart] = [key.slice(0, slash), key.slice(slash + 1)]
  const [ofPolicy, ofRule] = [glob(policyPart), glob(rulePart)]
  const isWhole = policyPart.includes('/')
  return {
    quorum,
    key,
    exactness: (policyPart.includes('*') ? 0 : 2) + (rulePart.includes('*') ? 0 : 1),
    matches: (policy, rule) => ofRule(rule) && ofPolicy(isWhole ? policy : policy.slice(policy.indexOf('/') + 1)),
  }
}

function moreExactFirst(a: Entry, b: Entry): number {
  return b.exactness - a.exactness || b.key.length - a.key.length || (a.key < b.key ? -1 : 1)
}

/** Returns an empty list if any group will do, null if the quorums share no group. */
function sharedGroups(quorums: readonly Partial<Quorum>[]): string[] | null {
  const named = quorums.flatMap(({ approverGroups = [] }) => (approverGroups.length === 0 ? [] : [approverGroups]))
  const [first, ...rest] = named
  if (first === undefined) return []
  const shared = [...new Set(first)].filter((group) => rest.every((groups) => groups.includes(group)))
  return shared.length === 0 ? null : shared
}
