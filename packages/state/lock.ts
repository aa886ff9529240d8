import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** SQLite's code for a lock that somebody else holds (`SQLITE_BUSY`). */
const SQLITE_BUSY = 5

/** Another process has the lock. */
export class LockedError extends Error {}

/**
 * Takes `<path>.lock` for this process; the answer gives it back. The kernel holds the lock, so it dies with the process, whatever
 * kills it, and no stale file can shut a successor out. Node has no `flock`; SQLite's exclusive transaction is one.
 * Throws `LockedError`, naming the path, when another process or another part of this one has it.
 */
export function lockPath(path: string): () => void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  return lockFile(`${path}.lock`, path)
}

/** The same with the name of the lock's own file, in a folder that exists; `path` is what `LockedError` names. */
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
