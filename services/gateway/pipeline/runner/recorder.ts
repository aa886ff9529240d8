import { NOWHERE, reasonOf } from '@plat/core'
import type { Ledgers, OpenIntent, Rec, RecKind, RecordWaiter } from '@plat/ledger'
import type { Denial, Identity, Message, Outcome, RequestContext, Snapshot } from '../../call/index.ts'
import type { RunnerLog } from '../metrics.ts'
import type { GovernedCall } from './call.ts'
import type { aborted } from './call-abort.ts'
import {
  decisionRecord,
  intentRecord,
  messageRecord,
  type OutcomeParts,
  outcomeRecord,
  type Prices,
  unreadRecord,
} from './record.ts'

export interface RecorderOptions {
  readonly ledgers: Ledgers
  readonly log: RunnerLog
  /** Returns the revision of the policies of a snapshot, for the records of calls that no policy decided. */
  readonly policyRevision?: (snapshot: Snapshot) => string
  /** Returns the prices of a snapshot, for the records of calls with a cost. */
  readonly prices?: (snapshot: Snapshot) => Prices
  /** Estimates the energy of a model call for its record. Absent: records have no estimate. */
  readonly estimate?: OutcomeParts['estimate']
}

/** Writes the records of calls to the ledger of their tenant. */
export class Recorder {
  readonly #options: RecorderOptions

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** Writes the intent record. Resolves to false when it could not be made durable; the caller applies the audit failure policy. */
  intend(call: GovernedCall): Promise<boolean | typeof aborted> {
    call.intended = true
    call.intent = { seq: -1, place: NOWHERE }
    const record = intentRecord(call, this.#revisionOf(call))
    return call.abort.untilCalledBack((onResult) => this.#append(call.identity, record, onResult, call.intent))
  }

  /** Records requests of the upstream to the caller. Resolves to false when a record could not be made durable. */
  async messages(call: GovernedCall, messages: readonly Message[]): Promise<boolean> {
    const records = messages.map(
      (message) =>
        new Promise<boolean>((onResult) => this.#append(call.identity, messageRecord(call, message), onResult)),
    )
    return (await Promise.all(records)).every((durable) => durable)
  }

  /** Records the refusal of a request that could not be read. */
  unread(request: RequestContext, identity: Identity, denial: Denial): Rec {
    const record = unreadRecord(request, identity, denial, this.#revision(request.snapshot))
    this.#append(identity, record, ignore)
    return record
  }

  /**
   * Writes the last record of a call and returns it; null if the call leaves none. Not awaited: the response has been sent, and the ledger
   * makes records durable in order. `now`: monotonic milliseconds.
   */
  end(call: GovernedCall, outcome: Outcome, denial: Denial | null, now: number): Rec | null {
    const record = this.#lastRecord(call, outcome, denial, now)
    if (record !== null) this.#append(call.identity, record, ignore, call.intent)
    return record
  }

  #lastRecord(call: GovernedCall, outcome: Outcome, denial: Denial | null, now: number): Rec | null {
    const revision = this.#revisionOf(call)
    const refusal = outcome.result === 'denied' || outcome.result === 'cut' ? denial : null
    if (call.plan.row.record === 'denials') {
      if (refusal !== null) return decisionRecord(call, refusal, revision)
      if (outcome.result !== 'failed' && call.dlp === null) return null
    }
    if (refusal !== null && !call.intended && !call.forwarded) return decisionRecord(call, refusal, revision)
    const ms = now - call.request.startedAt
    const { prices, estimate } = this.#options
    return outcomeRecord(call, outcome, denial, { revision, ms, prices, estimate })
  }

  /** Returns the revision of the policies that decided the call, or of those in force if none did. */
  #revisionOf({ facts: { decision }, snapshot }: GovernedCall): string {
    return decision.revision || this.#revision(snapshot)
  }

  #revision(snapshot: Snapshot): string {
    return this.#options.policyRevision?.(snapshot) ?? ''
  }

  /** Appends a record. Calls `onResult` with false when it could not be made durable. */
  #append(identity: Identity, record: Rec, onResult: (durable: boolean) => void, intent?: OpenIntent): void {
    const entry = new Entry(record.kind, this.#options.log, onResult, intent)
    try {
      this.#options.ledgers.of(identity.tenant).enter(record, entry)
    } catch (error) {
      entry.failed(error)
    }
  }
}

/** A record that waits in the ledger. Its loss is logged here and counted by the ledger. */
class Entry implements RecordWaiter {
  readonly #kind: RecKind
  readonly #log: RunnerLog
  readonly #onResult: (durable: boolean) => void
  readonly intent: OpenIntent | undefined

  constructor(kind: RecKind, log: RunnerLog, onResult: (durable: boolean) => void, intent: OpenIntent | undefined) {
    this.intent = intent
    this.#kind = kind
    this.#log = log
    this.#onResult = onResult
  }

  durable(): void {
    this.#onResult(true)
  }

  failed(error: unknown): void {
    this.#log.error({ kind: this.#kind, error: reasonOf(error) }, 'a record could not be made durable')
    this.#onResult(false)
  }
}

/** For records that are not awaited. */
function ignore(): void {}
