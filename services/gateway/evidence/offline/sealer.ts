import { type Clock, rfc3339Micros } from '@plat/core'
import type { Signer } from '@plat/keys'
import { LineReader, MAX_SEAL_BYTES, signSeal } from '@plat/ledger'
import type { Spool } from './spool.ts'

/** Maximum size of the lines in a segment, in bytes: well below the default limit of collectors, and little memory. */
const SEGMENT_MAX_BYTES = 16 * 1024 * 1024

export interface SealerOptions {
  readonly spool: Spool
  readonly ledgerPath: string
  readonly ledgerId: string
  readonly edge: string
  /** The last durable record. */
  readonly head: () => { readonly seq: number; readonly hash: string }
  readonly signer: () => Promise<Signer>
  readonly maxRecords: number
  /** `offline.sealIntervalSeconds`, in milliseconds. */
  readonly intervalMs: number
  /** `offline.fullPolicy` is `dropOldestForwarded`. */
  readonly dropsForwarded: boolean
  readonly clock: Clock
}

/** Seals ledger records into the spool when a segment is full, or its first record has waited long enough. */
export class Sealer {
  readonly #options: SealerOptions
  readonly #reader: LineReader
  /** Time of the oldest unsealed record, in milliseconds since the epoch, or null. */
  #since: number | null = null
  #full = false

  constructor(options: SealerOptions) {
    this.#options = options
    this.#reader = new LineReader(options.ledgerPath)
  }

  /** Whether the spool lacks room for due records. */
  get full(): boolean {
    return this.#full
  }

  /** Time of the oldest unsealed record, or null. */
  get since(): number | null {
    return this.#since
  }

  /** Returns the hash of a ledger record, or null if it does not exist. */
  hashOf(seq: number): Promise<string | null> {
    return this.#reader.hashOf(seq)
  }

  /** Seals one segment if one is due within `aheadMs`. Returns whether there may be another. Rejects if ledger or spool cannot be used. */
  async seal(aheadMs: number): Promise<boolean> {
    const { spool, head, maxRecords, intervalMs, clock } = this.#options
    const now = clock.now()
    const waiting = head().seq - spool.sealed.seq
    if (waiting === 0) {
      this.#since = null
      this.#full = false
      return false
    }
    this.#since ??= now
    if (waiting < maxRecords && now - this.#since + aheadMs < intervalMs) return false
    const sealed = await this.#sealNext(this.#since)
    this.#full = !sealed
    if (!sealed) return false
    this.#since = head().seq === spool.sealed.seq ? null : now
    return true
  }

  /** Returns false if the spool has no room. */
  async #sealNext(since: number): Promise<boolean> {
    const { spool, head, maxRecords, dropsForwarded, edge, ledgerId, signer, clock } = this.#options
    for (;;) {
      const last = spool.sealed
      const from = last.seq + 1
      const maxBytes = Math.min(SEGMENT_MAX_BYTES, spool.room - MAX_SEAL_BYTES)
      const wanted = { from, upTo: head().seq, maxRecords, maxBytes }
      const lines = await this.#reader.read(wanted)
      const isShort = lines.records < Math.min(maxRecords, wanted.upTo - from + 1) && maxBytes < SEGMENT_MAX_BYTES
      if (isShort && dropsForwarded && (await spool.dropForwarded())) continue
      if (lines.records === 0) return false
      if (lines.prev !== last.hash)
        throw new Error(`the ledger does not go on after record ${last.seq}, which was sealed`)
      const seal = {
        edge,
        ledgerId,
        from,
        to: last.seq + lines.records,
        prev: lines.prev,
        head: lines.head,
        bytes: lines.bytes.length,
        since: rfc3339Micros(since),
        at: rfc3339Micros(clock.now()),
      }
      await spool.put(seal, await signSeal(await signer(), seal), lines.bytes)
      return true
    }
  }
}
