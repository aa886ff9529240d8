import { basename, join } from 'node:path'
import { canonicalJson, isObject } from '@plat/core'
import { Chain } from '../chain.ts'
import { firstLine, lastLine, lineAt, type Span, seqOf } from '../find.ts'
import { type Head, lineRoom, MAX_LINE_BYTES, readRawLine, sealLine, ZERO_HASH } from '../format.ts'
import { type ReadAt, scanLines } from '../lines.ts'
import { jsonOf } from '../moment.ts'
import type { SourceFile, SourceFiles } from './files.ts'
import { isCount, type LedgerSegment, readEntry, segmentsPath } from './segment-entry.ts'
import { SegmentListError } from './segment-list-error.ts'

/** The file of segments that left, up to a whole line. */
export interface LeftState {
  /** Name of the file beside the ledger. */
  readonly file: string
  readonly bytes: number
  /** Number and hash of the last line; null for an empty file. */
  readonly head: Head | null
  /** Last record of the last segment, and the position after it in the ledger. */
  readonly last: number
  readonly end: number
}

/** The file was replaced by a later one since the list was read. */
export class LeftReplacedError extends SegmentListError {}

/** Entries that are read at once. */
const PAGE_ENTRIES = 256

/** Returns the name of the file of segments that left; a later one has a higher number. */
export function leftName(ledgerPath: string, number: number): string {
  return `${basename(ledgerPath)}.left.${number}.jsonl`
}

/** Returns the number in the name of a file of segments that left; null for another name. */
export function numberOfLeft(ledgerPath: string, name: string): number | null {
  const prefix = `${basename(ledgerPath)}.left.`
  const digits = name.startsWith(prefix) ? /^([1-9]\d{0,8})\.jsonl$/.exec(name.slice(prefix.length))?.[1] : undefined
  return digits === undefined ? null : Number(digits)
}

/** Reads a state from the list; null when it is malformed. */
export function readLeftState(value: unknown, ledgerPath: string): LeftState | null {
  if (!isObject(value)) return null
  const { file, bytes, count, hash, last, end } = value
  if (typeof file !== 'string' || numberOfLeft(ledgerPath, file) === null || typeof hash !== 'string') return null
  if (!isCount(bytes) || !isCount(count) || count === 0 || !isCount(last) || !isCount(end)) return null
  return { file, bytes, head: { seq: count - 1, hash }, last, end }
}

/** Returns a state as the list has it; null when no segment left. */
export function textOfLeftState(state: LeftState | null): object | null {
  if (state === null || state.head === null) return null
  const { file, bytes, head, last, end } = state
  return { file, bytes, count: head.seq + 1, hash: head.hash, last, end }
}

/** Returns the line of a segment that left, with its LF, after `head`; null when it is too long for a line. */
export function lineOfLeft(
  segment: LedgerSegment,
  head: Head | null,
): { readonly bytes: Buffer; readonly head: Head } | null {
  const { file: _, ...entry } = segment
  const rec = canonicalJson(entry)
  const buffer = Buffer.alloc(lineRoom(rec))
  const seq = head === null ? 0 : head.seq + 1
  const { hash, end } = sealLine({ buffer, at: 0, prev: head?.hash ?? ZERO_HASH }, rec, seq)
  return end > MAX_LINE_BYTES ? null : { bytes: buffer.subarray(0, end), head: { seq, hash } }
}

/**
 * The segments of a ledger that left, in the order of their records. Their file has lines of the ledger's format, one for each segment, so that nothing
 * but the needed lines is read: O(log n) for one of them.
 */
export class LeftSegments {
  readonly #path: string
  readonly #files: SourceFiles
  /** Null: there is no file. */
  readonly state: LeftState | null
  /** The segment found last: the next search is often for the same. */
  #found: LedgerSegment | null = null

  constructor(folder: string, files: SourceFiles, state: LeftState | null) {
    this.#path = join(folder, state?.file ?? '')
    this.#files = files
    this.state = state
  }

  get count(): number {
    return this.state?.head == null ? 0 : this.state.head.seq + 1
  }

