import { LinkedMap, SharedPool } from '@plat/core'
import type { JournalEntry } from '@plat/state'
import { agentOf } from '../../../call/index.ts'
import { BY_CIBA } from '../quorum/ballot.ts'
import type { Approval, ApprovalEvent, Question } from './events.ts'

/** Finished approvals that remain visible; the oldest are removed first. */
const FINISHED_MAX = 10_000
/** How long a finished approval remains visible, in milliseconds. */
const FINISHED_MS = 24 * 60 * 60_000

/** An approval with its number of events, on which the next append is conditional. */
export interface Entry {
  approval: Approval
  version: number
  /** Earliest removal, in milliseconds since the epoch. */
  readonly forgetAt: number
}

export function sessionKey({ tenant, namespace, agent, session }: SessionName): string {
  return `${tenant}/${namespace}/${agent}/${session}`
}

/** Scope in which approvals are counted together. */
export interface SessionName {
  readonly tenant: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** Current state of every approval in the journal. Changed by events alone, so that a restart rebuilds the same state. */
export class Book {
  /** Ordered by id, which is the order of creation. */
  readonly #entries = new LinkedMap<string, Entry>()
  /** Approvals that can still let a call pass, by digest; more than one only after a grant was given back. */
  readonly #open = new Map<string, Entry[]>()
  /** The latest denied approval that no call has learned of, by digest. */
  readonly #unreported = new Map<string, Entry>()
  readonly #pending = new SharedPool({ name: 'pending_approvals' })

  /**
   * Applies one event in the journal's order. Returns false if it changes nothing: the event is known, or it creates a question
   * identical to one that is open.
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
    this.#noteDenial(known)
    return true
  }

  get(id: string): Entry | null {
    return this.#entries.get(id) ?? null
  }

  /** Returns the open approval with this digest at time `now` (milliseconds since the epoch), or null. */
  open(digest: string, now: number): Entry | null {
    const entries = (this.#open.get(digest) ?? []).filter(({ approval }) => approval.question.expiresAt > now)
    return entries.find(({ approval }) => approval.state === 'approved') ?? entries.at(-1) ?? null
  }

  /** Returns the denied approval with this digest that no call has learned of and that has not expired, or null. */
  unreported(digest: string, now: number): Entry | null {
    const entry = this.#unreported.get(digest)
    return entry !== undefined && entry.approval.question.expiresAt > now ? entry : null
  }

  /** Newest first, by descending id. */
  list(): Approval[] {
    const approvals = [...this.#entries.values()].map(({ approval }) => approval)
    return approvals.sort((a, b) => (a.question.id < b.question.id ? 1 : -1))
  }

  /** Approvals that can still let a call pass. */
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

  /** Removes finished approvals that are old or too many. Returns the number removed. */
  forget(now: number): number {
    const before = this.#entries.size
    let finished = before - this.opened().length
    for (const [id, { approval, forgetAt }] of this.#entries) {
      if (finished <= FINISHED_MAX && forgetAt > now) break
      if (isOpen(approval)) continue
      this.#entries.delete(id)
      this.#forgetDenial(approval)
      finished--
    }
    return before - this.#entries.size
  }

  /** Returns one snapshot event per approval, which replaces all earlier events. */
  snapshot(): { key: string; version: number; event: ApprovalEvent }[] {
    return [...this.#entries].map(([key, { approval, version }]) => ({
      key,
      version,
      event: { t: 'snapshot', approval },
    }))
  }

  /** Uses only times from the journal, so that every replica reaches the same result. */
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
    this.#noteDenial(entry)
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

  #noteDenial(entry: Entry): void {
    if (isUnreported(entry.approval)) this.#unreported.set(entry.approval.question.digest, entry)
    else this.#forgetDenial(entry.approval)
  }

  #forgetDenial({ question: { id, digest } }: Approval): void {
    if (this.#unreported.get(digest)?.approval.question.id === id) this.#unreported.delete(digest)
  }

  /** Number of pending approvals of all sessions of an agent. */
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

/** Whether the approval can still let a call pass. */
export function isOpen({ state }: Approval): boolean {
  return state === 'pending' || state === 'approved'
}

/** Whether the approval was denied, and no call has learned of it. */
export function isUnreported({ state, usedBy }: Approval): boolean {
  return state === 'denied' && usedBy === null
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
      const { t: _, ...prompt } = event
      return { ...approval, confirmation: { state: 'asked', asked: prompt } }
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
      // The call that attaches to a denied approval learns of the denial.
      return isUnreported(approval) ? { ...approval, usedBy: event.call } : approval
    case 'detached':
      return approval
  }
}
