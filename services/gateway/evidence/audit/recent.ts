import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Clock, isObject, mapInSlices, reasonOf } from '@plat/core'
import { isLogAnchor, LedgerSequence, type Rec, type RecKind, type RecordPlace, replaceText } from '@plat/ledger'
import type { Log } from '@plat/process'
import { isMissing } from '@plat/state'

/** Maximum age of a record, in milliseconds: longer than approvals are kept and notifications retried. */
export const RECENT_MS = 25 * 60 * 60_000
/** Maximum number of kept records; events of missing ones may be notified or recorded twice. */
const RECENT_MAX = 20_000
/** Time between two saves, in milliseconds. */
const SAVE_MS = 30_000

/** Kinds of records whose features keep state that a crash can leave unfinished. */
const KINDS: ReadonlySet<RecKind> = new Set<RecKind>(['approval', 'alert', 'revocation'])
/** Anchors in the transparency log are rare, and the last one counts at any age. Its letter is among those of `KINDS`. */
const ANCHOR: RecKind = 'anchor'
const KIND = Buffer.from('"kind":"')
/** First letters of those kinds: one byte rules out most records. */
const LETTERS = new Set([...KINDS].map((kind) => kind.charCodeAt(0)))

/** Recent records up to one record of the ledger. */
export interface SavedRecent {
  readonly ledger: RecordPlace
  readonly anchor: Rec | null
  readonly records: readonly Rec[]
}

/** Returns the path of the saved records, derived from the ledger. */
function recentPath(ledgerPath: string): string {
  return `${ledgerPath}.recent.json`
}

/** Returns the saved records; null when there are none, or when the file is not as it was written. */
export async function readRecent(ledgerPath: string): Promise<SavedRecent | null> {
  try {
    const text = await readFile(recentPath(ledgerPath), 'utf8')
    const [body = '', digest = ''] = text.split('\n')
    const value: unknown = JSON.parse(body)
    return isSaved(value) && digestOf(body) === digest ? value : null
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return null
    throw error
  }
}

function isSaved(value: unknown): value is SavedRecent {
  if (!isObject(value) || !isObject(value.ledger) || !Array.isArray(value.records)) return false
  const { seq, hash } = value.ledger
  return typeof seq === 'number' && typeof hash === 'string' && (value.anchor === null || isObject(value.anchor))
}

function digestOf(body: string): string {
  return createHash('sha256').update(body).digest('hex')
}

/** Records of the last day that a feature may have to finish after a crash: the saved ones, and those read at start. */
export class RecentRecords {
  readonly #since: number
  readonly #saved: SavedRecent | null
  /** Records up to the saved position are skipped unless the ledger does not hold it. */
  #state: 'before' | 'foreign' | 'reading'
  #records: Rec[] = []
  /** The last anchor in the transparency log, or null. */
  anchor: Rec | null = null

  constructor(clock: Clock, saved: SavedRecent | null = null) {
    this.#since = clock.now() - RECENT_MS
    this.#saved = saved
    this.#state = saved === null ? 'reading' : 'before'
  }

  /** The saved records are not of this ledger, or are later than its end: it must be read again. Valid after the last record. */
  get mustReadAgain(): boolean {
    return this.#state !== 'reading'
  }

  /** `record`: bytes of one record, valid only during the call. */
  see(record: Buffer, place: RecordPlace): void {
    if (this.#state === 'reading') this.#read(record)
    else if (this.#saved !== null && place.seq >= this.#saved.ledger.seq) this.#meet(place, this.#saved)
  }

  #meet({ seq, hash }: RecordPlace, { ledger, anchor, records }: SavedRecent): void {
    if (this.#state === 'foreign' || seq !== ledger.seq || hash !== ledger.hash) {
      this.#state = 'foreign'
      return
    }
    this.#state = 'reading'
    this.anchor = anchor
    for (const rec of records) this.#keep(rec)
  }

  #read(record: Buffer): void {
    const at = record.indexOf(KIND)
    if (at === -1 || !LETTERS.has(record[at + KIND.length] ?? 0)) return
    this.#keep(JSON.parse(record.toString('utf8')))
  }

  #keep(rec: Rec): void {
    if (rec.kind === ANCHOR && isLogAnchor(rec)) this.anchor = rec
    if (!KINDS.has(rec.kind) || Date.parse(String(rec.at)) < this.#since) return
    this.#records.push(rec)
    if (this.#records.length > 2 * RECENT_MAX) this.#records = this.#records.slice(-RECENT_MAX)
  }

  /** Returns the newest of them. */
  all(): readonly Rec[] {
    return this.#records.slice(-RECENT_MAX)
  }
}

export interface RecentKeeperOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: Log
  /** Returns the last durable record. */
  readonly head: () => RecordPlace
  /** Records up to the last durable one at the start. */
  readonly recent: RecentRecords
}

/** Saves the recent records with their position, so that a start need not read the ledger of a day. */
export class RecentKeeper {
  readonly #options: RecentKeeperOptions
  #records: Rec[]
  #anchor: Rec | null
  /** Durable records of these kinds that are not yet among `#records`. */
  #noted: number[] = []
  #savedSeq = -1
  #saving: Promise<void> = Promise.resolve()
  readonly #stop: () => void

  constructor(options: RecentKeeperOptions) {
    this.#options = options
    this.#records = [...options.recent.all()]
    this.#anchor = options.recent.anchor
    this.#stop = options.clock.every(SAVE_MS, () => void this.save())
  }

  /** Called for each durable record that is neither an intent nor an outcome. */
  note({ kind }: Rec, { seq }: RecordPlace): void {
    if (KINDS.has(kind) || kind === ANCHOR) this.#noted.push(seq)
  }

  /** Never rejects: without the file a start reads the whole ledger. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#save())
    return this.#saving
  }

  close(): Promise<void> {
    this.#stop()
    return this.save()
  }

  async #save(): Promise<void> {
    const { path, head, log } = this.#options
    const ledger = head()
    if (ledger.seq === this.#savedSeq) return
    try {
      await this.#collect(ledger.seq)
      const records = this.#records
      const texts = await mapInSlices(records, (rec) => JSON.stringify(rec))
      const rest = { ledger: { seq: ledger.seq, hash: ledger.hash }, anchor: this.#anchor }
      const body = `${JSON.stringify(rest).slice(0, -1)},"records":[${texts.join(',')}]}`
      await replaceText(recentPath(path), `${body}\n${digestOf(body)}\n`)
      this.#savedSeq = ledger.seq
    } catch (error) {
      const place = recentPath(path)
      log.warn({ path: place, error: reasonOf(error) }, 'recent records cannot be saved: the next start reads more')
    }
  }

  /** Reads the noted records from the ledger, since only its lines have their times. */
  async #collect(upTo: number): Promise<void> {
    const { path, clock } = this.#options
    const due = this.#noted.filter((seq) => seq <= upTo).slice(-RECENT_MAX)
    if (due.length > 0) {
      await using sequence = await LedgerSequence.open(path)
      const found: Rec[] = []
      for (const seq of due) {
        const line = await sequence.lineOf(seq)
        if (line !== null) found.push(JSON.parse(line.line.toString()).rec)
      }
      this.#noted = this.#noted.filter((seq) => seq > upTo)
      this.#anchor = found.findLast(isLogAnchor) ?? this.#anchor
      this.#records.push(...found.filter(({ kind }) => KINDS.has(kind)))
    }
    const since = clock.now() - RECENT_MS
    this.#records = this.#records.filter(({ at }) => Date.parse(String(at)) >= since).slice(-RECENT_MAX)
  }
}
