import { type AppendHandle, type Files, type ReadHandle, readAll } from '@plat/state'
import { type Head, MAX_LINE_BYTES, readRawLine } from '../../format.ts'
import { segmentPath } from '../../sequence/segment-entry.ts'

/** A file that ends with its `segment` record, and has to get the name of a sealed segment. */
export interface SealedFile {
  readonly path: string
  readonly files: Files
  /** `seq` of its first record. */
  readonly first: number
  /** Size up to the end of the `segment` record. */
  readonly bytes: number
  /** The `segment` record. */
  readonly head: Head
  /** An earlier attempt or write failed: the file may end with bytes that are not on disk. */
  readonly isRetry: boolean
}

/**
 * Renames the active file and returns the handle of the next one, which is empty. The order is: the `segment` record is durable, the file has its new
 * name, the folder is synced, the next file is created, the folder is synced. So after a crash each record has exactly one place. May be called again
 * after it threw, and then completes what was begun. Never replaces a file.
 */
export function sealFile(sealed: SealedFile): AppendHandle {
  const { path, files, first, bytes, head } = sealed
  const to = segmentPath(path, first)
  if (files.exists(path) && isActive(sealed)) {
    if (files.exists(to)) throw new Error(`${to} exists already: move it away, so that a segment can be sealed there`)
    files.rename(path, to)
  } else if (!isSealed(files, to, bytes, head)) {
    throw new Error(`neither ${path} nor ${to} ends with record ${head.seq}, which was acknowledged`)
  }
  const handle = files.openAppend(path)
  try {
    if (handle.size() > 0)
      throw new Error(`${path} is not empty after its segment was sealed: another process wrote it`)
    return handle
  } catch (error) {
    handle.close()
    throw error
  }
}

/** Returns whether the active file still is the one to seal. */
function isActive({ path, files, bytes, head, isRetry }: SealedFile): boolean {
  if (!isRetry) {
    const file = files.openRead(path)
    try {
      return file.size() === bytes && endsWith(file, bytes, head)
    } finally {
      file.close()
    }
  }
  // Brings the end of the file to disk once more.
  const handle = files.openAppend(path)
  try {
    if (handle.size() < bytes || !endsWith(handle, bytes, head)) return false
    if (handle.size() > bytes) handle.truncate(bytes)
    return true
  } finally {
    handle.close()
  }
}

/** Opening syncs the folder: the new name is durable before another file gets the old one. */
function isSealed(files: Files, path: string, bytes: number, head: Head): boolean {
  if (!files.exists(path)) return false
  const handle = files.openAppend(path)
  try {
    return handle.size() === bytes && endsWith(handle, bytes, head)
  } finally {
    handle.close()
  }
}

/** Returns whether the first `size` bytes of a file end with the line of record `head`. */
export function endsWith(handle: ReadHandle, size: number, head: Head): boolean {
  const span = Math.min(size, MAX_LINE_BYTES + 2)
  const bytes = readAll(handle, size, size - span)
  const start = bytes.lastIndexOf(0x0a, span - 2) + 1
  const line = readRawLine(bytes, start, span - 1)
  return typeof line !== 'string' && line.hash === head.hash
}
