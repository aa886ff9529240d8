import type { Clock } from '@plat/core'
import { isLogAnchor, type Rec, type RecKind } from '@plat/ledger'

/** Maximum age of a record, in milliseconds: longer than approvals are kept and notifications retried. */
export const RECENT_MS = 25 * 60 * 60_000
/** Maximum number of kept records; events of missing ones may be notified or recorded twice. */
const RECENT_MAX = 200_000

/** Kinds of records whose features keep state that a crash can leave unfinished. */
const KINDS: ReadonlySet<RecKind> = new Set<RecKind>(['approval', 'alert', 'revocation'])
/** Anchors in the transparency log are rare, and the last one counts at any age. Its letter is among those of `KINDS`. */
const ANCHOR: RecKind = 'anchor'
const KIND = Buffer.from('"kind":"')
/** First letters of those kinds: one byte rules out most records. */
const LETTERS = new Set([...KINDS].map((kind) => kind.charCodeAt(0)))

/** Records of the last day that a feature may have to finish after a crash, as read at start. */
export class RecentRecords {
  readonly #since: number
  #records: Rec[] = []
  /** The last anchor in the transparency log, or null. */
  anchor: Rec | null = null

  constructor(clock: Clock) {
    this.#since = clock.now() - RECENT_MS
  }

  /** `record`: bytes of one record, valid only during the call. */
  see(record: Buffer): void {
    const at = record.indexOf(KIND)
    if (at === -1 || !LETTERS.has(record[at + KIND.length] ?? 0)) return
    const rec: Rec = JSON.parse(record.toString('utf8'))
    if (rec.kind === ANCHOR && isLogAnchor(rec)) this.anchor = rec
    if (this.#records.length >= RECENT_MAX) return
    if (KINDS.has(rec.kind) && Date.parse(String(rec.at)) >= this.#since) this.#records.push(rec)
  }

  /** Returns all of them and keeps none. */
  take(): readonly Rec[] {
    return this.#records.splice(0)
  }
}
