import { isSamePerson, linkOf, type PersonMarks } from '../../../admin/index.ts'
import type { Approval, ApprovalEvent, Vote } from '../store/events.ts'
import type { Quorum } from './quorum.ts'

/** Reason of an approval that is needed although policy allows the call. */
export const CHANGED = 'the definition of the tool is not the one that was pinned'

/** `via` of the vote of the user that the session acts for. */
export const BY_CIBA = 'ciba'

/** The decision of one person. */
export interface Ballot extends Omit<Vote, 'at' | 'person' | 'groups'> {
  /** Marks that identify the person. */
  readonly person: PersonMarks
  /** Groups of the person. */
  readonly groups: readonly string[]
  /** SHA-256 of the arguments that the person knows, as hex: an approval of a truncated preview needs it. */
  readonly argsSha256?: string | undefined
}

/**
 * Why a ballot does not count: `self`: the call is made for this person; `group`: not in an approver group; `voted`: has approved
 * before; `unseen`: the preview is truncated, and the arguments that the person knows are unknown or others; `once`: this approval cannot be
 * given for a session.
 */
export type BallotFault = 'self' | 'group' | 'voted' | 'unseen' | 'once'

/**
 * Returns why an approval of this person does not count, or null if it does. A person counts once, cannot approve calls made for them,
 * must be in one of the approver groups, and must know the arguments. Everyone who can decide may deny.
 */
export function ballotFault(
  { question, votes }: Approval,
  { person, groups, verdict, argsSha256, scope }: Ballot,
  requester: PersonMarks,
): BallotFault | null {
  if (verdict === 'deny') return null
  if (isSamePerson(requester, person)) return 'self'
  const { approverGroups } = question.quorum
  if (approverGroups.length > 0 && !approverGroups.some((group) => groups.includes(group))) return 'group'
  if (votes.some((vote) => isApprover(vote) && isSamePerson(personOf(vote), person))) return 'voted'
  if (scope === 'session' && !isRepeatable(question)) return 'once'
  return isCut(question) && argsSha256 !== question.argsSha256 ? 'unseen' : null
}

/** Whether the approval can be given for the rest of the session: a rule requires it for a tool, and the user confirms no single call. */
export function isRepeatable({ tool, method, rule, quorum, reason }: Approval['question']): boolean {
  const isToolCall = tool !== null && method === 'tools/call'
  return isToolCall && rule !== null && quorum.userConfirmation === undefined && reason !== CHANGED
}

/** Whether everyone who approved did so for the rest of the session. */
export function isForSession({ votes }: Pick<Approval, 'votes'>): boolean {
  const approvers = votes.filter(isApprover)
  return approvers.length > 0 && approvers.every(({ scope }) => scope === 'session')
}

/** Whether approvers see only a part of the arguments, or only their shape. */
export function isCut({ preview }: Pick<Approval['question'], 'preview'>): boolean {
  return preview?.truncated === true
}

/** Returns the events of a vote: a denial ends the approval, and so does the last missing approval. */
export function counted(approval: Approval, vote: Vote): ApprovalEvent[] {
  const event: ApprovalEvent = { t: 'vote', ...vote }
  if (vote.verdict === 'deny') return [event, { t: 'denied' }]
  const state = vote.via === BY_CIBA ? 'confirmed' : stateOf(approval)
  return isComplete(approval, [...approval.votes, vote], state) ? [event, { t: 'granted' }] : [event]
}

/** Events when the user could not be prompted: the approvers decide alone, at least one of them. */
export function waived(approval: Approval, reason: string): ApprovalEvent[] {
  const event: ApprovalEvent = { t: 'unconfirmed', reason }
  return isComplete(approval, approval.votes, 'waived') ? [event, { t: 'granted' }] : [event]
}

/** Name of a user in votes and in the ledger. The static admin token is `token:admin`. */
export function userName(user: string): string {
  return `user:${user}`
}

/** Votes given and votes needed, including the user's own. */
export function progress(approval: Approval): { readonly given: number; readonly needed: number } {
  const { minApprovers, userConfirmation } = approval.question.quorum
  const state = stateOf(approval)
  const asksUser = userConfirmation !== undefined && state !== 'waived'
  const given = approversIn(approval.votes) + (asksUser && state === 'confirmed' ? 1 : 0)
  return { given, needed: asksUser ? minApprovers + 1 : Math.max(minApprovers, 1) }
}

export type Voted = Pick<Approval, 'votes' | 'confirmation'>

type ConfirmationState = NonNullable<Approval['confirmation']>['state'] | null

function stateOf({ confirmation }: Voted): ConfirmationState {
  return confirmation?.state ?? null
}

/** Whether the votes given satisfy this quorum. `groupsOf` returns the latest known groups of a voter. */
export function isSatisfied(
  approval: Voted,
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

/** Marks that identify a voter. */
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

/**
 * Counts distinct people. A voter known by name only could be any of the others: all such voters count as one, and only if there are no
 * others.
 */
function approversIn(votes: readonly Vote[]): number {
  const approvers = votes.filter(isApprover)
  const linked = approvers.filter((vote) => linkOf(personOf(vote)) !== null)
  return linked.length > 0 ? linked.length : Math.min(approvers.length, 1)
}
