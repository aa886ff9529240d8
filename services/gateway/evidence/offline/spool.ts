import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MAX_SEAL_BYTES, readSeal, type SegmentSeal, segmentBytes } from '@plat/ledger'
import type { Log } from '@plat/process'
import { isMissing } from '@plat/state'
import { putDurably } from './durable.ts'
import { noProgress, type Progress, readProgress, writeProgress } from './progress.ts'

const FOLDER_MODE = 0o700

/** A sealed segment that waits to be acknowledged. */
export interface Spooled {
  readonly seal: SegmentSeal
  readonly path: string
  readonly bytes: number
}

export interface SpoolOptions {
  readonly dir: string
  readonly edge: string
  readonly ledgerId: string
  /** `offline.spoolMaxBytes` */
  readonly maxBytes: number
  readonly log: Log
}

/**
 * Sealed segments on disk, in the order of their records: `<edge>-<first record>.segment`. All of it comes from the ledger and could be
 * made from it again; what is acknowledged leaves it.
 */
export class Spool {
  readonly #options: SpoolOptions
  #segments: Spooled[] = []
  #progress: Progress
  #bytes = 0
  #turn: Promise<void> = Promise.resolve()

  private constructor(options: SpoolOptions, progress: Progress) {
    this.#options = options
    this.#progress = progress
  }

  /** Throws when the folder belongs to another ledger, or cannot be read. */
  static async open(options: SpoolOptions): Promise<Spool> {
    const { dir, ledgerId } = options
    await mkdir(dir, { recursive: true, mode: FOLDER_MODE })
    const progress = (await readProgress(dir)) ?? noProgress(ledgerId)
    if (progress.ledgerId !== ledgerId) {
      throw new Error(
        `offline.spoolDir ${dir} is the spool of ledger ${progress.ledgerId}, and this one is ${ledgerId}: move it away`,
      )
    }
    const spool = new Spool(options, progress)
    await spool.#load()
    return spool
  }

  get bytes(): number {
    return this.#bytes
  }

  get progress(): Progress {
    return this.#progress
  }

  /** The last record that is sealed; what comes after it is not yet. */
  get sealed(): { readonly seq: number; readonly hash: string } {
    const last = this.#segments.at(-1)?.seal
    return last === undefined ? this.#progress.base : { seq: last.to, hash: last.head }
  }

  /** Segments that were not handed to a collector, the oldest first. */
  waiting(): readonly Spooled[] {
    return this.#segments.filter(({ seal }) => seal.to > this.#progress.forwarded)
  }

  /** Bytes that a further segment may have. */
  get room(): number {
    return Math.max(0, this.#options.maxBytes - this.#bytes)
  }

  /** Keeps a segment; one that does not go on after `sealed` is passed over. */
  put(seal: SegmentSeal, text: string, lines: Uint8Array): Promise<void> {
    return this.#inTurn(async () => {
      if (seal.from !== this.sealed.seq + 1) return
      const { dir, edge } = this.#options
      const path = join(dir, `${edge}-${String(seal.from).padStart(16, '0')}.segment`)
      const bytes = segmentBytes(text, lines)
      await putDurably(path, bytes)
      this.#segments.push({ seal, path, bytes: bytes.length })
      this.#bytes += bytes.length
    })
  }

  /** The bytes of a segment; null: somebody removed it, and it will be sealed anew. */
  async read({ path }: Spooled): Promise<Buffer | null> {
    try {
      return await readFile(path)
    } catch (error) {
      if (!isMissing(error)) throw error
      await this.#inTurn(() => this.#load())
      return null
    }
  }

  /** A collector was given all records up to this one. */
  forwarded(upTo: number): Promise<void> {
    return this.#inTurn(() => this.#keep({ ...this.#progress, forwarded: Math.max(this.#progress.forwarded, upTo) }))
  }

  /** A collector has all records up to this one and will keep them: they leave the spool. */
  acknowledge(upTo: number, hash: string, now: number): Promise<void> {
    return this.#inTurn(async () => {
      const { forwarded, base, acked } = this.#progress
      // A receipt that came another way may have said more meanwhile.
      if (upTo <= acked) return
      const next = { forwarded: Math.max(forwarded, upTo), acked: upTo, ackedAt: now }
      await this.#keep({ ...this.#progress, ...next, base: upTo > base.seq ? { seq: upTo, hash } : base })
      await this.#free()
    })
  }

  /** The collector has less than it was given: the edge goes on from there, and seals anew what has left the spool. */
  rewind(upTo: number, hash: string): Promise<void> {
    return this.#inTurn(async () => {
      const { base, acked } = this.#progress
      const from = upTo < base.seq ? { seq: upTo, hash } : base
      await this.#keep({ ...this.#progress, base: from, forwarded: upTo, acked: Math.min(acked, upTo) })
      await this.#load()
    })
  }

  /** Drops the oldest segment that was handed to a collector; false: there is none. Its records stay in the ledger. */
  dropForwarded(): Promise<boolean> {
    return this.#inTurn(async () => {
      const [oldest] = this.#segments
      if (oldest === undefined || oldest.seal.to > this.#progress.forwarded) return false
      await this.#keep({ ...this.#progress, base: { seq: oldest.seal.to, hash: oldest.seal.head } })
      await this.#free()
      return true
    })
  }

  /** One change at a time: whoever seals and whoever forwards meet here. */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(change)
    this.#turn = done.then(
      () => {},
      () => {},
    )
    return done
  }

  async #keep(progress: Progress): Promise<void> {
    await writeProgress(this.#options.dir, progress)
    this.#progress = progress
  }

  /** Removes what lies before the base. */
  async #free(): Promise<void> {
    const { base } = this.#progress
    const gone = this.#segments.filter(({ seal }) => seal.to <= base.seq)
    this.#segments = this.#segments.filter(({ seal }) => seal.to > base.seq)
    for (const { path, bytes } of gone) {
      await rm(path, { force: true })
      this.#bytes -= bytes
    }
  }

  /** Finds the segments that go on from the base without a gap. Everything else is removed: the ledger still has its records. */
  async #load(): Promise<void> {
    const { dir, log } = this.#options
    this.#segments = []
    this.#bytes = 0
    const names = (await readdir(dir)).filter((name) => name.endsWith('.segment') || name.endsWith('.tmp')).toSorted()
    for (const name of names) {
      const path = join(dir, name)
      const next = this.sealed
      const found = name.endsWith('.segment') ? await readSpooled(path) : null
      if (found !== null && this.#isOwn(found) && found.seal.from <= next.seq + 1 && found.seal.to > next.seq) {
        this.#segments.push(found)
        this.#bytes += found.bytes
      } else {
        log.info({ path, after: next.seq }, 'a file that is no next segment was removed from the spool')
        await rm(path, { force: true })
      }
    }
  }

  /** What was sealed under another name is sealed anew: no receipt for it would count. */
  #isOwn({ seal }: Spooled): boolean {
    return seal.edge === this.#options.edge && seal.ledgerId === this.#options.ledgerId
  }
}

/** Null: it is no whole segment. */
async function readSpooled(path: string): Promise<Spooled | null> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_SEAL_BYTES + 1), 0, MAX_SEAL_BYTES + 1, 0)
  const end = buffer.subarray(0, bytesRead).indexOf('\n')
  const seal = end === -1 ? undefined : readSeal(buffer.toString('latin1', 0, end))?.says
  return seal === undefined || size !== end + 1 + seal.bytes ? null : { seal, path, bytes: size }
}
