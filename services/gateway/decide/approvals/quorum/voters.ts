import { LruCache } from '@plat/core'
import { linkOf, type PersonMarks } from '../../../admin/index.ts'
import type { DecidedCall } from '../decided-call.ts'
import type { ApprovalsOptions } from '../options.ts'
import type { Vote } from '../store/events.ts'
import { type Ballot, isSatisfied, personOf, type Voted } from './ballot.ts'
import type { Quorum } from './quorum.ts'

/** LRU bound of people whose latest groups are remembered. */
const PEOPLE_MAX = 10_000

type VotersOptions = Pick<ApprovalsOptions, 'floor' | 'approvalRules' | 'canPromptUsers' | 'personOf'>

/** The current quorum of calls, and the current groups of those who voted. */
export class Voters {
  readonly #options: VotersOptions
  /** Groups of a person in the latest ballot on this replica, by issuer and subject. */
  readonly #groups = new LruCache<string, readonly string[]>({ maxEntries: PEOPLE_MAX })

  constructor(options: VotersOptions) {
    this.#options = options
  }

  remember({ person, groups }: Pick<Ballot, 'person' | 'groups'>): void {
    const link = linkOf(person)
    if (link !== null) this.#groups.set(link, groups)
  }

  /** Returns the marks of the user that a session acts for. */
  requester(user: string | null): PersonMarks {
    return user === null ? [] : this.#options.personOf(user)
  }

  /** Whether votes given for this user satisfy a quorum, with the latest known groups of the voters. */
  satisfy(quorum: Quorum, votes: Voted, user: string | null): boolean {
    const groupsOf = (vote: Vote) => this.#groups.get(linkOf(personOf(vote)) ?? '') ?? vote.groups ?? []
    return isSatisfied(votes, quorum, { requester: this.requester(user), groupsOf })
  }

  /** Returns the quorum of a call, or the reason why no one can approve it. */
  quorumOf(call: DecidedCall): Quorum | string {
    const { floor, approvalRules, canPromptUsers } = this.#options
    const { policy, rule } = call.facts.decision
    const rules = approvalRules(call)
    const quorum = floor.over(rules.length > 0 ? rules : [{ policy, rule, quorum: null }])
    if (typeof quorum === 'string' || quorum.userConfirmation === undefined || canPromptUsers) return quorum
    return 'this cannot be approved: its user must confirm it, and ciba.enabled is off'
  }
}
