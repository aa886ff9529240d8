import type { Clock, Ids } from '@plat/core'
import type { Journal, JournalEntry } from '@plat/state'
import { type ApprovalUse, type Call, type Denial, deny, type ErrorCode } from '../../call/index.ts'
import type { Wait } from '../../pipeline/stage.ts'
import { denialReason, NOBODY_IN_TIME, refusal, USED_BY_ANOTHER, useOf } from './answers.ts'
import { Book, type Entry, type SessionName, sessionKey } from './book.ts'
import type { Approval, ApprovalEvent } from './events.ts'
import { digestOf } from './question/digest.ts'
import type { PreviewOptions } from './question/preview.ts'
import { questionOf } from './question/question.ts'
import { type Ballot, type BallotFault, ballotFault, counted } from './quorum/ballot.ts'
import type { AskingRule, Quorum, QuorumFloor } from './quorum/quorum.ts'
import { Waiters } from './waiters.ts'

/** Approvals that one session may have pending; further calls are told `backlog_full`. */
export const PENDING_PER_SESSION_MAX = 100
/** Approvals pending in one gateway. */
export const PENDING_MAX = 10_000
/** How often expiry is looked for, in milliseconds. */
const SWEEP_EVERY_MS = 500
/** When a caller that found the backlog full should come again, in milliseconds. */
const BACKLOG_RETRY_MS = 5_000
/** Events after which the journal is written anew with what still counts. */
export const COMPACT_AFTER_EVENTS = 20_000
/** How long to wait for the event of another replica that came first, in milliseconds. */
const LOOK_AGAIN_MS = 20

/** A call with a decision of policy. */
export type JudgedCall = Call<'identity' | 'target' | 'pin' | 'taints' | 'decision' | 'redacted'>

/** What a call was held for in its first pass. */
interface Held {
  readonly approvalId: string
  readonly digest: string
  readonly ruleSha256: string | null
}

export interface ApprovalsOptions {
  readonly journal: Journal<ApprovalEvent>
  readonly clock: Clock
  readonly ids: Ids
  /** Lifetime of a pending approval and of its grant, in milliseconds. */
  readonly timeoutMs: number
  readonly preview: PreviewOptions
  /** The least that the gateway asks of every approval. */
  readonly floor: QuorumFloor
  /** Every rule that asks for an approval of this call. */
  readonly asking: (call: JudgedCall) => readonly AskingRule[]
  /** Whether users can be asked to confirm. */
  readonly asksUsers: boolean
  /** Whether this person may approve anything now; absent: whoever may decide may. */
  readonly mayApprove?: ((who: Pick<Ballot, 'by' | 'groups'>) => boolean) | undefined
  /** Sees each event that the journal holds at start, with when it was written. */
  readonly onReplay?: (event: ApprovalEvent, approval: Approval, at: number) => void
  /** Told once of each event that this replica made durable. */
  readonly onEvent: (event: ApprovalEvent, approval: Approval) => void
  /** Told how many are pending, after each change. */
  readonly onPending: (count: number) => void
  /** The journal could not be written where nobody waits for the answer. */
  readonly onFault: (error: unknown) => void
}

/** Why nothing was decided. */
export type Refused = 'unknown' | 'decided' | 'offline' | BallotFault

export type Decided = { readonly approval: Approval } | { readonly refused: Refused }

/**
 * Approvals: durable, single use, bound to a digest of what is asked. A held call waits here; whoever decides comes
 * from the admin API. Every change is an event of the journal first, bound to the number of events before it, so that of
 * two that want the same grant one gets it.
 */
export class Approvals {
  readonly #options: ApprovalsOptions
  readonly #book = new Book()
  readonly #waiters = new Waiters()
  readonly #held = new WeakMap<object, Held>()
  /** Questions that are being written, by digest: whoever asks the same meanwhile attaches to it. */
  readonly #creating = new Map<string, { readonly session: string; readonly done: Promise<void> }>()
  /** Events that are being written, by approval. */
  readonly #writing = new Map<string, Promise<unknown>>()
  readonly #stop = new AbortController()
  readonly #stopSweep: () => void
  #events = 0
  #lastSeq = 0
  #compacting = false

