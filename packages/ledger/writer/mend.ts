import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import type { AppendHandle, Files } from '@plat/state'
import type { Followed } from '../chain.ts'
import type { Head } from '../format.ts'
import type { Rec } from '../types.ts'

/** Bytes copied at once. */
const COPY_BYTES = 1024 * 1024

export interface Mend {
  readonly path: string
  readonly handle: AppendHandle
  readonly files: Files
  readonly found: Followed
}

/** Returns the file for bytes removed from the ledger, named after the next record. */
export function asidePath(path: string, why: 'torn' | 'damaged', head: Head | null): string {
  return `${path}.${why}-${head === null ? 0 : head.seq + 1}`
}

/** Adds a missing LF to a complete last line; copies a torn one beside the ledger and cuts it off. */
export function mendTail({ path, handle, files, found }: Mend): void {
  if (found.tail.length === 0) return
  if (found.tailComplete) {
    handle.write(Buffer.from('\n'))
    return
  }
  const side = asidePath(path, 'torn', found.head)
  const aside = Buffer.from(files.readWhole(side) ?? [])
  // A crash may occur between the two steps, or while the record of it is written: then more bytes are appended to those kept before.
  if (!aside.subarray(Math.max(0, aside.length - found.tail.length)).equals(found.tail)) {
    files.replace(side, Buffer.concat([aside, found.tail]))
  }
  handle.truncate(found.offset)
}

/**
 * Copies everything from the first damage on into `<path>.damaged-<seq>`, durably, before it is cut off. Returns that file and its size. `beforeCut` is
 * called between the two.
 */
export async function moveDamaged(
  { path, handle, files, found }: Mend,
  beforeCut: () => Promise<void>,
): Promise<{ file: string; bytes: number }> {
  const from = found.damage?.offset ?? found.offset
  const file = asidePath(path, 'damaged', found.head)
  const side = files.openAppend(file)
  try {
    side.truncate(0)
    const bytes = await copy(handle, from, (chunk) => {
      if (side.write(chunk) !== chunk.length) throw new Error(`${file}: short write`)
    })
    await beforeCut()
    handle.truncate(from)
    return { file, bytes }
  } finally {
    side.close()
  }
}

/**
 * Returns the `recovered` records still missing for bytes set aside. The files are found by name, so a crash between copying and recording loses
 * nothing.
 */
export async function asideRecords(path: string, files: Files, head: Head | null): Promise<Rec[]> {
  const records: Rec[] = []
  for (const why of ['torn', 'damaged'] as const) {
    const side = asidePath(path, why, head)
    if (!files.exists(side)) continue
    const handle = files.openAppend(side)
    try {
      const digest = createHash('sha256')
      const bytes = await copy(handle, 0, (chunk) => digest.update(chunk))
      records.push({ kind: 'recovered', reason: why, bytes, sha256: digest.digest('hex'), file: basename(side) })
    } finally {
      handle.close()
    }
  }
  return records
}

/** Passes the bytes from `from` to the end to `take`; returns their number. */
async function copy(handle: AppendHandle, from: number, take: (chunk: Uint8Array) => void): Promise<number> {
  const buffer = Buffer.alloc(COPY_BYTES)
  for (let at = from; ; ) {
    const count = handle.read(buffer, at)
    if (count === 0) return at - from
    take(buffer.subarray(0, count))
    at += count
  }
}
