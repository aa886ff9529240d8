import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MAX_SEAL_BYTES, readSeal, type SegmentSeal, segmentBytes } from '@plat/ledger'
import type { Log } from '@plat/process'
import { isMissing } from '@plat/state'
import { putDurably } from './durable.ts'
import { noProgress, type Progress, readProgress, writeProgress } from './progress.ts'

const FOLDER_MODE = 0o700

/** A sealed segment without acknowledgement. */
export interface Spooled {
  readonly seal: SegmentSeal
  readonly path: string
  readonly bytes: number
}

export interface SpoolOptions {
  readonly dir: string
  readonly edge: string
  readonly ledgerId: string
  readonly maxBytes: number
  readonly log: Log
}

/**
 * Sealed segments on disk, in the order of their records: `<edge>-<first record>.segment`. All of them can be rebuilt from the ledger;
 * acknowledged ones are removed.
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

  /** Throws if the folder belongs to another ledger or cannot be read. */
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

  get sealed(): { readonly seq: number; readonly hash: string } {
    const last = this.#segments.at(-1)?.seal
    return last === undefined ? this.#progress.base : { seq: last.to, hash: last.head }
  }

  /** Segments that were not sent to a collector, the oldest first. */
  waiting(): readonly Spooled[] {
    return this.#segments.filter(({ seal }) => seal.to > this.#progress.forwarded)
  }

  /** Maximum size of a further segment, in bytes. */
  get room(): number {
    return Math.max(0, this.#options.maxBytes - this.#bytes)
  }

  /** Stores a segment; ignores one that does not continue after `sealed`. */
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

  /** Returns the bytes of a segment, or null if its file was removed: it is then sealed again. */
  async read({ path }: Spooled): Promise<Buffer | null> {
    try {
      return await readFile(path)
    } catch (error) {
      if (!isMissing(error)) throw error
      await this.#inTurn(() => this.#load())
      return null
    }
  }

  /** Called when all records up to this one were sent to a collector. */
  forwarded(upTo: number): Promise<void> {
    return this.#inTurn(() => this.#keep({ ...this.#progress, forwarded: Math.max(this.#progress.forwarded, upTo) }))
  }

  /** Called when a collector has durably stored all records up to this one: they leave the spool. */
  acknowledge(upTo: number, hash: string, now: number): Promise<void> {
    return this.#inTurn(async () => {
      const { forwarded, base, acked } = this.#progress
      // A receipt received another way may cover more already.
      if (upTo <= acked) return
      const next = { forwarded: Math.max(forwarded, upTo), acked: upTo, ackedAt: now }
      await this.#keep({ ...this.#progress, ...next, base: upTo > base.seq ? { seq: upTo, hash } : base })
      await this.#free()
    })
  }

  /** Called when the collector lost records: continues from its position, and seals removed segments again. */
  rewind(upTo: number, hash: string): Promise<void> {
    return this.#inTurn(async () => {
      const { base, acked } = this.#progress
      const from = upTo < base.seq ? { seq: upTo, hash } : base
      await this.#keep({ ...this.#progress, base: from, forwarded: upTo, acked: Math.min(acked, upTo) })
      await this.#load()
    })
  }

  /** Drops the oldest forwarded segment; false if there is none. Its records stay in the ledger. */
  dropForwarded(): Promise<boolean> {
    return this.#inTurn(async () => {
      const [oldest] = this.#segments
      if (oldest === undefined || oldest.seal.to > this.#progress.forwarded) return false
      await this.#keep({ ...this.#progress, base: { seq: oldest.seal.to, hash: oldest.seal.head } })
      await this.#free()
      return true
    })
  }

  /** Serializes changes of sealer and forwarder. */
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

  /** Removes segments before the base. */
  async #free(): Promise<void> {
    const { base } = this.#progress
    const gone = this.#segments.filter(({ seal }) => seal.to <= base.seq)
    this.#segments = this.#segments.filter(({ seal }) => seal.to > base.seq)
    for (const { path, bytes } of gone) {
      await rm(path, { force: true })
      this.#bytes -= bytes
    }
  }

  /** Finds the segments that continue the base without a gap. Removes all others: the ledger still has their records. */
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
        log.info({ path, after: next.seq }, 'removed a file from the spool that does not continue it')
        await rm(path, { force: true })
      }
    }
  }

  /** Segments sealed under another name are sealed again: their receipts would be invalid. */
  #isOwn({ seal }: Spooled): boolean {
    return seal.edge === this.#options.edge && seal.ledgerId === this.#options.ledgerId
  }
}

/** Returns null if it is not a complete segment. */
async function readSpooled(path: string): Promise<Spooled | null> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_SEAL_BYTES + 1), 0, MAX_SEAL_BYTES + 1, 0)
  const end = buffer.subarray(0, bytesRead).indexOf('\n')
  const seal = end === -1 ? undefined : readSeal(buffer.toString('latin1', 0, end))?.says
  return seal === undefined || size !== end + 1 + seal.bytes ? null : { seal, path, bytes: size }
}