  private constructor(options: ApprovalsOptions) {
    this.#options = options
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Reads the journal, then answers. What expired meanwhile is closed by the first sweep. */
  static async open(options: ApprovalsOptions): Promise<Approvals> {
    const approvals = new Approvals(options)
    for await (const entry of options.journal.read(0)) {
      approvals.#follow(entry)
      const approval = approvals.get(entry.key)
      if (approval !== null) options.onReplay?.(entry.event, approval, entry.at)
    }
    options.journal
      .follow(approvals.#lastSeq, (entry) => approvals.#follow(entry), approvals.#stop.signal)
      .catch(options.onFault)
    options.onPending(approvals.#book.pending)
    return approvals
  }

  /** Newest first. */
  list(): readonly Approval[] {
    return this.#book.list()
  }

  get(id: string): Approval | null {
    return this.#book.get(id)?.approval ?? null
  }

  /** How many a session waits for. */
  pendingOf(session: SessionName): number {
    return this.#book.pendingOf(sessionKey(session))
  }

  /** The verdict over a call that needs an approval: a grant that it used, a wait, or a refusal. Rejects with the journal. */
  async ask(call: JudgedCall): Promise<ApprovalUse | Wait | Denial> {
    const ruleSha256 = call.facts.decision.ruleSha256 ?? null
    const digest = digestOf(call, ruleSha256)
    if (digest === null)
      return deny('invalid_request', 'the arguments hold text that is no Unicode: nobody can approve them')
    for (;;) {
      const answer = await this.#tryToAsk(call, digest)
      if (answer === 'changed') continue
      if ('until' in answer) this.#held.set(call, { approvalId: answer.approvalId, digest, ruleSha256 })
      return answer
    }
  }

  /**
   * A released call in its second pass: what policy says now must be an allow, or the same rule unchanged, over the same
   * arguments. Null: the call was not held.
   */
  async release(call: JudgedCall): Promise<ApprovalUse | Denial | null> {
    const held = this.#held.get(call)
    if (held === undefined) return null
    const { approvalId } = held
    const { action, ruleSha256 = null } = call.facts.decision
    const rule = action === 'allow' ? held.ruleSha256 : ruleSha256
    if (digestOf(call, rule) !== held.digest) {
      return this.#refusal('approval_stale', approvalId, 'what was approved is not what policy asks for now')
    }
    for (;;) {
      const entry = this.#book.get(approvalId)
      if (entry?.approval.state !== 'approved') return this.#refusal('approval_stale', approvalId, USED_BY_ANOTHER)
      if (this.#isOver(entry)) return this.#refusal('approval_expired', approvalId, NOBODY_IN_TIME)
      if (await this.#append(entry, [{ t: 'used', call: call.id }])) return useOf(entry.approval)
    }
  }

  /** The call was never forwarded: its grant can be used again until it expires. */
  async giveBack({ approvalId }: ApprovalUse, callId: string): Promise<void> {
    for (;;) {
      const entry = this.#book.get(approvalId)
      if (entry?.approval.state !== 'used' || entry.approval.usedBy !== callId) return
      if (await this.#append(entry, [{ t: 'returned', call: callId }])) return
    }
  }

  /** A person decides, or is one of those who must. Rejects when the journal cannot be written. */
  decide(id: string, ballot: Ballot): Promise<Decided> {
    const { groups: _, ...vote } = ballot
    if (ballot.verdict === 'approve' && this.#options.mayApprove?.(ballot) === false) {
      return Promise.resolve({ refused: 'offline' })
    }
    return this.advance(
      id,
      (approval) => ballotFault(approval, ballot) ?? counted(approval, { ...vote, at: this.#options.clock.now() }),
    )
  }

  /** Appends what follows for an approval that is still pending. Rejects when the journal cannot be written. */
  async advance(id: string, next: (approval: Approval) => readonly ApprovalEvent[] | BallotFault): Promise<Decided> {
    for (;;) {
      const entry = this.#book.get(id)
      if (entry === null) return { refused: 'unknown' }
      if (entry.approval.state !== 'pending' || this.#isOver(entry)) return { refused: 'decided' }
      const events = next(entry.approval)
      if (typeof events === 'string') return { refused: events }
      if (await this.#append(entry, events)) return { approval: entry.approval }
    }
  }

  /** Pending approvals whose user has neither confirmed nor been given up on. */
  awaitingUsers(): Approval[] {
    const opened = this.#book.opened().map(({ approval }) => approval)
    return opened.filter(
      ({ state, question, confirmation }) =>
        state === 'pending' &&
        question.quorum.userConfirmation !== undefined &&
        (confirmation === undefined || confirmation.state === 'asked'),
    )
  }

  close(): void {
    this.#stopSweep()
    this.#stop.abort()
  }

  async #tryToAsk(call: JudgedCall, digest: string): Promise<ApprovalUse | Wait | Denial | 'changed'> {
    const open = this.#book.open(digest)
    if (open !== null && !this.#isOver(open)) return this.#join(call, open)
    const busy = this.#creating.get(digest)
    if (busy === undefined) return this.#create(call, digest)
    await busy.done
    return 'changed'
  }

  async #join(call: JudgedCall, entry: Entry): Promise<ApprovalUse | Wait | 'changed'> {
    if (entry.approval.state === 'approved') {
      return (await this.#append(entry, [{ t: 'used', call: call.id }])) ? useOf(entry.approval) : 'changed'
    }
    const attached = await this.#append(entry, [{ t: 'attached', call: call.id }])
    return attached ? this.#wait(call, entry.approval.question.id) : 'changed'
  }

  async #create(call: JudgedCall, digest: string): Promise<Wait | Denial> {
    const session = sessionKey(call.facts.identity)
    if (this.#isFull(session)) {
      return deny('backlog_full', 'too many approvals are pending', { retryAfterMs: BACKLOG_RETRY_MS })
    }
    const quorum = this.#quorumOf(call)
    if (typeof quorum === 'string') return deny('policy_denied', quorum)
    const question = questionOf(call, { digest, quorum }, this.#options)
    const { promise: done, resolve: written } = Promise.withResolvers<void>()
    this.#creating.set(digest, { session, done })
    try {
      const isNew = await this.#write(question.id, [{ t: 'created', question, call: call.id }], 0)
      if (!isNew) throw new Error('an approval with this id exists already')
    } finally {
      this.#creating.delete(digest)
      written()
    }
    return this.#wait(call, question.id)
  }

  /** A text says why nobody could approve it. */
  #quorumOf(call: JudgedCall): Quorum | string {
    const { floor, asking, asksUsers } = this.#options
    const { policy, rule } = call.facts.decision
    const rules = asking(call)
    const quorum = floor.over(rules.length > 0 ? rules : [{ policy, rule, quorum: null }])
    if (typeof quorum === 'string' || quorum.userConfirmation === undefined || asksUsers) return quorum
    return 'nobody can approve this: its user must confirm it, and ciba.enabled is off'
  }

  #isFull(session: string): boolean {
    let creating = 0
    for (const other of this.#creating.values()) if (other.session === session) creating++
    if (this.#book.pendingOf(session) + creating >= PENDING_PER_SESSION_MAX) return true
    return this.#book.pending + this.#creating.size >= PENDING_MAX
  }

  /** The call waits from here on; what was decided while its event was written counts at once. */
  #wait(call: JudgedCall, id: string): Wait {
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
  async #left(call: JudgedCall, id: string): Promise<void> {
    const cut = call.signal.reason === 'revoked' && call.facts.identity.expiresAt > this.#options.clock.now()
    const event: ApprovalEvent = { t: cut && !this.#waiters.has(id) ? 'cancelled' : 'detached' }
    try {
      for (;;) {
        const entry = this.#book.get(id)
        if (entry?.approval.state !== 'pending' || (await this.#append(entry, [event]))) return
      }
    } catch (error) {
      this.#options.onFault(error)
    }
  }

  #sweep(): void {
    for (const entry of this.#book.opened()) {
      if (!this.#isOver(entry)) continue
      const { id } = entry.approval.question
      // Whoever waits is told first: a disk that fails must not keep a call for ever.
      this.#waiters.refuse(id, this.#refusal('approval_expired', id, NOBODY_IN_TIME))
      const writable = this.#options.journal.health === 'ok' && !this.#writing.has(id)
      if (writable) this.#append(entry, [{ t: 'expired' }]).catch(this.#options.onFault)
    }
    this.#book.forget(this.#options.clock.now())
    if (this.#events >= COMPACT_AFTER_EVENTS && !this.#compacting) void this.#compact()
  }

  async #compact(): Promise<void> {
    this.#compacting = true
    try {
      const snapshot = this.#book.snapshot()
      this.#events = snapshot.length
      await this.#options.journal.compact(this.#lastSeq, snapshot)
    } catch (error) {
      this.#options.onFault(error)
    } finally {
      this.#compacting = false
    }
  }

  /** False: something else happens to the approval, so look again. */
  async #append(entry: Entry, events: readonly ApprovalEvent[]): Promise<boolean> {
    const { id } = entry.approval.question
    const busy = this.#writing.get(id)
    if (busy === undefined) return this.#write(id, events, entry.version)
    await busy
    return false
  }

  /** One at a time for each approval. False: another replica was first. */
  async #write(id: string, events: readonly ApprovalEvent[], after: number): Promise<boolean> {
    const done = this.#options.journal.append(id, events, after)
    this.#writing.set(
      id,
      done.catch(() => {}),
    )
    try {
      const version = await done
      if (version === 'conflict') {
        await new Promise<void>((resolve) => this.#options.clock.after(LOOK_AGAIN_MS, resolve))
        return false
      }
      for (const [index, event] of events.entries()) this.#apply({ key: id, version: after + index + 1, event })
    } finally {
      this.#writing.delete(id)
    }
    const approval = this.get(id)
    if (approval !== null) for (const event of events) this.#options.onEvent(event, approval)
    return true
  }

  #follow(entry: JournalEntry<ApprovalEvent>): void {
    this.#events++
    this.#lastSeq = entry.seq
    this.#apply(entry)
  }

  /** An event of this replica comes twice, from the journal and from whoever wrote it; the second changes nothing. */
  #apply(entry: Pick<JournalEntry<ApprovalEvent>, 'key' | 'version' | 'event'>): void {
    if (!this.#book.apply(entry)) return
    // From here on the book counts it.
    if (entry.event.t === 'created') this.#creating.delete(entry.event.question.digest)
    this.#options.onPending(this.#book.pending)
    this.#answer(entry.key)
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
