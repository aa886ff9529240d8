import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { CommandError } from '../../shared/output.ts'

/** Longest path of a Unix socket that every system accepts, in bytes. */
const SOCKET_PATH_MAX_BYTES = 100

const PRIVATE_MODE = 0o700
const OTHERS_MODE = 0o077

/** Returns the path of the bridge's socket: `wanted`, or a short one in the folder for temporary files if `wanted` is too long. */
export function usableSocketPath(wanted: string): string {
  if (Buffer.byteLength(wanted) <= SOCKET_PATH_MAX_BYTES) return wanted
  const name = createHash('sha256').update(wanted).digest('hex').slice(0, 16)
  return join(tmpdir(), `plat-${process.getuid?.() ?? 0}-${name}`, 'stdio.sock')
}

/**
 * Creates the folder of a socket, closed to other users.
 * @throws CommandError if it exists and is another user's, or open to others.
 */
export function makeSocketFolder(socket: string): void {
  const folder = dirname(socket)
  mkdirSync(folder, { recursive: true, mode: PRIVATE_MODE })
  const stats = lstatSync(folder)
  const isOwn = stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & OTHERS_MODE) === 0
  if (!isOwn)
    throw new CommandError(`${folder} is not a private folder of yours; remove it, or use a shorter path for plat up`)
}
