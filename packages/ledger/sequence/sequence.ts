import { firstLine, lineAt, type Span, seqOf } from '../find.ts'
import { type ReadAt, scanLines } from '../lines.ts'
import { isReached, type LedgerMoment } from '../moment.ts'
import { openSource } from './compressed-file.ts'
import { asyncFiles, type SourceFile, type SourceFiles } from './files.ts'
import { type LedgerPart, lastUpTo, partAt, partsOf } from './ledger-parts.ts'
import { LeftReplacedError, LeftSegments } from './left-segments.ts'
import { type LedgerSegment, segmentsPath } from './segment-entry.ts'
import { type LoadedSegments, loadSegments } from './segment-list.ts'
import { SegmentDamagedError, SegmentListError } from './segment-list-error.ts'

/** A read of records whose segment left the disk. */
export class ArchivedError extends Error {
  readonly segment: LedgerSegment
  /** Position after it and the adjacent segments that left. */
  readonly end: number

  constructor(path: string, segment: LedgerSegment, end: number) {
    const { first, last, archive } = segment
    const isKept = archive !== null
    const where = isKept ? `are archived at ${archive}` : 'were deleted'
    const cure = isKept ? ': to read them, copy that file back beside the ledger' : ''
    super(`${path}: records ${first} to ${last} ${where} (auditRetention)${cure}`)
    this.segment = segment
    this.end = end
  }
}

/** Number of records that are read in about the time of one binary search. */
const NEAR_RECORDS = 500
/** Limit of retries while segments are sealed during `open`. */
const MAX_ATTEMPTS = 10

/**
 * All files of a ledger as one sequence of bytes: the sealed segments in order, then the active file. Positions are those that one single file would
 * have; they do not change when the active file is sealed, nor when a segment is compressed or leaves. So whatever reads a ledger file by position
 * reads a sequence the same way, also while it is written. Lines are not verified.
 *
 * Reading a segment that left throws ArchivedError.
 */
export class LedgerSequence implements ReadAt {
  readonly #ledgerPath: string
  readonly #files: SourceFiles
  #loaded: LoadedSegments
  /** Sealed parts, then the active one. */
  #parts: readonly LedgerPart[] = []
  #active: { readonly file: SourceFile; readonly identity: string } | null = null
  /** The sealed segment read last. */
  #sealed: { readonly path: string; readonly file: Promise<SourceFile | null> } | null = null

  private constructor(ledgerPath: string, files: SourceFiles) {
    this.#ledgerPath = ledgerPath
    this.#files = files
    this.#loaded = { segments: [], left: new LeftSegments('', files, null), isListed: true }
  }

  /** Throws the system's ENOENT error when there is neither an active file nor a segment. */
  static async open(ledgerPath: string, files: SourceFiles = asyncFiles): Promise<LedgerSequence> {
    const sequence = new LedgerSequence(ledgerPath, files)
    await sequence.#load()
    if (sequence.#active === null && sequence.parts.length === 1) {
      throw Object.assign(new Error(`ENOENT: no such file or directory, open '${ledgerPath}'`), { code: 'ENOENT' })
    }
    return sequence
  }

  /** The sealed segments that are here in order, and those that left a short time ago. `segmentOf` knows all. */
  get segments(): readonly LedgerSegment[] {
    return this.#loaded.segments
  }

  /** Returns whether the list has all sealed segments. */
  get isListed(): boolean {
    return this.#loaded.isListed
  }

