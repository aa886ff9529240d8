import { join } from 'node:path'
import type { StoredChunk } from '@plat/state'
import { ZERO_HASH } from '../format.ts'
import type { SourceFile, SourceFiles } from '../sequence/files.ts'
import { type LedgerSegment, readEntry, segmentPath, segmentsPath } from '../sequence/segment-entry.ts'
import { writeList } from '../sequence/segment-list.ts'
import { CopyDamagedError, openChunk } from './chunk.ts'
import { COPY_NAME, type CopyEnd } from './cutter.ts'

/** Where a copy is read from. */
export interface CopySource {
  readonly ledgerId: string
  /** Its end, as stated when it was opened. */
  readonly end: CopyEnd
  /** Entries of the sealed segments, as JSON. */
  segments(): Promise<readonly { readonly entry: string }[]>
  /** Returns chunks in order, the first with `position`: at least one, and no more than `bytes` of lines. Empty at the end. */
  chunks(position: number, bytes: number): Promise<readonly StoredChunk[]>
}

/** Returns the path under which `copyFiles` has the ledger. */
export function copyPath(ledgerId: string): string {
  return join('/copies', ledgerId, COPY_NAME)
}

/**
 * A copy as the files of a ledger, up to its end when it was opened. What is read was verified: the hash of every line, and that chunks read together
 * follow one another. Reading throws CopyDamagedError.
 */
export async function copyFiles(source: CopySource): Promise<SourceFiles> {
  const { ledgerId, end } = source
  const path = copyPath(ledgerId)
  const segments = await segmentsIn(source)
  const last = segments.at(-1)
  const spans = new Map([[path, { from: last === undefined ? 0 : last.offset + last.bytes, to: end.bytes }]])
  for (const { first, offset, bytes, left } of segments) {
    if (left === null) spans.set(segmentPath(path, first), { from: offset, to: offset + bytes })
  }
  const lines = new CopyLines(source)
  return {
    names: async () => segments.flatMap(({ file }) => (file === null ? [] : [file])),
    text: async (name) => (name === segmentsPath(path) && last !== undefined ? writeList(segments, null) : null),
    version: async () => null,
    identity: async (name) => (name === path ? ledgerId : null),
    async open(name) {
      const span = spans.get(name)
      return span === undefined ? null : fileOf(lines, span)
    },
  }
}

async function segmentsIn(source: CopySource): Promise<readonly LedgerSegment[]> {
  return (await source.segments()).map(({ entry }) => {
    const segment = readEntry(parsed(entry))
    if (segment === null || segment.offset === null)
      throw new CopyDamagedError('its list of sealed segments is malformed')
    return { ...segment, offset: segment.offset }
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function fileOf(lines: CopyLines, { from, to }: { readonly from: number; readonly to: number }): SourceFile {
  return {
    size: () => to - from,
    read: (target, position) => lines.read(target.subarray(0, Math.max(0, to - from - position)), from + position),
    close() {},
  }
}

interface OpenedChunk extends StoredChunk {
  readonly lines: Buffer
}

/** The lines of a copy by position. Keeps the chunks read last. */
export class CopyLines {
  readonly #source: CopySource
  #opened: readonly OpenedChunk[] = []

  constructor(source: CopySource) {
    this.#source = source
  }

  /** Reads from one chunk: returns fewer bytes than requested at its end. Throws CopyDamagedError when no chunk has the position. */
  async read(target: Uint8Array, position: number): Promise<number> {
    if (target.length === 0) return 0
    const chunk = this.#at(position) ?? (await this.#load(position, target.length))
    return chunk.lines.copy(target, 0, position - chunk.position)
  }

  #at(position: number): OpenedChunk | undefined {
    return this.#opened.find((one) => one.position <= position && position < one.position + one.bytes)
  }

  async #load(position: number, bytes: number): Promise<OpenedChunk> {
    const before = this.#opened.at(-1)
    const opened: OpenedChunk[] = []
    for (const chunk of await this.#source.chunks(position, bytes)) {
      this.#check(chunk, opened.at(-1) ?? before)
      opened.push({ ...chunk, lines: await openChunk(chunk) })
    }
    this.#opened = opened
    const found = this.#at(position)
    if (found === undefined) throw new CopyDamagedError(`the chunk at position ${position} is missing`)
    return found
  }

  #check(chunk: StoredChunk, before: StoredChunk | undefined): void {
    const { end } = this.#source
    const isNext = before !== undefined && before.last + 1 === chunk.first
    const prev = chunk.first === 0 ? ZERO_HASH : isNext ? before.hash : chunk.prev
    const position = isNext ? before.position + before.bytes : chunk.position
    const isOther = chunk.last === end.seq && chunk.hash !== end.hash
    if (chunk.prev === prev && chunk.position === position && !isOther) return
    throw new CopyDamagedError(`records ${chunk.first} to ${chunk.last} are not those that were copied`)
  }
}
