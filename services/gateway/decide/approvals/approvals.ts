import { type Clock, type Ids, LruCache, type PoolBound, poolTable } from '@plat/core'
import type { Journal } from '@plat/state'
import { linkOf, type PersonMarks } from '../../admin/index.ts'
import { type ApprovalUse, agentOf, type Call, type Denial, deny, type ErrorCode } from '../../call/index.ts'
import type { Wait } from '../../pipeline/stage.ts'
import { denialReason, NOBODY_IN_TIME, QUORUM_NOT_MET, refusal, USED_BY_ANOTHER, useOf } from './answers.ts'
import { digestOf } from './question/digest.ts'
import type { PreviewOptions, RedactAll } from './question/preview.ts'
import { questionOf } from './question/question.ts'
import { type Ballot, type BallotFault, ballotFault, counted, isStanding, personOf } from './quorum/ballot.ts'
import type { ApprovalRule, Quorum, QuorumFloor } from './quorum/quorum.ts'
import { isFree } from './stage.ts'
import { type Entry, isOpen, type SessionName, sessionKey } from './store/book.ts'
import type { Approval, ApprovalEvent, Vote } from './store/events.ts'
import { ApprovalLog } from './store/log.ts'
import { Waiters } from './waiters.ts'

/** How often expiry is looked for, in milliseconds. */
const SWEEP_EVERY_MS = 500
/** When a caller that found the backlog full should come again, in milliseconds. */
const BACKLOG_RETRY_MS = 5_000

/** Attempts of one call to join or ask a question while identical calls change it: far more than callers that can wait. */
const ASK_TRIES_MAX = 1_000

/** People whose latest groups are remembered; those unused for longest are forgotten first. */
const PEOPLE_MAX = 10_000

/** A call with a decision of policy. */
export type DecidedCall = Call<'identity' | 'target' | 'pin' | 'taints' | 'decision' | 'redacted'>

/** What a call was held for in its first pass. */
interface Held {
  readonly approvalId: string
  readonly digest: string
  readonly ruleSha256: string | null
}

/** Questions that are being written, by digest. */
type Creating = Map<string, { readonly session: string; readonly done: Promise<void> }>

export interface ApprovalsOptions {
  readonly journal: Journal<ApprovalEvent>
  readonly clock: Clock
  readonly ids: Ids
  /** Lifetime of a pending approval and of its grant, in milliseconds. */
  readonly timeoutMs: number
  readonly preview: PreviewOptions
  /** For previews of arguments that no profile of data-loss prevention looks at. */
  readonly redactAll?: RedactAll | undefined
  /** The least that the gateway asks of every approval. */
  readonly floor: QuorumFloor
  /** Every rule that asks for an approval of this call. */
  readonly asking: (call: DecidedCall) => readonly ApprovalRule[]
  /** Whether users can be asked to confirm. */
  readonly asksUsers: boolean
  /** Whether this person may approve anything now; absent: whoever may decide may. */
  readonly mayApprove?: ((who: Pick<Ballot, 'by' | 'groups'>) => boolean) | undefined
  /** Sees each event that the journal holds at start, with when it was written. */
  /** What identifies the user that a session acts for. */
  readonly personOf: (user: string) => PersonMarks
  readonly onReplay?: (event: ApprovalEvent, approval: Approval, at: number) => void
  /** Told once of each event that this replica made durable. */
  readonly onEvent: (event: ApprovalEvent, approval: Approval) => void
  /** Told how many are pending, after each change. */
  readonly onPending: (count: number) => void
  /** Called when a question is refused because too many are pending. */
  readonly onRefused?: (bound: PoolBound) => void
  /** The journal could not be written where nobody waits for the answer. */
  readonly onFault: (error: unknown) => void
}

/** Why nothing was decided. */
export type RefusedDecision = 'unknown' | 'decided' | 'offline' | BallotFault

export type Decided = { readonly approval: Approval } | { readonly refused: RefusedDecision }

/**
 * Approvals: durable, single use, bound to a digest of what is asked. A held call waits here; decisions come from the
 * admin API. Every change is an event of the journal first, bound to the number of events before it, so that of two calls
 * that want the same grant one gets it.
 */
