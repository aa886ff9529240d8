import { type PoolBound, poolTable } from '@plat/core'
import { type ApprovalUse, agentOf, type Denial, deny, type ErrorCode } from '../../call/index.ts'
import type { Wait } from '../../pipeline/stage.ts'
import { denialReason, EXPIRED_UNUSED, QUORUM_NOT_MET, refusal, USED_BY_ANOTHER, useOf } from './answers.ts'
import { type DecidedCall, isFree } from './decided-call.ts'
import type { ApprovalsOptions } from './options.ts'
import { digestOf } from './question/digest.ts'
import { questionOf } from './question/question.ts'
import { type Ballot, type BallotFault, ballotFault, counted } from './quorum/ballot.ts'
import { Voters } from './quorum/voters.ts'
import { type Entry, isOpen, isUnreported, type SessionName, sessionKey } from './store/book.ts'
import type { Approval, ApprovalEvent } from './store/events.ts'
import { ApprovalLog } from './store/log.ts'
import { Waiters } from './waiters.ts'

/** Interval of the expiry check, in milliseconds. */
const SWEEP_EVERY_MS = 500
/** `retryAfterMs` of calls refused because of the backlog. */
const BACKLOG_RETRY_MS = 5_000

/** Attempts of one call to join or create a question while identical calls change it: far more than callers that can wait. */
const CREATE_ATTEMPTS_MAX = 1_000

/** The pending approval that paused a call in its first pass. */
interface Held {
  readonly approvalId: string
  readonly digest: string
  readonly ruleSha256: string | null
}

/** Questions that are being written, by digest. */
type Creating = Map<string, { readonly session: string; readonly done: Promise<void> }>

/** Reason why a decision was refused. */
export type RefusedDecision = 'unknown' | 'decided' | 'offline' | BallotFault

export type Decided = { readonly approval: Approval } | { readonly refused: RefusedDecision }

/**
 * Approvals: durable, single use, bound to a digest of the call. Paused calls wait here; decisions come from the admin API. Every change
 * is appended to the journal first, conditional on the number of earlier events, so that only one of two concurrent calls gets a grant.
 */
export class Approvals {
  readonly #options: ApprovalsOptions
  readonly #log: ApprovalLog
  readonly #waiters = new Waiters()
  readonly voters: Voters
  readonly #held = new WeakMap<object, Held>()
  /** Questions that are being written, by digest. An identical call attaches to the one under way. */
  readonly #creating: Creating
  readonly #stopSweep: () => void

