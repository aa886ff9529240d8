import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** SQLite's code for a lock held by another connection (`SQLITE_BUSY`). */
const SQLITE_BUSY = 5

/** Another process has the lock. */
export class LockedError extends Error {}

/**
 * Locks `<path>.lock` for this process; returns a function that releases it. The kernel holds the lock, so it ends with the process in any case, and
 * no stale file can block a successor. Node has no `flock`; SQLite's exclusive transaction serves instead. Throws LockedError, naming the path, when
 * another process or another part of this one holds it.
 */
export function lockPath(path: string): () => void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  return lockFile(`${path}.lock`, path)
}

/** Like `lockPath` with the path of the lock file, in an existing folder; LockedError names `path`. */
export function lockFile(file: string, path: string): () => void {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) {
      throw new LockedError(`${path} is in use by another process (it holds ${file})`)
    }
    throw error
  }
  return () => database.close()
}
