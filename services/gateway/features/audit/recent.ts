import type { Clock } from '@plat/core'
import type { Rec, RecKind } from '@plat/ledger'

/** How old a record may be, in milliseconds: longer than approvals are kept and notifications are tried. */
export const RECENT_MS = 25 * 60 * 60_000
/** Records that are kept at most: what is missed then is told or recorded twice. */
const RECENT_MAX = 200_000

/** What features keep of their own, and may have died over before all of it was told. */
const KINDS: ReadonlySet<RecKind> = new Set<RecKind>(['approval', 'alert', 'revocation'])
const KIND = Buffer.from('"kind":"')
/** First letters of those kinds: most records are told apart by one byte. */
const LETTERS = new Set([...KINDS].map((kind) => kind.charCodeAt(0)))

/** Records of the last day that a feature may have to finish after a crash, as the ledger held them at start. */
export class RecentRecords {
  readonly #since: number
  #records: Rec[] = []

  constructor(clock: Clock) {
    this.#since = clock.now() - RECENT_MS
  }

  /** `record`: the bytes of one record, which are only good until this returns. */
  see(record: Buffer): void {
    const at = record.indexOf(KIND)
    if (at === -1 || !LETTERS.has(record[at + KIND.length] ?? 0) || this.#records.length >= RECENT_MAX) return
    const rec: Rec = JSON.parse(record.toString('utf8'))
    if (KINDS.has(rec.kind) && Date.parse(String(rec.at)) >= this.#since) this.#records.push(rec)
  }

  /** All of them, once: nothing is kept afterwards. */
  take(): readonly Rec[] {
    return this.#records.splice(0)
  }
}