export class Approvals {
  readonly #options: ApprovalsOptions
  readonly #log: ApprovalLog
  readonly #waiters = new Waiters()
  /** Groups that a person had in the latest ballot here, by issuer and subject. */
  readonly #groups = new LruCache<string, readonly string[]>({ maxEntries: PEOPLE_MAX })
  readonly #held = new WeakMap<object, Held>()
  /** Questions that are being written, by digest: an identical call meanwhile attaches to it. */
  readonly #creating: Creating
  readonly #stopSweep: () => void

  private constructor(options: ApprovalsOptions, log: ApprovalLog, creating: Creating) {
    this.#options = options
    this.#log = log
    this.#creating = creating
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Reads the journal, then answers. What expired meanwhile is closed by the first sweep. */
  static async open(options: ApprovalsOptions): Promise<Approvals> {
    const creating: Creating = new Map()
    let changed: (id: string) => void = () => {}
    let replaced: () => void = () => {}
    const log = await ApprovalLog.open({
      ...options,
      onChange({ key, event }) {
        // From here on the book counts it.
        if (event.t === 'created') creating.delete(event.question.digest)
        changed(key)
      },
      onReplace: () => replaced(),
    })
    const approvals = new Approvals(options, log, creating)
    changed = (id) => approvals.#changed(id)
    replaced = () => approvals.#replaced()
    options.onPending(log.book.pending)
    return approvals
  }

  /** Newest first. */
  list(): readonly Approval[] {
    return this.#log.book.list()
  }

  get(id: string): Approval | null {
    return this.#log.get(id)
  }

  /** How many a session waits for. */
  pendingOf(session: SessionName): number {
    return this.#log.book.pendingOf(sessionKey(session))
  }

  /** The verdict over a call that needs an approval: a grant that it used, a wait, or a refusal. Rejects with the journal. */
  async ask(call: DecidedCall): Promise<ApprovalUse | Wait | Denial> {
    const ruleSha256 = call.facts.decision.ruleSha256 ?? null
    const digest = await digestOf(call, ruleSha256)
    if (digest === null)
      return deny('invalid_request', 'the arguments hold text that is no Unicode: nobody can approve them')
    for (let tries = 0; tries < ASK_TRIES_MAX; tries++) {
      const answer = await this.#tryToAsk(call, digest)
      if (answer === 'changed') continue
      if ('until' in answer) this.#held.set(call, { approvalId: answer.approvalId, digest, ruleSha256 })
      return answer
    }
    return deny('backlog_full', 'identical calls keep changing this approval; call again', {
      retryAfterMs: BACKLOG_RETRY_MS,
    })
  }

  /**
   * A released call in its second pass: what policy says now must be an allow, or the same rule unchanged, over the same
   * arguments. Null: the call was not held.
   */
  async release(call: DecidedCall): Promise<ApprovalUse | Denial | null> {
    const held = this.#held.get(call)
    if (held === undefined) return null
    const { approvalId } = held
    const { action, ruleSha256 = null } = call.facts.decision
    const rule = action === 'allow' ? held.ruleSha256 : ruleSha256
    if ((await digestOf(call, rule)) !== held.digest) {
      return this.#refusal('approval_stale', approvalId, 'what was approved is not what policy asks for now')
    }
    const used = await this.#log.change<Denial>(approvalId, (entry) => {
      if (entry?.approval.state !== 'approved')
        return { result: this.#refusal('approval_stale', approvalId, USED_BY_ANOTHER) }
      if (this.#isOver(entry)) return { result: this.#refusal('approval_expired', approvalId, NOBODY_IN_TIME) }
      return { events: [this.#useOrEnd(call, entry.approval)] }
    })
    if ('result' in used) return used.result
    return used.approval.usedBy === call.id
      ? useOf(used.approval)
      : this.#refusal('approval_stale', approvalId, QUORUM_NOT_MET)
  }

  /** People and quorum are judged as of now; a grant that does not meet them is ended, so that an identical call asks anew. */
  #useOrEnd(call: DecidedCall, approval: Approval): ApprovalEvent {
    const quorum = isFree(call) ? null : this.#quorumOf(call)
    const isMet =
      quorum === null || (typeof quorum !== 'string' && isStanding(approval, quorum, this.#peopleOf(approval)))
    return isMet ? { t: 'used', call: call.id } : { t: 'cancelled' }
  }

  #peopleOf({ question: { user } }: Approval) {
    return {
      requester: user === null ? [] : this.#options.personOf(user),
      groupsOf: (vote: Vote) => this.#groups.get(linkOf(personOf(vote)) ?? '') ?? vote.groups ?? [],
    }
  }

  /** The call was never forwarded: its grant can be used again until it expires. */
  async giveBack({ approvalId }: ApprovalUse, callId: string): Promise<void> {
    await this.#log.change(approvalId, (entry) => {
      const isUsed = entry?.approval.state === 'used' && entry.approval.usedBy === callId
      return isUsed ? { events: [{ t: 'returned', call: callId }] } : { result: null }
    })
  }

  /** A person decides, or is one of those who must. Rejects when the journal cannot be written. */
  decide(id: string, ballot: Ballot): Promise<Decided> {
    this.#remember(ballot)
    if (ballot.verdict === 'approve' && this.#options.mayApprove?.(ballot) === false) {
      return Promise.resolve({ refused: 'offline' })
    }
    return this.advance(
      id,
      (approval) =>
        ballotFault(approval, ballot, this.#peopleOf(approval).requester) ??
        counted(approval, {
          ...ballot,
          person: [...ballot.person],
          groups: [...ballot.groups],
          at: this.#options.clock.now(),
        }),
    )
  }

  #remember({ person, groups }: Ballot): void {
    const link = linkOf(person)
    if (link !== null) this.#groups.set(link, groups)
  }

  /** Appends what follows for an approval that is still pending. Rejects when the journal cannot be written. */
  async advance(id: string, next: (approval: Approval) => readonly ApprovalEvent[] | BallotFault): Promise<Decided> {
    const changed = await this.#log.change<RefusedDecision>(id, (entry) => {
      if (entry === null) return { result: 'unknown' }
      if (entry.approval.state !== 'pending' || this.#isOver(entry)) return { result: 'decided' }
      const events = next(entry.approval)
      return typeof events === 'string' ? { result: events } : { events }
    })
    return 'result' in changed ? { refused: changed.result } : changed
  }

