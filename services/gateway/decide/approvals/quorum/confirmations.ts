import type { Clock } from '@plat/core'
import type { Leadership } from '@plat/state'
import type { Approvals } from '../approvals.ts'
import type { Approval, ApprovalEvent, UserQuestion, Vote } from '../store/events.ts'
import { BY_CIBA, counted, userName, waived } from './ballot.ts'

/** How often it is looked for what is due, in milliseconds. */
const LOOK_EVERY_MS = 1_000
/** Questions that one user has at the same time: nobody is worn out until he says yes. */
const ASKED_PER_USER_MAX = 3
/** A provider that gives no answer is asked so many times. */
const ASK_AT_MOST = 3
/** Between two of these, in milliseconds. */
const ASK_AGAIN_MS = 2_000
/** CIBA Core, section 11: so much longer between two polls from then on, in milliseconds. */
const SLOW_DOWN_MS = 5_000

/** Asks users, by whatever provider. */
export interface Confirmer {
  /** What follows when the user cannot be asked. */
  readonly fallback: 'approvers' | 'deny'
  ask(user: string, leftMs: number): Promise<UserQuestion | Unavailable | NotAgreed>
  poll(asked: UserQuestion, user: string): Promise<'pending' | 'slow_down' | 'confirmed' | NotAgreed>
}

/** The user has not agreed, whatever `fallback` says; `byUser`: by a refusal, else by silence or an error. */
interface NotAgreed {
  readonly kind: 'notAgreed'
  readonly why: string
  readonly byUser: boolean
}

interface Unavailable {
  readonly kind: 'unavailable'
  readonly why: string
  /** Perhaps it is there a moment later. */
  readonly again: boolean
}

export interface ConfirmationsOptions {
  readonly approvals: Approvals
  readonly confirmer: Confirmer
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
}

/** What is known of one approval beside the journal. */
interface Course {
  dueAt: number
  isBusy: boolean
  attempts: number
  /** How much longer than the provider first said. */
  slowerMs: number
}

/** Asks users while this replica leads: one of all does. */
export function leadConfirmations(
  leadership: Leadership,
  options: ConfirmationsOptions,
): Pick<Confirmations, 'look' | 'close'> {
  let led: Confirmations | null = null
  leadership.run('confirmations', async (_, signal) => {
    const own = new Confirmations(options)
    led = own
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    own.close()
    led = null
  })
  return { look: () => led?.look(), close: () => led?.close() }
}

/** Asks the user of each approval that needs it, once, and follows until there is an answer: also after a restart. */
export class Confirmations {
  readonly #options: ConfirmationsOptions
  readonly #courses = new Map<string, Course>()
  readonly #stop: () => void

  constructor(options: ConfirmationsOptions) {
    this.#options = options
    this.#stop = options.clock.every(LOOK_EVERY_MS, () => this.look())
  }

  /** Does what is due. */
  look(): void {
    const { approvals, clock, onFault } = this.#options
    const awaiting = approvals.awaitingUsers()
    const ids = new Set(awaiting.map(({ question }) => question.id))
    for (const id of this.#courses.keys()) if (!ids.has(id)) this.#courses.delete(id)
    const asked = new Map<string, number>()
    for (const { question, confirmation } of awaiting) {
      if (confirmation !== undefined || this.#courses.get(question.id)?.isBusy === true) more(asked, question.user)
    }
    for (const approval of awaiting) {
      const { id, user } = approval.question
      const course = this.#courses.getOrInsertComputed(id, () => ({
        dueAt: 0,
        isBusy: false,
        attempts: 0,
        slowerMs: 0,
      }))
      if (course.isBusy || clock.now() < course.dueAt) continue
      const isNew = approval.confirmation === undefined
      if (isNew && (asked.get(user ?? '') ?? 0) >= ASKED_PER_USER_MAX) continue
      if (isNew) more(asked, user)
      course.isBusy = true
      this.#go(approval, course)
        .catch(onFault)
        .finally(() => {
          course.isBusy = false
        })
    }
  }

  close(): void {
    this.#stop()
  }

  async #go({ question, confirmation }: Approval, course: Course): Promise<void> {
    const { user } = question
    const asked = confirmation?.asked ?? null
    if (user === null) return this.#giveUp(question.id, 'the session acts for no user')
    return asked === null ? this.#ask(question, user, course) : this.#poll(question.id, { user, asked }, course)
  }

  async #ask({ id, expiresAt }: Approval['question'], user: string, course: Course): Promise<void> {
    const { approvals, confirmer, clock } = this.#options
    const answer = await confirmer.ask(user, expiresAt - clock.now())
    if ('kind' in answer) {
      if (answer.kind === 'notAgreed') return this.#refuse(id, user, answer)
      course.attempts++
      course.dueAt = clock.now() + ASK_AGAIN_MS
      if (!answer.again || course.attempts >= ASK_AT_MOST) await this.#giveUp(id, answer.why)
      return
    }
    course.dueAt = clock.now() + answer.intervalMs
    await approvals.advance(id, () => [{ t: 'asked', ...answer }])
  }

  async #poll(
    id: string,
    { user, asked }: { readonly user: string; readonly asked: UserQuestion },
    course: Course,
  ): Promise<void> {
    const { confirmer, clock } = this.#options
    const answer = await confirmer.poll(asked, user)
    if (answer === 'slow_down') course.slowerMs += SLOW_DOWN_MS
    course.dueAt = clock.now() + asked.intervalMs + course.slowerMs
    if (answer === 'pending' || answer === 'slow_down') return
    if (answer === 'confirmed') return this.#vote(id, { by: userName(user), verdict: 'approve', reason: '' })
    return this.#refuse(id, user, answer)
  }

  #refuse(id: string, user: string, { why, byUser }: NotAgreed): Promise<void> {
    return this.#vote(id, { by: byUser ? userName(user) : BY_CIBA, verdict: 'deny', reason: why })
  }

  async #giveUp(id: string, why: string): Promise<void> {
    if (this.#options.confirmer.fallback === 'approvers') return this.#advance(id, (approval) => waived(approval, why))
    return this.#vote(id, { by: BY_CIBA, verdict: 'deny', reason: `the user could not be asked: ${why}` })
  }

  #vote(id: string, vote: Omit<Vote, 'at' | 'via'>): Promise<void> {
    const at = this.#options.clock.now()
    return this.#advance(id, (approval) => counted(approval, { ...vote, at, via: BY_CIBA }))
  }

  async #advance(id: string, next: (approval: Approval) => readonly ApprovalEvent[]): Promise<void> {
    await this.#options.approvals.advance(id, next)
  }
}

function more(counts: Map<string, number>, user: string | null): void {
  counts.set(user ?? '', (counts.get(user ?? '') ?? 0) + 1)
}
