import { type Clock, reasonOf } from '@plat/core'
import type { PublicKey } from '@plat/keys'
import {
  anchorRecord,
  isSignedBy,
  type Ledger,
  logFault,
  type Rec,
  readAnchor,
  readNote,
  type StoredCheckpoint,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import type { AnchorMetrics } from './metrics.ts'
import { type Rekor, type Statement, TransparencyLogError } from './rekor.ts'

/** Maximum retry interval after a failure, in milliseconds, for periodic anchors. */
const RETRY_MS = 60_000

export interface AnchorerParts {
  readonly url: string
  /** 0 for anchors on demand only. */
  readonly intervalMs: number
  readonly rekor: Pick<Rekor, 'enter'>
  /** Public keys of the log; if empty its signatures are not checked. */
  readonly logKeys: readonly PublicKey[]
  /** Returns the last checkpoint; `fresh`: first makes one over uncovered records. */
  readonly checkpoint: (fresh: boolean) => Promise<StoredCheckpoint | null>
  /** Keys of checkpoints, including retired ones. */
  readonly keys: () => readonly PublicKey[]
  readonly ledger: Pick<Ledger, 'append'>
  /** The last anchor in the ledger, or null. */
  readonly last: Rec | null
  readonly clock: Clock
  readonly log: Log
  readonly metrics: AnchorMetrics
}

export interface Anchored {
  /** Number of the anchor's record. */
  readonly seq: number
  /** Number of the checkpoint's record, and of the last record that it covers. */
  readonly checkpoint: number
  readonly upTo: number
  /** Index in the log's tree. */
  readonly index: number
}

/** Submits checkpoints to a transparency log, one at a time, and records the proofs. */
export class Anchorer {
  readonly #parts: AnchorerParts
  /** The last anchored checkpoint, or -1. */
  #anchored: number
  #upTo: number
  #failed = false
  #running: Promise<unknown> = Promise.resolve()
  #cancel: () => void = () => {}
  #closed = false

  constructor(parts: AnchorerParts) {
    const { last, metrics } = parts
    this.#parts = parts
    this.#anchored = Number(last?.checkpoint ?? -1)
    this.#upTo = Number(last?.size ?? 0) - 1
    if (last !== null) metrics.anchored(Number(last.size) - 1, Date.parse(String(last.at)) / 1000)
  }

  /** The last record that an anchored checkpoint covers; -1 for none. */
  get upTo(): number {
    return this.#upTo
  }

  /** Starts periodic anchors, if there is an interval. */
  start(): void {
    const { intervalMs } = this.#parts
    if (intervalMs > 0) this.#later(intervalMs)
  }

  /** Anchors the whole ledger now. Rejects with `TransparencyLogError` if the log refuses, and with other errors. */
  now(): Promise<Anchored | null> {
    return this.#queued(true)
  }

  /** Waits for a running anchor and starts no more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancel()
    await this.#running
  }

  #later(afterMs: number): void {
    if (this.#closed) return
    const { clock, intervalMs } = this.#parts
    this.#cancel = clock.after(afterMs, () => {
      const next = () => this.#later(this.#failed ? Math.min(intervalMs, RETRY_MS) : intervalMs)
      this.#queued(false).then(next, next)
    })
  }

  #queued(onDemand: boolean): Promise<Anchored | null> {
    const made = this.#running.then(() => this.#anchor(onDemand))
    this.#running = made.catch(() => {})
    return made
  }

  async #anchor(onDemand: boolean): Promise<Anchored | null> {
    const { log, metrics, url } = this.#parts
    try {
      const anchored = await this.#make(onDemand)
      if (this.#failed) log.info({ url }, 'checkpoints are anchored again')
      this.#failed = false
      return anchored
    } catch (error) {
      metrics.failed()
      if (!this.#failed) log.error({ url, error: reasonOf(error) }, 'the checkpoint could not be anchored')
      this.#failed = true
      throw error
    }
  }

  /** Returns null if there is nothing new. */
  async #make(onDemand: boolean): Promise<Anchored | null> {
    const { url, rekor, checkpoint, ledger, clock, metrics } = this.#parts
    const latest = await checkpoint(onDemand)
    if (latest === null || !this.#isNew(latest)) return null
    const proof = await rekor.enter(this.#statementOf(latest))
    const record = anchorRecord(url, latest, proof)
    const fault = this.#faultOf(record)
    if (fault !== null) throw new TransparencyLogError(`the proof of the log is not valid: ${fault}`)
    const { seq } = await ledger.append(record)
    this.#anchored = latest.seq
    const upTo = Number(record.size) - 1
    this.#upTo = upTo
    metrics.anchored(upTo, Math.floor(clock.now() / 1000))
    metrics.made()
    return { seq, checkpoint: latest.seq, upTo, index: proof.index }
  }

  /** Records of the last checkpoint and of its anchor alone need no new anchor. */
  #isNew({ rec }: StoredCheckpoint): boolean {
    return this.#anchored === -1 || Number(rec.size) > this.#anchored + 2
  }

  /** Anchors the signature of the checkpoint itself: keys sign nothing else here. */
  #statementOf({ rec }: StoredCheckpoint): Statement {
    const note = typeof rec.note === 'string' ? readNote(rec.note) : null
    const key = note === null ? undefined : this.#parts.keys().find((one) => isSignedBy(note, [one]))
    const [signed] = note?.signatures ?? []
    if (note === null || key === undefined || signed === undefined) {
      throw new TransparencyLogError(
        'no key of auditCheckpointKey or auditCheckpointPublicKeyFiles signed the last checkpoint',
      )
    }
    return { text: note.text, signature: signed.signature, key }
  }

  #faultOf(record: Rec): string | null {
    const { logKeys } = this.#parts
    const anchor = readAnchor(record)
    if (typeof anchor === 'string') return anchor
    return logKeys.length === 0 ? null : logFault(anchor, logKeys)
  }
}