  /** Pending approvals whose user has neither confirmed nor been given up on. */
  awaitingUsers(): Approval[] {
    const opened = this.#log.book.opened().map(({ approval }) => approval)
    return opened.filter(
      ({ state, question, confirmation }) =>
        state === 'pending' &&
        question.quorum.userConfirmation !== undefined &&
        (confirmation === undefined || confirmation.state === 'asked'),
    )
  }

  close(): void {
    this.#stopSweep()
    this.#log.close()
  }

  async #tryToAsk(call: DecidedCall, digest: string): Promise<ApprovalUse | Wait | Denial | 'changed'> {
    const open = this.#log.book.open(digest, this.#options.clock.now())
    if (open !== null) return this.#join(call, open.approval.question.id)
    const busy = this.#creating.get(digest)
    if (busy === undefined) return this.#create(call, digest)
    await busy.done
    return 'changed'
  }

  async #join(call: DecidedCall, id: string): Promise<ApprovalUse | Wait | 'changed'> {
    const joined = await this.#log.change<'changed'>(id, (entry) => {
      if (entry === null || this.#isOver(entry)) return { result: 'changed' }
      const { state } = entry.approval
      if (state === 'approved') return { events: [this.#useOrEnd(call, entry.approval)] }
      return state === 'pending' ? { events: [{ t: 'attached', call: call.id }] } : { result: 'changed' }
    })
    if ('result' in joined) return joined.result
    const { approval } = joined
    if (approval.usedBy === call.id) return useOf(approval)
    return approval.state === 'cancelled' ? 'changed' : this.#wait(call, id)
  }

  async #create(call: DecidedCall, digest: string): Promise<Wait | Denial | 'changed'> {
    const session = sessionKey(call.facts.identity)
    const bound = this.#boundFor(call.facts.identity)
    if (bound !== null) {
      this.#options.onRefused?.(bound)
      return deny('backlog_full', 'too many approvals are pending', { retryAfterMs: BACKLOG_RETRY_MS })
    }
    const quorum = this.#quorumOf(call)
    if (typeof quorum === 'string') return deny('policy_denied', quorum)
    const question = questionOf(call, { digest, quorum }, this.#options)
    const { promise: done, resolve: written } = Promise.withResolvers<void>()
    this.#creating.set(digest, { session, done })
    try {
      return (await this.#log.create(question, call.id)) ? this.#wait(call, question.id) : 'changed'
    } finally {
      this.#creating.delete(digest)
      written()
    }
  }

  /** A text says why nobody could approve it. */
  #quorumOf(call: DecidedCall): Quorum | string {
    const { floor, asking, asksUsers } = this.#options
    const { policy, rule } = call.facts.decision
    const rules = asking(call)
    const quorum = floor.over(rules.length > 0 ? rules : [{ policy, rule, quorum: null }])
    if (typeof quorum === 'string' || quorum.userConfirmation === undefined || asksUsers) return quorum
    return 'nobody can approve this: its user must confirm it, and ciba.enabled is off'
  }

  /** The bound that one more question would meet: those that are being written count as well. */
  #boundFor(identity: SessionName): PoolBound | null {
    const session = sessionKey(identity)
    const agent = agentOf(identity)
    let ofSession = this.#log.book.pendingOf(session)
    let ofAgent = this.#log.book.pendingOfAgent(agent)
    for (const other of this.#creating.values()) {
      if (other.session === session) ofSession++
      if (other.session.startsWith(`${agent}/`)) ofAgent++
    }
    const { total, shares } = poolTable.pending_approvals
    if (ofAgent >= shares[0].max || ofSession >= shares[1].max) return 'share'
    return this.#log.book.pending + this.#creating.size >= total ? 'total' : null
  }

  /** The call waits from here on; what was decided while its event was written counts at once. */
  #wait(call: DecidedCall, id: string): Wait {
    const waiter = this.#waiters.add(id)
    const leave = () => {
      if (this.#waiters.remove(id, waiter)) void this.#left(call, id)
    }
    if (call.signal.aborted) leave()
    else call.signal.addEventListener('abort', leave, { once: true })
    this.#answer(id)
    return { kind: 'wait', approvalId: id, until: waiter.until }
  }

  /** A caller that left may come back; one that may not call any more takes the question with it. */
  async #left(call: DecidedCall, id: string): Promise<void> {
    const cut = call.signal.reason === 'revoked' && call.facts.identity.expiresAt > this.#options.clock.now()
    const event: ApprovalEvent = { t: cut && !this.#waiters.has(id) ? 'cancelled' : 'detached' }
    await this.#log
      .change(id, (entry) => (entry?.approval.state === 'pending' ? { events: [event] } : { result: null }))
      .catch(this.#options.onFault)
  }

  #sweep(): void {
    for (const entry of this.#log.book.opened()) {
      if (!this.#isOver(entry)) continue
      const { id } = entry.approval.question
      // Waiting calls are refused first: a disk that fails must not hold a call for ever.
      this.#waiters.refuse(id, this.#refusal('approval_expired', id, NOBODY_IN_TIME))
      if (this.#options.journal.health === 'ok' && !this.#log.isChanging(id)) void this.#expire(id)
    }
    this.#log.tidy()
  }

  async #expire(id: string): Promise<void> {
    await this.#log
      .change(id, (entry) =>
        entry !== null && isOpen(entry.approval) ? { events: [{ t: 'expired' }] } : { result: null },
      )
      .catch(this.#options.onFault)
  }

  /** Calls that wait for an approval that is gone are refused. */
  #replaced(): void {
    this.#options.onPending(this.#log.book.pending)
    for (const id of this.#waiters.ids()) {
      if (this.get(id) === null) this.#waiters.refuse(id, this.#refusal('approval_stale', id, USED_BY_ANOTHER))
    }
  }

  #changed(id: string): void {
    this.#options.onPending(this.#log.book.pending)
    this.#answer(id)
  }

  /** Tells whoever waits for an approval what became of it. */
  #answer(id: string): void {
    const approval = this.#waiters.has(id) ? this.get(id) : null
    if (approval === null || approval.state === 'pending') return
    if (approval.state === 'approved') this.#waiters.grant(id, this.#refusal('approval_stale', id, USED_BY_ANOTHER))
    else this.#waiters.refuse(id, this.#closed(approval))
  }

  #closed({ state, votes, question: { id } }: Approval): Denial {
    if (state === 'denied') return this.#refusal('approval_denied', id, denialReason(votes))
    if (state === 'expired') return this.#refusal('approval_expired', id, NOBODY_IN_TIME)
    return this.#refusal('approval_stale', id, USED_BY_ANOTHER)
  }

  #isOver({ approval }: Entry): boolean {
    return approval.question.expiresAt <= this.#options.clock.now()
  }

  #refusal(code: ErrorCode, approvalId: string, reason: string): Denial {
    return refusal(code, reason, { approvalId, question: this.get(approvalId)?.question ?? null })
  }
}