  /** Returns the segment of record `seq`; null when it is not here. */
  async of(seq: number): Promise<LedgerSegment | null> {
    if (this.state === null || seq > this.state.last) return null
    if (this.#found !== null && this.#found.first <= seq && seq <= this.#found.last) return this.#found
    const isLast = seq === this.state.last
    const found = isLast ? await this.#last(this.state.bytes) : await this.#first(({ last }) => last >= seq)
    this.#found = found
    return found !== null && found.first <= seq ? found : null
  }

  /** Returns the segment that has a position of the ledger; null when it is not here. */
  async at(position: number): Promise<LedgerSegment | null> {
    if (position >= (this.state?.end ?? 0)) return null
    const found = await this.#first(({ offset, bytes }) => offset + bytes > position)
    return found !== null && found.offset <= position ? found : null
  }

  /** Yields the segments with records from `first` to `last`, and verifies the chain of their lines. */
  async *inRange(first: number, last: number): AsyncGenerator<LedgerSegment> {
    if (this.count === 0 || first > (this.state?.last ?? -1)) return
    const file = await this.#open()
    try {
      let from = await firstLine(file, this.#span, (line) => this.#entry(line).last >= first)
      const chain = new Chain(await this.#headBefore(file, from))
      for (;;) {
        const { entries, end } = await this.#page(file, from, chain)
        for (const entry of entries) {
          if (entry.first > last) return
          yield entry
        }
        if (entries.length < PAGE_ENTRIES) return
        from = end
      }
    } finally {
      await file.close()
    }
  }

  /** Returns at most `count` of the segments that begin before record `before`: the last of them, in order. */
  async lastBefore(before: number, count: number): Promise<readonly LedgerSegment[]> {
    if (this.count === 0 || count === 0) return []
    const file = await this.#open()
    try {
      const end = await firstLine(file, this.#span, (line) => this.#entry(line).first >= before)
      const next = end < this.#span.to ? (seqOf((await lineAt(file, end)) ?? Buffer.alloc(0)) ?? 0) : this.count
      const from = await firstLine(file, this.#span, (line) => (seqOf(line) ?? 0) >= next - count)
      const entries: LedgerSegment[] = []
      await scanLines(within(file, end), {
        from,
        onLine: (buffer, start, lineEnd) => entries.push(this.#entry(buffer.subarray(start, lineEnd))) > 0,
      })
      return entries
    } finally {
      await file.close()
    }
  }

  async #first(isReached: (segment: LedgerSegment) => boolean): Promise<LedgerSegment | null> {
    if (this.count === 0) return null
    const file = await this.#open()
    try {
      const start = await firstLine(file, this.#span, (line) => isReached(this.#entry(line)))
      const line = start < this.#span.to ? await lineAt(file, start) : null
      return line === null ? null : this.#entry(line)
    } finally {
      await file.close()
    }
  }

  async #last(bytes: number): Promise<LedgerSegment | null> {
    const file = await this.#open()
    try {
      const line = await lastLine(file, bytes)
      return line === null ? null : this.#entry(line)
    } finally {
      await file.close()
    }
  }

  /** Reads the next entries of the chain. */
  async #page(file: ReadAt, from: number, chain: Chain) {
    const entries: LedgerSegment[] = []
    let damaged: string | null = null
    const { offset, tooLong } = await scanLines(within(file, this.#span.to), {
      from,
      onLine: (buffer, start, end) => {
        if (entries.length === PAGE_ENTRIES) return false
        const line = chain.follow(buffer, start, end)
        if ('kind' in line) damaged = line.what
        else entries.push(this.#parsed(entryOf(buffer.subarray(start, end))))
        return damaged === null
      },
    })
    const isEnd = chain.head?.seq === this.state?.head?.seq
    if (damaged !== null || tooLong || (entries.length < PAGE_ENTRIES && !isEnd)) throw damagedFile(this.#path, damaged)
    if (isEnd && chain.head?.hash !== this.state?.head?.hash)
      throw damagedFile(this.#path, 'its last line is another one')
    return { entries, end: offset }
  }

  /** Returns the line before a position, as its next one states it. */
  async #headBefore(file: ReadAt, position: number): Promise<Head | null> {
    const line = await lineAt(file, position)
    const raw = line === null ? 'it has no line' : readRawLine(Buffer.from(line), 0, line.length)
    if (typeof raw === 'string') throw damagedFile(this.#path, raw)
    return raw.seq === 0 ? null : { seq: raw.seq - 1, hash: raw.prev }
  }

  get #span(): Span {
    return { from: 0, to: this.state?.bytes ?? 0 }
  }

  #entry(line: Buffer): LedgerSegment {
    const raw = readRawLine(Buffer.from(line), 0, line.length)
    return this.#parsed(typeof raw === 'string' ? raw : entryOf(line))
  }

  #parsed(entry: LedgerSegment | string): LedgerSegment {
    if (typeof entry === 'string') throw damagedFile(this.#path, entry)
    return entry
  }

  async #open(): Promise<SourceFile> {
    const file = await this.#files.open(this.#path)
    if (file === null) throw new LeftReplacedError(missing(this.#path, null))
    return file
  }
}

/** Where the segments that left are looked for. */
export interface LeftPlace {
  readonly ledgerPath: string
  readonly folder: string
  readonly files: SourceFiles
  /** Names in the folder. */
  readonly names: readonly string[]
}

/**
 * Opens the file of segments that left: the one with the highest number. Lines after those that the list states were written before a crash, or the list
 * is an older one: they count, since a segment gets its line after it left. Throws SegmentListError when there are fewer.
 */
export async function openLeft(
  { ledgerPath, folder, files, names }: LeftPlace,
  stated: LeftState | null,
): Promise<{ readonly left: LeftSegments; readonly isListed: boolean }> {
  const number = Math.max(0, ...names.map((name) => numberOfLeft(ledgerPath, name) ?? 0))
  const file = leftName(ledgerPath, number)
  if (stated !== null && number < (numberOfLeft(ledgerPath, stated.file) ?? 0)) {
    throw new SegmentListError(missing(join(folder, stated.file), ledgerPath))
  }
  if (number === 0) return { left: new LeftSegments(folder, files, null), isListed: true }
  const known = stated?.file === file ? stated : { file, bytes: 0, head: null, last: -1, end: 0 }
  const source = await files.open(join(folder, file))
  if (source === null) throw new LeftReplacedError(missing(join(folder, file), ledgerPath))
  try {
    const size = await source.size()
    if (size < known.bytes) throw damagedFile(join(folder, file), `it has ${size} of ${known.bytes} bytes`)
    const state = size === known.bytes ? known : await readOn(source, join(folder, file), known)
    return { left: new LeftSegments(folder, files, state), isListed: state === stated }
  } finally {
    await source.close()
  }
}

/** Follows the whole lines after a state. */
async function readOn(source: ReadAt, path: string, known: LeftState): Promise<LeftState> {
  const chain = new Chain(known.head)
  let { last, end } = known
  let damaged: string | null = null
  const { offset, tooLong } = await scanLines(source, {
    from: known.bytes,
    onLine(buffer, start, lineEnd) {
      const line = chain.follow(buffer, start, lineEnd)
      const entry = 'kind' in line ? line.what : entryOf(buffer.subarray(start, lineEnd))
      if (typeof entry === 'string') damaged = entry
      else if (entry.first <= last || entry.offset < end) damaged = `record ${entry.first} is out of place`
      else [last, end] = [entry.last, entry.offset + entry.bytes]
      return damaged === null
    },
  })
  if (damaged !== null || tooLong) throw damagedFile(path, damaged)
  return { file: known.file, bytes: offset, head: chain.head, last, end }
}

/** Returns the entry in a line whose hash was verified, or what is wrong with it. */
function entryOf(line: Buffer): LedgerSegment | string {
  const entry = readEntry({ ...jsonOf(line)?.rec, file: null })
  if (entry === null || entry.offset === null || entry.left === null) return 'a line states no segment that left'
  return { ...entry, offset: entry.offset }
}

/** Ends a source at a position. */
function within(source: ReadAt, end: number): ReadAt {
  return {
    read: (target, position) =>
      source.read(target.subarray(0, Math.max(0, Math.min(target.length, end - position))), position),
  }
}

function missing(path: string, ledgerPath: string | null): string {
  const otherwise =
    ledgerPath === null ? '' : `; without one, move ${segmentsPath(ledgerPath)} away, and what left cannot be verified`
  return `${path}, which lists the segments that left, is missing: restore it from a copy${otherwise}`
}

function damagedFile(path: string, why: string | null): SegmentListError {
  return new SegmentListError(
    `${path}, which lists the segments that left, is damaged (${why ?? 'a line is too long'}): restore it from a copy`,
  )
}
