import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Head } from '../format.ts'
import type { Ledger, Rec } from '../types.ts'
import type { FollowFaultKind } from './followed-chain.ts'
import type { Look } from './followed-file.ts'

/** Looks at a ledger in one interval: one that grows faster is read on with the next. */
const MAX_LOOKS = 4

/** Metrics of one followed ledger. */
export interface AnchorMeter {
  verified(isVerified: boolean): void
  /** The last anchored record. */
  headSeq(seq: number): void
  appendFailed(): void
}

export interface AnchoredLedgerOptions {
  /** Kind of its writer, as in records: `client`, `ctxengine`, `sbxd`. */
  readonly source: string
  readonly name: string
  readonly followed: {
    look(): Promise<Look>
    anchored(): void
  }
  /** The last anchored record; null for none. */
  readonly last: Head | null
  readonly everyMs: number
  /** Stores the position of the last look; called after its anchor is durable. */
  readonly save: (anchored: Head) => Promise<void>
  /** The gateway's ledger. */
  readonly ledger: Pick<Ledger, 'append'>
  readonly meter: AnchorMeter
  readonly clock: Clock
  readonly log: Log
}

/** Anchors the ledger of another program in the gateway's ledger, and raises an alert when it does not verify. */
export class AnchoredLedger {
  readonly #options: AnchoredLedgerOptions
  readonly #task: PeriodicTask
  #anchored: Head | null
  #fault: string | null = null
  #isVerified = false
  #hasAppendFailed = false

  constructor(options: AnchoredLedgerOptions) {
    const { last, meter, clock, everyMs } = options
    this.#options = options
    this.#anchored = last
    meter.verified(false)
    if (last !== null) meter.headSeq(last.seq)
    const onFault = (error: unknown) => this.#failed('unreadable', reasonOf(error))
    this.#task = new PeriodicTask({ clock, everyMs, job: () => this.#look(), onFault })
  }

  /** Whether the last look found no fault. */
  get isVerified(): boolean {
    return this.#isVerified
  }

  /** Looks now. Never rejects. */
  now(): Promise<void> {
    return this.#task.now()
  }

  close(): Promise<void> {
    return this.#task.close()
  }

  async #look(): Promise<void> {
    const { followed } = this.#options
    let look = await followed.look()
    for (let looks = 1; look.fault === null && look.hasMore && looks < MAX_LOOKS; looks++) look = await followed.look()
    const { fault } = look
    if (fault !== null) {
      await this.#failed(fault.kind, fault.what)
      return
    }
    await this.#anchor(look)
    this.#verified()
  }

  #verified(): void {
    const { source, name, meter, log } = this.#options
    this.#isVerified = true
    meter.verified(true)
    if (this.#fault !== null) log.info({ source, name }, 'the followed ledger verifies again')
    this.#fault = null
  }

  /** Records a fault once, until the ledger verifies again. */
  async #failed(kind: FollowFaultKind, what: string): Promise<void> {
    const { source, name, meter, log } = this.#options
    this.#isVerified = false
    meter.verified(false)
    const fault = `${kind}: ${what}`
    if (this.#fault === fault) return
    this.#fault = fault
    log.error({ source, name, fault }, 'the followed ledger does not verify')
    await this.#append({ kind: 'alert', alert: 'ledger.fault', source, name, fault: kind, reason: textOf(what) })
  }

  async #anchor({ head, isSigned, isRestarted, first }: Look): Promise<void> {
    const { source, name, followed, meter, save, log } = this.#options
    if (head === null || (head.hash === this.#anchored?.hash && !isRestarted)) return
    const from = first !== null && first.seq > 0 && { from: first.seq }
    const restart = isRestarted && { restart: true, before: this.#anchored?.hash }
    const rec = {
      kind: 'anchor',
      source,
      name,
      upTo: head.seq,
      head: head.hash,
      signed: isSigned,
      ...from,
      ...restart,
    } as const
    if (!(await this.#append(rec))) return
    this.#anchored = head
    followed.anchored()
    meter.headSeq(head.seq)
    try {
      await save(head)
    } catch (error) {
      log.error({ source, name, error: reasonOf(error) }, 'the position in the followed ledger could not be saved')
    }
  }

  /** Returns whether the record is durable. */
  async #append(rec: Rec): Promise<boolean> {
    const { source, name, ledger, meter, log } = this.#options
    try {
      await ledger.append(rec)
      this.#hasAppendFailed = false
      return true
    } catch (error) {
      meter.appendFailed()
      if (!this.#hasAppendFailed)
        log.error({ source, name, error: reasonOf(error) }, 'the anchor could not be recorded')
      this.#hasAppendFailed = true
      // The next look records it.
      if (rec.kind === 'alert') this.#fault = null
      return false
    }
  }
}

/** Maximum characters of a reason in a record. */
const MAX_REASON = 300

function textOf(what: string): string {
  return what.slice(0, MAX_REASON)
}
