import type { Clock } from '@plat/core'
import type { Leadership } from '@plat/state'
import type { Approvals } from '../approvals.ts'
import type { Approval, ApprovalEvent, UserPrompt, Vote } from '../store/events.ts'
import { BY_CIBA, counted, isCut, userName, waived } from './ballot.ts'

/** Interval of the check for due work, in milliseconds. */
const LOOK_EVERY_MS = 1_000
/** Concurrent questions per user. Bounds prompt fatigue. */
const PROMPTS_PER_USER_MAX = 3
/** Attempts when the provider does not respond. */
const PROMPT_ATTEMPTS_MAX = 3
/** Delay between these attempts, in milliseconds. */
const PROMPT_RETRY_MS = 2_000
/** Added to the poll interval for each `slow_down` (CIBA Core, section 11), in milliseconds. */
const SLOW_DOWN_MS = 5_000

/** Prompts users through a provider. */
export interface Confirmer {
  /** Applies when the user cannot be prompted. */
  readonly fallback: 'approvers' | 'deny'
  prompt(user: string, leftMs: number): Promise<UserPrompt | Unavailable | NotAgreed>
  poll(prompt: UserPrompt, user: string): Promise<'pending' | 'slow_down' | 'confirmed' | NotAgreed>
}

/** The user has not agreed; `fallback` does not apply. `byUser`: an explicit refusal, otherwise a timeout or an error. */
interface NotAgreed {
  readonly kind: 'notAgreed'
  readonly why: string
  readonly byUser: boolean
}

interface Unavailable {
  readonly kind: 'unavailable'
  readonly why: string
  /** Whether a retry may succeed. */
  readonly again: boolean
}

export interface ConfirmationsOptions {
  readonly approvals: Approvals
  readonly confirmer: Confirmer
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
}

/** State of one approval that is not in the journal. */
interface Course {
  dueAt: number
  isBusy: boolean
  attempts: number
  /** Added to the provider's poll interval. */
  slowerMs: number
}

/** Runs `Confirmations` on the leading replica only. */
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

/** Prompts the user of each approval that needs it, once, and polls for the result. A restart resumes polling. */
export class Confirmations {
  readonly #options: ConfirmationsOptions
  readonly #courses = new Map<string, Course>()
  readonly #stop: () => void

  constructor(options: ConfirmationsOptions) {
    this.#options = options
    this.#stop = options.clock.every(LOOK_EVERY_MS, () => this.look())
  }

  /** Starts all work that is due. */
  look(): void {
    const { approvals, clock, onFault } = this.#options
    const awaiting = approvals.awaitingUsers()
    const ids = new Set(awaiting.map(({ question }) => question.id))
    for (const id of this.#courses.keys()) if (!ids.has(id)) this.#courses.delete(id)
    const prompts = new Map<string, number>()
    for (const { question, confirmation } of awaiting) {
      if (confirmation !== undefined || this.#courses.get(question.id)?.isBusy === true) more(prompts, question.user)
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
      if (isNew && (prompts.get(user ?? '') ?? 0) >= PROMPTS_PER_USER_MAX) continue
      if (isNew) more(prompts, user)
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
    const prompt = confirmation?.asked ?? null
    if (user === null) return this.#giveUp(question.id, 'the session acts for no user')
    return prompt === null ? this.#prompt(question, user, course) : this.#poll(question.id, { user, prompt }, course)
  }

  async #prompt(question: Approval['question'], user: string, course: Course): Promise<void> {
    const { approvals, confirmer, clock } = this.#options
    const { id, expiresAt } = question
    // The code refers to what the approval shows, which is not all.
    if (isCut(question)) return this.#giveUp(id, 'the arguments are truncated (approvalPreview.maxBytes)')
    const result = await confirmer.prompt(user, expiresAt - clock.now())
    if ('kind' in result) {
      if (result.kind === 'notAgreed') return this.#refuse(id, user, result)
      course.attempts++
      course.dueAt = clock.now() + PROMPT_RETRY_MS
      if (!result.again || course.attempts >= PROMPT_ATTEMPTS_MAX) await this.#giveUp(id, result.why)
      return
    }
    course.dueAt = clock.now() + result.intervalMs
    await approvals.advance(id, () => [{ t: 'asked', ...result }])
  }

  async #poll(
    id: string,
    { user, prompt }: { readonly user: string; readonly prompt: UserPrompt },
    course: Course,
  ): Promise<void> {
    const { confirmer, clock } = this.#options
    const result = await confirmer.poll(prompt, user)
    if (result === 'slow_down') course.slowerMs += SLOW_DOWN_MS
    course.dueAt = clock.now() + prompt.intervalMs + course.slowerMs
    if (result === 'pending' || result === 'slow_down') return
    if (result === 'confirmed') return this.#vote(id, { by: userName(user), verdict: 'approve', reason: '' })
    return this.#refuse(id, user, result)
  }

  #refuse(id: string, user: string, { why, byUser }: NotAgreed): Promise<void> {
    return this.#vote(id, { by: byUser ? userName(user) : BY_CIBA, verdict: 'deny', reason: why })
  }

  async #giveUp(id: string, why: string): Promise<void> {
    if (this.#options.confirmer.fallback === 'approvers') return this.#advance(id, (approval) => waived(approval, why))
    return this.#vote(id, { by: BY_CIBA, verdict: 'deny', reason: `user confirmation failed: ${why}` })
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
