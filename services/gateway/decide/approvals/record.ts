import type { Clock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { Quorum } from './quorum/quorum.ts'
import type { Approval, ApprovalEvent } from './store/events.ts'

/** Returns the `approval` record of an event, or null for events that do not change who requested, decided or used the approval. */
export function approvalRecord(event: ApprovalEvent, { question, votes }: Approval): Rec | null {
  if (event.t === 'attached' || event.t === 'detached' || event.t === 'snapshot') return null
  // If one vote decides, the `granted` or `denied` event covers it.
  if (event.t === 'vote' && !needsSeveral(question.quorum)) return null
  const { namespace, agent, session, user, server, tool, method, policy, rule, argsSha256, argsBytes } = question
  const vote = event.t === 'vote' ? event : event.t === 'granted' || event.t === 'denied' ? votes.at(-1) : undefined
  const reason = event.t === 'unconfirmed' ? event.reason : (vote?.reason ?? '')
  // Null members are left out of ledger records.
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

function needsSeveral({ minApprovers, userConfirmation }: Quorum): boolean {
  return minApprovers > 1 || userConfirmation !== undefined
}

/** Older events are not recorded again, in milliseconds. The ledger is read one hour further back. */
const LOOK_BACK_MS = 24 * 60 * 60_000

/** Finds events of the journal that the ledger lacks because the process died between the two writes. */
export class Unrecorded {
  readonly #recorded: ReadonlySet<string>
  readonly #since: number
  #missing: Rec[] = []

  /** `recorded`: ledger records of the last 25 hours. */
  constructor(recorded: readonly Rec[], clock: Clock) {
    this.#recorded = new Set(recorded.filter(({ kind }) => kind === 'approval').map(markOf))
    this.#since = clock.now() - LOOK_BACK_MS
  }

  /** `record`: the record that a journal event should have, or null; `at`: when the event was written. */
  see(record: Rec | null, at: number): void {
    if (record !== null && at >= this.#since && !this.#recorded.has(markOf(record))) this.#missing.push(record)
  }

  /** Returns the missing records in order of time. */
  take(): readonly Rec[] {
    return this.#missing.splice(0)
  }
}

/** Unique per event: the same call or person never causes one twice for an approval. */
function markOf({ approval, event, call, by, verdict }: Rec): string {
  return JSON.stringify([approval, event, call, by, verdict])
}

/** Names of events that people know by another name. */
const EVENT_NAMES: Readonly<Record<string, string>> = { granted: 'approved' }

/** The event of a change for readers of `GET /v1/events`. */
export function approvalEvent(change: ApprovalEvent['t'], { question, state }: Approval) {
  const { id, namespace, agent, session, server, tool } = question
  const type = `approval.${EVENT_NAMES[change] ?? change}`
  return { type, namespace, data: { approval: id, state, namespace, agent, session, server, tool } }
}
