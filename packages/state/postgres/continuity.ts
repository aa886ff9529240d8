import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Ids, reasonOf } from '@plat/core'

/** Number of beats between two writes of the file: after a restart this much less is known. */
const BEATS_PER_WRITE = 10
/** Maximum file size in bytes. */
const MAX_FILE_BYTES = 4096

const OUT_OF_TIME = 'the state database has gone back in time: it lacks what it had acknowledged'

/** A gateway's record of its database. */
interface ObservedDatabase {
  /** Id of the database; empty when none was seen. */
  readonly origin: string
  readonly epoch: number
  /** Name under which this gateway stores its beats. */
  readonly witness: string
  readonly beat: number
}

/** Row of `origin`, joined with the row of this gateway. */
export interface OriginRow {
  readonly id: string
  readonly epoch: string
  readonly adopts: readonly string[]
  readonly lost: string | null
  readonly beat: string | null
  /** The first transaction id not assigned yet. */
  readonly xid: string
}

/** Knowledge from before a read of the database: progress seen during the read must not count against its result. */
export interface Mark {
  readonly epoch: number
  readonly beat: number
  readonly xid: number
}

export interface ContinuityOptions {
  /** File that persists the record; empty: not persisted. */
  readonly path: string
  readonly ids: Ids
  warn(message: string): void
  onLost(why: string): void
  /** An operator adopted the database as it is: everything must be reread. */
  onAdopted(): void
}

/**
 * Detects that the database lost acknowledged data: that it was replaced by an older copy, or that a fail-over lost something. `lost` stays set
 * until an operator adopts the database as it is.
 */
export class Continuity {
  readonly #options: ContinuityOptions
  #seen: ObservedDatabase
  #xid = 0
  #lost: string | null = null
  #written = 0
  #writing: Promise<void> = Promise.resolve()

  private constructor(options: ContinuityOptions, seen: ObservedDatabase) {
    this.#options = options
    this.#seen = seen
  }

  /** Rejects when the file exists but cannot be read. */
  static async open(options: ContinuityOptions): Promise<Continuity> {
    const text = options.path === '' ? '' : await readFile(options.path, 'utf8').catch(emptyIfMissing)
    const seen = text === '' ? { origin: '', epoch: 0, witness: options.ids.uuid(), beat: 0 } : decodeSeen(text)
    if (seen === null)
      throw new Error(`${options.path} does not say what was seen of the state database: move it away to begin anew`)
    return new Continuity(options, seen)
  }

  /** Why the database cannot be trusted; null when it can. */
  get lost(): string | null {
    return this.#lost
  }

  get witness(): string {
    return this.#seen.witness
  }

  get origin(): string {
    return this.#seen.origin
  }

  get mark(): Mark {
    return { epoch: this.#seen.epoch, beat: this.#seen.beat, xid: this.#xid }
  }

  /** Compares the database with what was known before it was read. */
  check(row: OriginRow, before: Mark): void {
    const { origin, witness } = this.#seen
    const epoch = Number(row.epoch)
    const isSame = origin === '' || row.id === origin
    if ((origin === '' || epoch > before.epoch) && row.lost === null && (isSame || row.adopts.includes(origin))) {
      this.#seen = { origin: row.id, epoch, witness, beat: Number(row.beat ?? 0) }
      this.#xid = 0
      this.#written = 0
      this.#lost = null
      if (origin !== '') this.#options.onAdopted()
      return
    }
    if (epoch < this.#seen.epoch && epoch >= before.epoch) return
    const why = whyLost(row, before, isSame)
    if (why !== null) this.lose(why)
  }

  lose(why: string): void {
    if (this.#lost !== null) return
    this.#lost = why
    this.#options.onLost(why)
  }

  /** Records the number that the database assigned to a beat. `before` is the mark from when the beat was sent. */
  sawBeat(beat: number, before: Mark): void {
    // After an adoption, counting began again from the content of the database.
    if (this.#lost !== null || before.epoch !== this.#seen.epoch) return
    if (beat <= before.beat) this.lose(OUT_OF_TIME)
    if (beat <= this.#seen.beat) return
    this.#seen = { ...this.#seen, beat }
    if (this.#written !== 0 && beat - this.#written < BEATS_PER_WRITE) return
    this.#written = beat
    this.#write()
  }

  /** Records the newest acknowledged transaction. */
  sawTransaction(xid: string | undefined): void {
    if (xid !== undefined) this.#xid = Math.max(this.#xid, Number(xid))
  }

  /** Resolves when the record is on disk. */
  async close(): Promise<void> {
    if (this.#lost === null && this.#seen.origin !== '') this.#write()
    await this.#writing
  }

  #write(): void {
    const { path, warn } = this.#options
    if (path === '') return
    this.#writing = this.#writing
      .then(() => replaceFile(path, `${JSON.stringify(this.#seen)}\n`))
      .catch((error: unknown) => warn(`${path} cannot be written: ${reasonOf(error)}`))
  }
}

function whyLost({ id, epoch, lost, beat, xid }: OriginRow, before: Mark, isSame: boolean): string | null {
  if (lost !== null) return lost
  if (!isSame) return `the state database is another one than before (${id})`
  const isOlder = Number(epoch) < before.epoch || Number(beat ?? 0) < before.beat || Number(xid) <= before.xid
  return isOlder ? OUT_OF_TIME : null
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const file = await open(`${path}.tmp`, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.tmp`, path)
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function emptyIfMissing(error: unknown): string {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
  throw error
}

function decodeSeen(text: string): ObservedDatabase | null {
  if (text.length > MAX_FILE_BYTES) return null
  try {
    const { origin, epoch, witness, beat } = JSON.parse(text)
    const isWhole = [origin, witness].every((id) => typeof id === 'string' && id !== '')
    return isWhole && [epoch, beat].every(Number.isSafeInteger) ? { origin, epoch, witness, beat } : null
  } catch {
    return null
  }
}
