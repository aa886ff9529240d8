import { glob } from '@plat/core'
import type { ApprovalQuorumConfig } from '../config.ts'
import type { Question } from '../store/events.ts'

/** Who must approve. */
export type Quorum = Question['quorum']

/** A rule that asks for an approval, and whom it asks. */
export interface ApprovalRule {
  /** `<namespace>/<name>`; null: no policy asks, such as where a tool has changed. */
  readonly policy: string | null
  readonly rule: string | null
  readonly quorum: Partial<Quorum> | null
}

interface Entry {
  readonly quorum: Quorum
  /** 2: policy and rule are named; then the policy alone, then the rule alone. */
  readonly exactness: number
  readonly key: string
  matches(policy: string, rule: string): boolean
}

/** `approvalQuorum`: the least that the gateway asks of every approval. */
export class QuorumFloor {
  readonly #byDefault: Quorum
  /** The most exact first. */
  readonly #entries: readonly Entry[]

  constructor(config: ApprovalQuorumConfig) {
    this.#byDefault = config.default
    this.#entries = Object.entries(config.rules)
      .map(([key, quorum]) => entryOf(key, quorum))
      .toSorted(moreExactFirst)
  }

  /**
   * Who must approve what these rules ask for: the most approvers that anybody wants, of groups that suit everybody, and the user where
   * one rule wants that. A text says why nobody can.
   */
  over(asking: readonly ApprovalRule[]): Quorum | string {
    const all = asking.flatMap(({ policy, rule, quorum }) => [
      this.#least(policy ?? '', rule ?? ''),
      ...(quorum === null ? [] : [quorum]),
    ])
    const approverGroups = sharedGroups(all)
    if (approverGroups === null) return 'nobody may approve this: the rules that ask name no group in common'
    return {
      // Whatever a rule says, the gateway's own quorum is among them.
      minApprovers: Math.max(...all.map(({ minApprovers = 0 }) => minApprovers)),
      approverGroups,
      ...(all.some(({ userConfirmation }) => userConfirmation === 'ciba') && { userConfirmation: 'ciba' as const }),
    }
  }

  #least(policy: string, rule: string): Quorum {
    return this.#entries.find((entry) => entry.matches(policy, rule))?.quorum ?? this.#byDefault
  }
}

/** The policy's part is compared with the whole name where it has a slash, else with the name in its namespace. */
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

/** Empty: any group will do; null: none does. */
function sharedGroups(quorums: readonly Partial<Quorum>[]): string[] | null {
  const named = quorums.flatMap(({ approverGroups = [] }) => (approverGroups.length === 0 ? [] : [approverGroups]))
  const [first, ...rest] = named
  if (first === undefined) return []
  const shared = [...new Set(first)].filter((group) => rest.every((groups) => groups.includes(group)))
  return shared.length === 0 ? null : shared
}