  private constructor(options: ApprovalsOptions, log: ApprovalLog, creating: Creating) {
    this.#options = options
    this.#log = log
    this.voters = new Voters(options)
    this.#creating = creating
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Reads the journal, then serves. The first sweep closes approvals that expired meanwhile. */
  static async open(options: ApprovalsOptions): Promise<Approvals> {
    const creating: Creating = new Map()
    let changed: (id: string, event: ApprovalEvent) => void = () => {}
    let replaced: () => void = () => {}
    const log = await ApprovalLog.open({
      ...options,
      onChange({ key, event }) {
        // From now on the book holds the question.
        if (event.t === 'created') creating.delete(event.question.digest)
        changed(key, event)
      },
      onReplace: () => replaced(),
    })
    const approvals = new Approvals(options, log, creating)
    changed = (id, event) => {
      approvals.#changed(id)
      const approval = approvals.get(id)
      if (approval !== null) options.onChange?.(event, approval)
    }
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

  pendingOf(session: SessionName): number {
    return this.#log.book.pendingOf(sessionKey(session))
  }

  /** Returns the verdict on a call that needs an approval: the grant it used, a wait, or a refusal. Rejects if the journal fails. */
  async ask(call: DecidedCall): Promise<ApprovalUse | Wait | Denial> {
    const ruleSha256 = call.facts.decision.ruleSha256 ?? null
    const digest = await digestOf(call, ruleSha256)
    if (digest === null)
      return deny(
        'invalid_request',
        'the arguments hold text that is not valid Unicode, so the call cannot be approved',
      )
    for (let tries = 0; tries < CREATE_ATTEMPTS_MAX; tries++) {
      const answer = await this.#tryToAsk(call, digest)
      if (answer === 'changed') continue
      if ('until' in answer) this.#held.set(call, { approvalId: answer.approvalId, digest, ruleSha256 })
      return answer
    }
    return deny('backlog_full', 'identical calls keep changing this approval; call again', {
      retryAfterMs: BACKLOG_RETRY_MS,
    })
  }

  /** Whether an identical call waits, has a grant, or was denied without a caller that learned of it: then that decision counts. */
  async isAsked(call: DecidedCall): Promise<boolean> {
    const digest = await digestOf(call, call.facts.decision.ruleSha256 ?? null)
    if (digest === null) return false
    const { book } = this.#log
    const now = this.#options.clock.now()
    return this.#creating.has(digest) || book.open(digest, now) !== null || book.unreported(digest, now) !== null
  }

  /**
   * Second pass of a released call. Policy must now allow the call, or the same rule must apply unchanged to the same arguments. Returns
   * null if the call was not paused.
   */
  async release(call: DecidedCall): Promise<ApprovalUse | Denial | null> {
    const held = this.#held.get(call)
    if (held === undefined) return null
    const { approvalId } = held
    const { action, ruleSha256 = null } = call.facts.decision
    const rule = action === 'allow' ? held.ruleSha256 : ruleSha256
    if ((await digestOf(call, rule)) !== held.digest) {
      return this.#refusal('approval_stale', approvalId, 'policy now requires another approval than the one granted')
    }
    const used = await this.#log.change<Denial>(approvalId, (entry) => {
      if (entry?.approval.state !== 'approved')
        return { result: this.#refusal('approval_stale', approvalId, USED_BY_ANOTHER) }
      if (this.#isOver(entry)) return { result: this.#refusal('approval_expired', approvalId, EXPIRED_UNUSED) }
      return { events: [this.#useOrEnd(call, entry.approval)] }
    })
    if ('result' in used) return used.result
    return used.approval.usedBy === call.id
      ? useOf(used.approval)
      : this.#refusal('approval_stale', approvalId, QUORUM_NOT_MET)
  }

  /** Applies current groups and quorum. A grant that does not meet them is ended, so that an identical call starts a new approval. */
  #useOrEnd(call: DecidedCall, approval: Approval): ApprovalEvent {
    const quorum = isFree(call) ? null : this.voters.quorumOf(call)
    const { user } = approval.question
    const isMet = quorum === null || (typeof quorum !== 'string' && this.voters.satisfy(quorum, approval, user))
    return isMet ? { t: 'used', call: call.id } : { t: 'cancelled' }
  }

  /** Makes a grant usable again until it expires: its call was never forwarded. */
  async giveBack({ approvalId }: ApprovalUse, callId: string): Promise<void> {
    await this.#log.change(approvalId, (entry) => {
      const isUsed = entry?.approval.state === 'used' && entry.approval.usedBy === callId
      return isUsed ? { events: [{ t: 'returned', call: callId }] } : { result: null }
    })
  }

  /** Counts the ballot of a person. Rejects if the journal cannot be written. */
  decide(id: string, ballot: Ballot): Promise<Decided> {
    const { argsSha256: _, ...vote } = ballot
    this.voters.remember(ballot)
    if (ballot.verdict === 'approve' && this.#options.mayApprove?.(ballot) === false) {
      return Promise.resolve({ refused: 'offline' })
    }
    return this.advance(
      id,
      (approval) =>
        ballotFault(approval, ballot, this.voters.requester(approval.question.user)) ??
        counted(approval, {
          ...vote,
          person: [...vote.person],
          groups: [...vote.groups],
          at: this.#options.clock.now(),
        }),
    )
  }

  /** Appends the events that `next` derives from a pending approval. Rejects if the journal cannot be written. */
  async advance(id: string, next: (approval: Approval) => readonly ApprovalEvent[] | BallotFault): Promise<Decided> {
    const changed = await this.#log.change<RefusedDecision>(id, (entry) => {
      if (entry === null) return { result: 'unknown' }
      if (entry.approval.state !== 'pending' || this.#isOver(entry)) return { result: 'decided' }
      const events = next(entry.approval)
      return typeof events === 'string' ? { result: events } : { events }
    })
    return 'result' in changed ? { refused: changed.result } : changed
  }

  /** Pending approvals whose user has neither confirmed nor been waived. */
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
    const now = this.#options.clock.now()
    const open = this.#log.book.open(digest, now)
    if (open !== null) return this.#join(call, open.approval.question.id)
    const denied = this.#log.book.unreported(digest, now)
    if (denied !== null) return this.#report(call, denied.approval.question.id)
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

