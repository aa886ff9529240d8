import type { Clock } from '@plat/core'
import { isLogAnchor, type Rec, type RecKind } from '@plat/ledger'

/** How old a record may be, in milliseconds: longer than approvals are kept and notifications are tried. */
export const RECENT_MS = 25 * 60 * 60_000
/** Records that are kept at most: what is missed then is told or recorded twice. */
const RECENT_MAX = 200_000

/** What features keep of their own, and may have died over before all of it was told. */
const KINDS: ReadonlySet<RecKind> = new Set<RecKind>(['approval', 'alert', 'revocation'])
/** Anchors in the transparency log are rare, and the last one counts however old it is. Its letter is among those of `KINDS`. */
const ANCHOR: RecKind = 'anchor'
const KIND = Buffer.from('"kind":"')
/** First letters of those kinds: most records are told apart by one byte. */
const LETTERS = new Set([...KINDS].map((kind) => kind.charCodeAt(0)))

/** Records of the last day that a feature may have to finish after a crash, as the ledger held them at start. */
export class RecentRecords {
  readonly #since: number
  #records: Rec[] = []
  /** The last anchor in the transparency log; null: there is none. */
  anchor: Rec | null = null

  constructor(clock: Clock) {
    this.#since = clock.now() - RECENT_MS
  }

  /** `record`: the bytes of one record, which are only good until this returns. */
  see(record: Buffer): void {
    const at = record.indexOf(KIND)
    if (at === -1 || !LETTERS.has(record[at + KIND.length] ?? 0)) return
    const rec: Rec = JSON.parse(record.toString('utf8'))
    if (rec.kind === ANCHOR && isLogAnchor(rec)) this.anchor = rec
    if (this.#records.length >= RECENT_MAX) return
    if (KINDS.has(rec.kind) && Date.parse(String(rec.at)) >= this.#since) this.#records.push(rec)
  }

  /** All of them, once: nothing is kept afterwards. */
  take(): readonly Rec[] {
    return this.#records.splice(0)
  }
}
