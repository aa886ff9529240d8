import { isSamePerson, linkOf, type PersonMarks } from '../../../admin/index.ts'
import type { Approval, ApprovalEvent, Vote } from '../store/events.ts'
import type { Quorum } from './quorum.ts'

/** What marks the vote of the user that the session acts for. */
export const BY_CIBA = 'ciba'

/** Somebody decides. */
export interface Ballot extends Omit<Vote, 'at' | 'person' | 'groups'> {
  /** What identifies whoever decides. */
  readonly person: PersonMarks
  /** Of whoever decides. */
  readonly groups: readonly string[]
}

/** Why a ballot does not count: `self` is whoever the call is for, `group` is not of those who may, `voted` did already. */
export type BallotFault = 'self' | 'group' | 'voted'

/**
 * Whether this person's approval can count: each counts once, nobody approves what is done for himself, and groups are those that
 * the question asks for. Whoever may decide at all may deny.
 */
export function ballotFault(
  { question, votes }: Approval,
  { person, groups, verdict }: Ballot,
  requester: PersonMarks,
): BallotFault | null {
  if (verdict === 'deny') return null
  if (isSamePerson(requester, person)) return 'self'
  const { approverGroups } = question.quorum
  if (approverGroups.length > 0 && !approverGroups.some((group) => groups.includes(group))) return 'group'
  return votes.some((vote) => isApprover(vote) && isSamePerson(personOf(vote), person)) ? 'voted' : null
}

/** A vote with what follows from it: a denial ends the approval at once, an approval when it was the last that was missing. */
export function counted(approval: Approval, vote: Vote): ApprovalEvent[] {
  const event: ApprovalEvent = { t: 'vote', ...vote }
  if (vote.verdict === 'deny') return [event, { t: 'denied' }]
  const state = vote.via === BY_CIBA ? 'confirmed' : stateOf(approval)
  return isComplete(approval, [...approval.votes, vote], state) ? [event, { t: 'granted' }] : [event]
}

/** The user could not be asked, and the approvers decide alone: one of them at least. */
export function waived(approval: Approval, reason: string): ApprovalEvent[] {
  const event: ApprovalEvent = { t: 'unconfirmed', reason }
  return isComplete(approval, approval.votes, 'waived') ? [event, { t: 'granted' }] : [event]
}

/** How people are named in votes and in the ledger; the static admin token is `token:admin`. */
export function userName(user: string): string {
  return `user:${user}`
}

/** Votes that are there and votes that are needed, the user's own among them. */
export function progress(approval: Approval): { readonly given: number; readonly needed: number } {
  const { minApprovers, userConfirmation } = approval.question.quorum
  const state = stateOf(approval)
  const asksUser = userConfirmation !== undefined && state !== 'waived'
  const given = approversIn(approval.votes) + (asksUser && state === 'confirmed' ? 1 : 0)
  return { given, needed: asksUser ? minApprovers + 1 : Math.max(minApprovers, 1) }
}

type ConfirmationState = NonNullable<Approval['confirmation']>['state'] | null

function stateOf({ confirmation }: Approval): ConfirmationState {
  return confirmation?.state ?? null
}

/**
 * Whether the votes that were given satisfy the quorum asked now. `groupsOf`: groups of a voter, the latest that are known.
 */
export function isStanding(
  approval: Approval,
  quorum: Quorum,
  { requester, groupsOf }: { readonly requester: PersonMarks; readonly groupsOf: (vote: Vote) => readonly string[] },
): boolean {
  const { approverGroups } = quorum
  const votes = approval.votes.filter(
    (vote) =>
      !isSamePerson(requester, personOf(vote)) &&
      (approverGroups.length === 0 || groupsOf(vote).some((group) => approverGroups.includes(group))),
  )
  return isComplete({ question: { quorum } }, votes, stateOf(approval))
}

/** What identifies a voter. */
export function personOf({ by, person }: Vote): PersonMarks {
  return person ?? [`name:${by.replace(/^user:/, '').toLowerCase()}`]
}

function isComplete(
  { question }: { readonly question: { readonly quorum: Quorum } },
  votes: readonly Vote[],
  state: ConfirmationState,
): boolean {
  const { minApprovers, userConfirmation } = question.quorum
  const approvers = approversIn(votes)
  if (userConfirmation === undefined || state === 'waived') return approvers >= Math.max(minApprovers, 1)
  return state === 'confirmed' && approvers >= minApprovers
}

function isApprover({ verdict, via }: Vote): boolean {
  return verdict === 'approve' && via !== BY_CIBA
}

/** Distinct people. Whoever is known by name only may be any of the others, so that all of them count as one, and not beside others. */
function approversIn(votes: readonly Vote[]): number {
  const approvers = votes.filter(isApprover)
  const linked = approvers.filter((vote) => linkOf(personOf(vote)) !== null)
  return linked.length > 0 ? linked.length : Math.min(approvers.length, 1)
}
