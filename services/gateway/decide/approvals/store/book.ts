import { LinkedMap, SharedPool } from '@plat/core'
import type { JournalEntry } from '@plat/state'
import { agentOf } from '../../../call/index.ts'
import { BY_CIBA } from '../quorum/ballot.ts'
import type { Approval, ApprovalEvent, Question } from './events.ts'

/** Approvals that are decided, used or gone, and still shown; the oldest are forgotten first. */
const FINISHED_MAX = 10_000
/** How long a finished approval is shown, in milliseconds. */
const FINISHED_MS = 24 * 60 * 60_000

/** An approval with the number of its events, which the next one is bound to. */
export interface Entry {
  approval: Approval
  version: number
  /** When it can be forgotten, in milliseconds since the epoch. */
  readonly forgetAt: number
}

export function sessionKey({ tenant, namespace, agent, session }: SessionName): string {
  return `${tenant}/${namespace}/${agent}/${session}`
}

/** Whose approvals count together. */
export interface SessionName {
  readonly tenant: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** Every approval of the journal as it stands now. Changed by events alone, so that a restart rebuilds the same. */
export class Book {
  /** In the order of their ids, which is the order of creation. */
  readonly #entries = new LinkedMap<string, Entry>()
  /** Approvals that can still let a call pass, by digest; more than one only after a grant came back. */
  readonly #open = new Map<string, Entry[]>()
  readonly #pending = new SharedPool({ name: 'pending_approvals' })

  /**
   * Applies one event in the journal's order. Returns false if it changes nothing: it is known already, or it is a question
   * for which an identical one waits or is approved, which the journal has first.
   */
  apply({ key, version, event }: Pick<JournalEntry<ApprovalEvent>, 'key' | 'version' | 'event'>): boolean {
    const known = this.#entries.get(key)
    if (event.t === 'created' || event.t === 'snapshot') {
      const isNew = known === undefined && !(event.t === 'created' && this.#isDuplicate(event.question))
      if (isNew) this.#add(key, version, event)
      return isNew
    }
    if (known === undefined || version <= known.version) return false
    const before = known.approval
    const after = next(before, event)
    known.approval = after
    known.version = version
    this.#count(before, -1)
    this.#count(after, 1)
    if (isOpen(before) && !isOpen(after)) this.#shut(known)
    if (!isOpen(before) && isOpen(after)) this.#openUp(known)
    return true
  }

  get(id: string): Entry | null {
    return this.#entries.get(id) ?? null
  }

  /** The approval that a call with this digest waits for, or may use, at this time; milliseconds since the epoch. */
  open(digest: string, now: number): Entry | null {
    const entries = (this.#open.get(digest) ?? []).filter(({ approval }) => approval.question.expiresAt > now)
    return entries.find(({ approval }) => approval.state === 'approved') ?? entries.at(-1) ?? null
  }

  /** Newest first: in the descending order of their ids. */
  list(): Approval[] {
    const approvals = [...this.#entries.values()].map(({ approval }) => approval)
    return approvals.sort((a, b) => (a.question.id < b.question.id ? 1 : -1))
  }

  /** Every approval that can still let a call pass. */
  opened(): Entry[] {
    return [...this.#open.values()].flat()
  }

  get pending(): number {
    return this.#pending.used
  }

  /** Pending approvals of one session. */
  pendingOf(session: string): number {
    return this.#pending.usedBy(session, 1)
  }

  /** Forgets what is finished and old, or too much; answers how many. */
  forget(now: number): number {
    const before = this.#entries.size
    let finished = before - this.opened().length
    for (const [id, { approval, forgetAt }] of this.#entries) {
      if (finished <= FINISHED_MAX && forgetAt > now) break
      if (isOpen(approval)) continue
      this.#entries.delete(id)
      finished--
    }
    return before - this.#entries.size
  }

  /** One event for each approval, which stand for all that were. */
  snapshot(): { key: string; version: number; event: ApprovalEvent }[] {
    return [...this.#entries].map(([key, { approval, version }]) => ({
      key,
      version,
      event: { t: 'snapshot', approval },
    }))
  }

  /** Judged by the times in the journal alone: every replica must come to the same result. */
  #isDuplicate({ digest, createdAt }: Question): boolean {
    return this.open(digest, createdAt) !== null
  }

  #add(key: string, version: number, event: Extract<ApprovalEvent, { t: 'created' | 'snapshot' }>): void {
    const approval: Approval =
      event.t === 'snapshot' ? event.approval : { question: event.question, state: 'pending', votes: [], usedBy: null }
    const entry = { approval, version, forgetAt: approval.question.expiresAt + FINISHED_MS }
    this.#entries.set(key, entry)
    this.#count(approval, 1)
    if (isOpen(approval)) this.#openUp(entry)
  }

  #openUp(entry: Entry): void {
    const { digest } = entry.approval.question
    const others = this.#open.get(digest)
    if (others === undefined) this.#open.set(digest, [entry])
    else others.push(entry)
  }

  #shut(entry: Entry): void {
    const { digest } = entry.approval.question
    const rest = (this.#open.get(digest) ?? []).filter((other) => other !== entry)
    if (rest.length === 0) this.#open.delete(digest)
    else this.#open.set(digest, rest)
  }

  /** How many the sessions of an agent wait for. */
  pendingOfAgent(agent: string): number {
    return this.#pending.usedBy(agent)
  }

  #count({ state, question }: Approval, by: 1 | -1): void {
    if (state !== 'pending') return
    const callers = [agentOf(question), sessionKey(question)]
    if (by === 1) this.#pending.add(callers)
    else this.#pending.release(callers)
  }
}

/** Can it still let a call pass? */
export function isOpen({ state }: Approval): boolean {
  return state === 'pending' || state === 'approved'
}

type Change = Exclude<ApprovalEvent, { t: 'created' | 'snapshot' }>

function next(approval: Approval, event: Change): Approval {
  switch (event.t) {
    case 'vote': {
      const { t: _, ...vote } = event
      const votes = [...approval.votes, vote]
      if (vote.via !== BY_CIBA || vote.verdict === 'deny') return { ...approval, votes }
      return { ...approval, votes, confirmation: { state: 'confirmed', asked: approval.confirmation?.asked ?? null } }
    }
    case 'asked': {
      const { t: _, ...asked } = event
      return { ...approval, confirmation: { state: 'asked', asked } }
    }
    case 'unconfirmed':
      return { ...approval, confirmation: { state: 'waived', asked: approval.confirmation?.asked ?? null } }
    case 'granted':
      return { ...approval, state: 'approved' }
    case 'denied':
    case 'expired':
    case 'cancelled':
      return { ...approval, state: event.t }
    case 'used':
      return { ...approval, state: 'used', usedBy: event.call }
    case 'returned':
      return approval.usedBy === event.call ? { ...approval, state: 'approved', usedBy: null } : approval
    case 'attached':
    case 'detached':
      return approval
  }
}