  /** Refuses an identical call once, if no call was waiting when the approval was denied. Later calls start a new approval. */
  async #report(call: DecidedCall, id: string): Promise<Denial | 'changed'> {
    const reported = await this.#markReported(id, call.id)
    return 'result' in reported ? reported.result : this.#closed(reported.approval)
  }

  /** Records that this call learned of the denial. Results in `changed` if another call did before. */
  #markReported(id: string, callId: string) {
    return this.#log.change<'changed'>(id, (entry) =>
      entry !== null && isUnreported(entry.approval)
        ? { events: [{ t: 'attached', call: callId }] }
        : { result: 'changed' },
    )
  }

  async #create(call: DecidedCall, digest: string): Promise<Wait | Denial | 'changed'> {
    const session = sessionKey(call.facts.identity)
    const bound = this.#boundFor(call.facts.identity)
    if (bound !== null) {
      this.#options.onRefused?.(bound)
      return deny('backlog_full', 'too many approvals are pending', { retryAfterMs: BACKLOG_RETRY_MS })
    }
    const quorum = this.voters.quorumOf(call)
    if (typeof quorum === 'string') return deny('policy_denied', quorum)
    const { promise: done, resolve: written } = Promise.withResolvers<void>()
    this.#creating.set(digest, { session, done })
    try {
      const { question, whole } = await questionOf(call, { digest, quorum }, this.#options)
      if (!(await this.#log.create(question, call.id))) return 'changed'
      if (whole !== null) this.#options.onTruncated?.(question, whole)
      return this.#wait(call, question.id)
    } finally {
      this.#creating.delete(digest)
      written()
    }
  }

  /** Returns the bound that one more question would exceed, counting those being written. */
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

  /** Starts to wait. A decision made while the event was written applies at once. */
  #wait(call: DecidedCall, id: string): Wait {
    const waiter = this.#waiters.add(id, call.id)
    const leave = () => {
      if (this.#waiters.remove(id, waiter)) void this.#left(call, id)
    }
    if (call.signal.aborted) leave()
    else call.signal.addEventListener('abort', leave, { once: true })
    this.#answer(id)
    return { kind: 'wait', approvalId: id, until: waiter.until }
  }

  /** Called when a waiting caller leaves. It may come back unless it was revoked: then its question is cancelled. */
  async #left(call: DecidedCall, id: string): Promise<void> {
    const cut = call.signal.reason === 'revoked' && call.facts.identity.expiresAt > this.#options.clock.now()
    const event: ApprovalEvent = { t: cut && !this.#waiters.has(id) ? 'cancelled' : 'detached' }
    await this.#log
      .change(id, (entry) => (entry?.approval.state === 'pending' ? { events: [event] } : { result: null }))
      .catch(this.#options.onFault)
  }

  #sweep(): void {
    for (const entry of this.#log.book.opened()) {
      const { id } = entry.approval.question
      if (!this.#isOver(entry)) {
        if (this.#isOrphaned(entry)) void this.#end(id, 'cancelled')
        continue
      }
      // Refuse waiting calls first: a failing disk must not pause a call forever.
      this.#waiters.refuse(id, this.#refusal('approval_expired', id, EXPIRED_UNUSED))
      if (this.#options.journal.health === 'ok' && !this.#log.isChanging(id)) void this.#end(id, 'expired')
    }
    this.#log.tidy()
  }

  /** Whether no call waits for a pending approval, and none can come: its session is revoked. */
  #isOrphaned({ approval: { state, question } }: Entry): boolean {
    if (state !== 'pending' || this.#waiters.has(question.id)) return false
    const isWritable = this.#options.journal.health === 'ok' && !this.#log.isChanging(question.id)
    return isWritable && this.#options.hasEnded?.(question) === true
  }

  async #end(id: string, t: 'expired' | 'cancelled'): Promise<void> {
    await this.#log
      .change(id, (entry) => (entry !== null && isOpen(entry.approval) ? { events: [{ t }] } : { result: null }))
      .catch(this.#options.onFault)
  }

  /** Refuses calls that wait for an approval that no longer exists. */
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

  /** Settles the calls that wait for a decided approval. */
  #answer(id: string): void {
    const approval = this.#waiters.has(id) ? this.get(id) : null
    if (approval === null || approval.state === 'pending') return
    if (approval.state === 'approved') {
      this.#waiters.grant(id, this.#refusal('approval_stale', id, USED_BY_ANOTHER))
      return
    }
    const [informed] = this.#waiters.refuse(id, this.#closed(approval))
    // Until this is written, an identical call would be refused as well.
    if (isUnreported(approval) && informed !== undefined) this.#markReported(id, informed).catch(this.#options.onFault)
  }

  #closed({ state, votes, question: { id } }: Approval): Denial {
    if (state === 'denied') return this.#refusal('approval_denied', id, denialReason(votes))
    if (state === 'expired') return this.#refusal('approval_expired', id, EXPIRED_UNUSED)
    return this.#refusal('approval_stale', id, USED_BY_ANOTHER)
  }

  #isOver({ approval }: Entry): boolean {
    return approval.question.expiresAt <= this.#options.clock.now()
  }

  #refusal(code: ErrorCode, approvalId: string, reason: string): Denial {
    return refusal(code, reason, { approvalId, question: this.get(approvalId)?.question ?? null })
  }
}