  /** Returns the sealed segment of record `seq`, also if it left; null when there is none. O(log n). */
  async segmentOf(seq: number): Promise<LedgerSegment | null> {
    return lastUpTo(this.segments, seq) ?? (await this.#inLeft((left) => left.of(seq)))
  }

  /** Returns the last sealed segment; null when there is none. */
  async lastSealed(): Promise<LedgerSegment | null> {
    return await this.segmentOf((this.parts.at(-1)?.first ?? 0) - 1)
  }

  /** Yields all sealed segments of these records in order, also those that left. */
  async *segmentsOf(first: number, last: number): AsyncGenerator<LedgerSegment> {
    for (let next = first; next <= last; ) {
      const segment = lastUpTo(this.segments, next)
      if (segment !== null) {
        yield segment
        next = segment.last + 1
        continue
      }
      const end = Math.min(last, (this.segments.find((one) => one.first > next)?.first ?? Number.MAX_SAFE_INTEGER) - 1)
      for await (const one of this.#loaded.left.inRange(next, end)) yield one
      next = end + 1
    }
  }

  /** Returns at most `count` sealed segments that begin before record `before`, the last first; also those that left. */
  async segmentsBefore(before: number, count: number): Promise<readonly LedgerSegment[]> {
    const listed = this.segments.filter(({ first }) => first < before)
    const known = new Set(listed.flatMap(({ first, left }) => (left === null ? [] : [first])))
    const left = await this.#inLeft((one) => one.lastBefore(before, count + known.size))
    const all = [...left.filter(({ first }) => !known.has(first)), ...listed]
    return all.sort((a, b) => b.first - a.first).slice(0, count)
  }

  /** All files in order, and what left between them; the last is the active one. */
  get parts(): readonly LedgerPart[] {
    return this.#parts
  }

  /** Returns the position after the last byte; the last line may be incomplete. */
  async size(): Promise<number> {
    if (await this.#isSealed()) await this.#load()
    return this.#activeOffset + ((await this.#active?.file.size()) ?? 0)
  }

  /** Reads across files until `target` is full. Returns a smaller number only at the end, or before a segment that left. */
  async read(target: Uint8Array, position: number): Promise<number> {
    let count = 0
    while (count < target.length) {
      const got = await this.#readPart(target.subarray(count), position + count).catch((error: unknown) => {
        if (error instanceof ArchivedError && count > 0) return 0
        throw error
      })
      if (got === 0) break
      count += got
    }
    return count
  }

  /**
   * Returns the position of the first line at or after a moment, in O(log n); the end when there is none. Segments that left are passed over. A time
   * is found as long as the ledger's clock was not set back.
   */
  async startOf(moment: LedgerMoment): Promise<number> {
    const size = await this.size()
    const part = this.#parts.find(({ segment, leftUpTo }) =>
      segment === null ? leftUpTo === null : ends(segment, moment),
    )
    return part === undefined
      ? size
      : await firstLine(this, this.#spanOf(part, size), (line) => isReached(line, moment))
  }

  /** Returns the line of record `seq` without LF; null when it does not exist. Throws ArchivedError when its segment left. */
  async lineOf(seq: number): Promise<{ readonly line: Buffer; readonly position: number } | null> {
    const size = await this.size()
    const part = this.#parts.findLast(({ first }) => first <= seq)
    if (part === undefined) return null
    if (part.leftUpTo !== null) {
      const segment = await this.segmentOf(seq)
      if (segment === null) return null
      throw new ArchivedError(this.#ledgerPath, segment, this.#endOfPart(part))
    }
    const position = await firstLine(this, this.#spanOf(part, size), (line) => (seqOf(line) ?? -1) >= seq)
    const line = position < size ? await lineAt(this, position) : null
    return line !== null && seqOf(line) === seq ? { line, position } : null
  }

  /**
   * Passes the lines of these records to `onLine`, without LF, in order; those that do not exist are left out. `seqs` ascend. Records near each other are
   * read in one pass. The line is valid only during the call. Throws ArchivedError.
   */
  async eachLine(seqs: readonly number[], onLine: (line: Buffer, seq: number) => void): Promise<void> {
    for (let at = 0; at < seqs.length; ) {
      const seq = seqs[at++] ?? 0
      const found = await this.lineOf(seq)
      if (found === null) continue
      onLine(found.line, seq)
      if (!isNear(seq, seqs[at])) continue
      const from = found.position + found.line.length + 1
      await scanLines(this, {
        from,
        onLine: (buffer, start, end) => {
          const line = buffer.subarray(start, end)
          const passed = seqOf(line)
          if (passed === null) return false
          if (passed === seqs[at]) {
            onLine(line, passed)
            at++
          }
          return isNear(passed, seqs[at])
        },
      })
    }
  }

  /** Returns one file as a source that begins at position 0. */
  sourceOf(part: LedgerPart): ReadAt {
    const end = part.segment === null ? Number.POSITIVE_INFINITY : part.offset + part.segment.bytes
    return {
      read: (target, position) => {
        const from = part.offset + position
        return this.read(target.subarray(0, Math.max(0, Math.min(target.length, end - from))), from)
      },
    }
  }

  async close(): Promise<void> {
    const [active, sealed] = [this.#active, this.#sealed]
    this.#active = null
    this.#sealed = null
    await Promise.all([active?.file.close(), sealed?.file.then((file) => file?.close())])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  get #activeOffset(): number {
    return this.#parts.at(-1)?.offset ?? 0
  }

  #spanOf({ offset, segment }: LedgerPart, size: number): Span {
    return { from: offset, to: segment === null ? size : offset + segment.bytes }
  }

  /** Reads from the one file that has `position`. */
  async #readPart(target: Uint8Array, position: number): Promise<number> {
    if (position >= this.#activeOffset) {
      const count = (await this.#active?.file.read(target, position - this.#activeOffset)) ?? 0
      if (count > 0 || !(await this.#isSealed())) return count
      // The active file was sealed: the lines go on in a new one.
      await this.#load()
      return position < this.#activeOffset ? await this.#readPart(target, position) : count
    }
    const part = partAt(this.#parts, position)
    if (part === undefined) return 0
    if (part.segment === null) throw await this.#archived(part, position)
    const within = position - part.offset
    const file = await this.#openSealed(part)
    const count = await file.read(target.subarray(0, part.segment.bytes - within), within)
    if (count === 0) {
      throw new SegmentDamagedError(
        part.path,
        `is shorter than the ${part.segment.bytes} bytes that it was sealed with`,
      )
    }
    return count
  }

  /** Opens the file of a sealed part. It may have another name since the segments were listed: it was compressed, or left. */
  async #openSealed(part: LedgerPart): Promise<SourceFile> {
    const file = await this.#open(part.path)
    if (file !== null) return file
    await this.#load()
    const now = this.#parts.findLast(({ first }) => first <= part.first)
    if (now !== undefined && now.leftUpTo !== null) throw await this.#archived(now, part.offset)
    const moved = now === undefined ? null : await this.#open(now.path)
    if (moved === null) {
      throw new SegmentListError(
        `${part.path} is missing: restore it from a copy with \`plat audit repair ${this.#ledgerPath} -from <copy>\``,
      )
    }
    return moved
  }

  /** Returns the error about a position in segments that left. */
  async #archived(part: LedgerPart, position: number): Promise<Error> {
    const listed = this.segments.find(({ offset, bytes }) => offset <= position && position < offset + bytes)
    const segment = listed ?? (await this.#inLeft((left) => left.at(position)))
    if (segment !== null) return new ArchivedError(this.#ledgerPath, segment, this.#endOfPart(part))
    return new SegmentListError(
      `${this.#ledgerPath}: records ${part.first} to ${part.leftUpTo} are missing, and the list does not say where they are: restore ${segmentsPath(this.#ledgerPath)} and the files of these records from a copy`,
    )
  }

  #endOfPart(part: LedgerPart): number {
    return this.#parts[this.#parts.indexOf(part) + 1]?.offset ?? part.offset
  }

  /** Searches the segments that left, once more when their file was replaced. */
  async #inLeft<T>(search: (left: LeftSegments) => Promise<T>): Promise<T> {
    try {
      return await search(this.#loaded.left)
    } catch (error) {
      if (!(error instanceof LeftReplacedError)) throw error
      await this.#load()
      return await search(this.#loaded.left)
    }
  }

  /** Returns null when the file does not exist. */
  async #open(path: string): Promise<SourceFile | null> {
    if (this.#sealed?.path === path) return await this.#sealed.file
    const before = this.#sealed
    const opened = openSource(path, this.#files)
    this.#sealed = { path, file: opened }
    try {
      const file = await opened
      if (file === null && this.#sealed?.file === opened) this.#sealed = null
      return file
    } catch (error) {
      if (this.#sealed?.file === opened) this.#sealed = null
      throw error
    } finally {
      // Also after a failure: an open file that nothing refers to ends the process when it is collected.
      await before?.file.then((one) => one?.close())
    }
  }

  /** Returns whether the active file is no longer the one under its name. */
  async #isSealed(): Promise<boolean> {
    return (await this.#files.identity(this.#ledgerPath)) !== (this.#active?.identity ?? null)
  }

  /** Lists the segments and opens the active file. */
  async #load(): Promise<void> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) if (await this.#tryLoad()) return
    throw new Error(`${this.#ledgerPath}: its segments change too often to be read`)
  }

  /** Returns false when a segment was sealed meanwhile. */
  async #tryLoad(): Promise<boolean> {
    const identity = await this.#files.identity(this.#ledgerPath)
    await using opened = new AsyncDisposableStack()
    const file = identity === null ? null : await this.#files.open(this.#ledgerPath)
    opened.defer(() => file?.close())
    const loaded = await loadSegments(this.#ledgerPath, this.#files)
    if ((await this.#files.identity(this.#ledgerPath)) !== identity) return false
    await this.#active?.file.close()
    this.#active = file === null || identity === null ? null : { file, identity }
    this.#loaded = loaded
    this.#parts = partsOf(this.#ledgerPath, loaded)
    opened.move()
    return true
  }
}

/** Returns whether reading on to `next` costs less than a search for it. */
function isNear(seq: number, next: number | undefined): boolean {
  return next !== undefined && next > seq && next - seq <= NEAR_RECORDS
}

/** Returns whether a segment ends at or after a moment. */
function ends(segment: LedgerSegment, moment: LedgerMoment): boolean {
  return typeof moment === 'number' ? segment.last >= moment : segment.to >= moment.at
}
