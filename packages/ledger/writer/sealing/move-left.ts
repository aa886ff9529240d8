import { dirname, join } from 'node:path'
import type { AppendHandle, Files } from '@plat/state'
import type { Head } from '../../format.ts'
import { type LeftSegments, type LeftState, leftName, lineOfLeft, numberOfLeft } from '../../sequence/left-segments.ts'
import type { LedgerSegment } from '../../sequence/segment-entry.ts'
import { SegmentListError } from '../../sequence/segment-list-error.ts'

/** Bytes of lines that are written at once. */
const BATCH_BYTES = 1024 * 1024
/** Segments that left after later ones and stay in the list, before the file is written again with them. */
export const MAX_LATE = 256

export interface MoveOptions {
  readonly ledgerPath: string
  readonly left: LeftSegments
  /** The list states all lines of the file: they are durable. */
  readonly isListed: boolean
  readonly files: Files
}

export interface MovedSegments {
  /** Entries that remain in the list. */
  readonly segments: readonly LedgerSegment[]
  readonly state: LeftState | null
  /** Number of sealed segments, with those that left. */
  readonly count: number
}

/**
 * Appends the entries of segments that left to their file, so that the list does not grow with them. Durable when it resolves; until the list is written,
 * it has them as well. A segment that left after later ones, because it was held or damaged, waits in the list until there are `MAX_LATE`.
 */
export async function moveLeft(segments: readonly LedgerSegment[], options: MoveOptions): Promise<MovedSegments> {
  const { left } = options
  const upTo = left.state?.last ?? -1
  const [stay, next, late]: LedgerSegment[][] = [[], [], []]
  let copied = 0
  for (const segment of segments) {
    const isListed = segment.left !== null && segment.first <= upTo && (await left.of(segment.first)) !== null
    if (segment.left === null || segment.file !== null) stay?.push(segment)
    else if (segment.first > upTo) next?.push(segment)
    else if (!isListed) late?.push(segment)
    if (isListed && segment.file !== null) copied++
  }
  const isDue = (late?.length ?? 0) >= MAX_LATE
  const written = isDue
    ? await writeAgain([...(late ?? []), ...(next ?? [])], options)
    : await append(next ?? [], options)
  const all = [...(stay ?? []), ...(isDue ? [] : (late ?? [])), ...written.tooLong].sort((a, b) => a.first - b.first)
  const lines = written.state?.head == null ? 0 : written.state.head.seq + 1
  return { segments: all, state: written.state, count: lines + all.length - copied }
}

/** Removes the file before the one that the list names. */
export function removeReplaced(state: LeftState | null, ledgerPath: string, files: Files): void {
  const number = state === null ? 0 : (numberOfLeft(ledgerPath, state.file) ?? 0)
  if (number < 2) return
  const path = join(dirname(ledgerPath), leftName(ledgerPath, number - 1))
  if (files.exists(path)) files.remove(path)
}

interface Written {
  readonly state: LeftState | null
  /** They do not fit into a line. */
  readonly tooLong: readonly LedgerSegment[]
}

async function append(segments: readonly LedgerSegment[], options: MoveOptions): Promise<Written> {
  const { ledgerPath, left, files } = options
  if (segments.length === 0 && (options.isListed || left.state === null)) return { state: left.state, tooLong: [] }
  const state = left.state ?? { file: leftName(ledgerPath, 1), bytes: 0, head: null, last: -1, end: 0 }
  const path = join(dirname(ledgerPath), state.file)
  // Brings lines of an earlier attempt to disk once more.
  const handle = files.openAppend(path)
  try {
    const size = handle.size()
    if (size < state.bytes) throw new SegmentListError(`${path} became shorter while it was read`)
    // A line that a crash left unfinished.
    if (size > state.bytes) handle.truncate(state.bytes)
    const lines = new LineWriter(handle, state)
    for (const segment of segments) await lines.add(segment)
    return await lines.end()
  } finally {
    handle.close()
  }
}

/** Writes another file, with these segments in their places. */
async function writeAgain(segments: readonly LedgerSegment[], options: MoveOptions): Promise<Written> {
  const { ledgerPath, left, files } = options
  const file = leftName(ledgerPath, (numberOfLeft(ledgerPath, left.state?.file ?? '') ?? 0) + 1)
  const path = join(dirname(ledgerPath), file)
  const temporary = `${path}.tmp`
  files.remove(temporary)
  const handle = files.openAppend(temporary)
  try {
    const lines = new LineWriter(handle, { file, bytes: 0, head: null, last: -1, end: 0 })
    let at = 0
    const addUpTo = async (first: number) => {
      for (let one = segments[at]; one !== undefined && one.first < first; one = segments[++at]) await lines.add(one)
    }
    for await (const segment of left.inRange(0, Number.MAX_SAFE_INTEGER)) {
      await addUpTo(segment.first)
      await lines.add(segment)
    }
    await addUpTo(Number.POSITIVE_INFINITY)
    const written = await lines.end()
    files.rename(temporary, path)
    return written
  } finally {
    handle.close()
  }
}

/** Writes lines in batches. */
class LineWriter {
  readonly #handle: AppendHandle
  readonly #tooLong: LedgerSegment[] = []
  #state: LeftState
  #batch: Buffer[] = []
  #batchBytes = 0

  constructor(handle: AppendHandle, state: LeftState) {
    this.#handle = handle
    this.#state = state
  }

  async add(segment: LedgerSegment): Promise<void> {
    const line = lineOfLeft(segment, this.#state.head)
    if (line === null) {
      this.#tooLong.push(segment)
      return
    }
    this.#place(segment, line.head, line.bytes)
    if (this.#batchBytes >= BATCH_BYTES) await this.#flush()
  }

  /** Returns the state of the file. */
  async end(): Promise<Written> {
    await this.#flush()
    return { state: this.#state, tooLong: this.#tooLong }
  }

  #place({ last, offset, bytes }: LedgerSegment, head: Head, line: Buffer): void {
    const state = { file: this.#state.file, bytes: this.#state.bytes + line.length }
    this.#state = { ...state, head, last, end: offset + bytes }
    this.#batch.push(line)
    this.#batchBytes += line.length
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#batch)
    this.#batch = []
    this.#batchBytes = 0
    for (let at = 0; at < bytes.length; ) at += await appended(this.#handle, bytes.subarray(at))
  }
}

/** Returns the number of bytes that were written. */
function appended(handle: AppendHandle, bytes: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    handle.append(bytes, (fault, written) => (fault === null ? resolve(written) : reject(fault)))
  })
}
