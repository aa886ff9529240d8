import type { Clock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { Quorum } from './quorum/quorum.ts'
import type { Approval, ApprovalEvent } from './store/events.ts'

/** The `approval` record of an event; null for events that say nothing new about who asked, decided or used. */
export function approvalRecord(event: ApprovalEvent, { question, votes }: Approval): Rec | null {
  if (event.t === 'attached' || event.t === 'detached' || event.t === 'snapshot') return null
  // Where one vote decides, the verdict says it all.
  if (event.t === 'vote' && !takesSeveral(question.quorum)) return null
  const { namespace, agent, session, user, server, tool, method, policy, rule, argsSha256, argsBytes } = question
  const vote = event.t === 'vote' ? event : event.t === 'granted' || event.t === 'denied' ? votes.at(-1) : undefined
  const reason = event.t === 'unconfirmed' ? event.reason : (vote?.reason ?? '')
  // Absent beats null in the ledger.
  return {
    kind: 'approval',
    approval: question.id,
    event: event.t,
    call: 'call' in event ? event.call : undefined,
    session,
    namespace,
    agent,
    user: user ?? undefined,
    server,
    tool: tool ?? undefined,
    method,
    policy: policy ?? undefined,
    rule: rule ?? undefined,
    argsSha256: argsSha256 ?? undefined,
    argsBytes,
    policyRevision: question.policyRevision,
    by: vote?.by,
    via: vote?.via,
    verdict: event.t === 'vote' ? event.verdict : undefined,
    reason: reason === '' ? undefined : reason,
  }
}

function takesSeveral({ minApprovers, userConfirmation }: Quorum): boolean {
  return minApprovers > 1 || userConfirmation !== undefined
}

/** Events that are older were recorded or never will be, in milliseconds: the ledger is asked for one hour more than this. */
const LOOK_BACK_MS = 24 * 60 * 60_000

/** What the journal knows and the ledger does not: the process died between the two. */
export class Unrecorded {
  readonly #recorded: ReadonlySet<string>
  readonly #since: number
  #missing: Rec[] = []

  /** `recorded`: records of the ledger that are not older than a day and an hour. */
  constructor(recorded: readonly Rec[], clock: Clock) {
    this.#recorded = new Set(recorded.filter(({ kind }) => kind === 'approval').map(markOf))
    this.#since = clock.now() - LOOK_BACK_MS
  }

  /** The record that an event of the journal should have; null: none. `at`: when the event was written. */
  see(record: Rec | null, at: number): void {
    if (record !== null && at >= this.#since && !this.#recorded.has(markOf(record))) this.#missing.push(record)
  }

  /** What has to be recorded now, in the order in which it happened. */
  take(): readonly Rec[] {
    return this.#missing.splice(0)
  }
}

/** Of one approval nothing happens twice by the same call or the same person. */
function markOf({ approval, event, call, by, verdict }: Rec): string {
  return JSON.stringify([approval, event, call, by, verdict])
}
