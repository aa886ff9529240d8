/** Explanation and next step for a file that cannot be opened or written, by the system's error code. */
const NEXT_STEPS: Readonly<Record<string, readonly [what: string, step: string]>> = {
  ENOSPC: ['the disk is full', 'free some space, then start again'],
  EDQUOT: ['the disk quota is used up', 'free some space or raise the quota, then start again'],
  EROFS: ['the file system is read-only', 'mount it writable, or name another directory'],
  EACCES: ['permission denied', 'give this user the right to write there, or name another directory'],
  EPERM: ['operation not permitted', 'give this user the right to write there, or name another directory'],
  EIO: ['the disk reports an I/O error', 'look into the kernel log, and put the files on a disk that works'],
  EMFILE: ['too many open files', 'raise the limit of open files (ulimit -n), then start again'],
  CANTOPEN: [
    'the file cannot be opened or made',
    'check that its folder can be written and that the disk is not full, then start again',
  ],
  ENFILE: ['too many open files on this machine', 'raise fs.file-max, then start again'],
}

/** Primary result codes of SQLite (which implements the locks) for the same causes. */
const SQLITE_CODES: Readonly<Record<number, string>> = { 8: 'EROFS', 10: 'EIO', 13: 'ENOSPC', 14: 'CANTOPEN' }

/**
 * Returns the one line for an error that prevents the start, without a stack: a problem of the environment, or a refusal. Returns null for other
 * errors, which are bugs and need their stack.
 */
export function startErrorLine(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  return storageErrorLine(error) ?? (isBug(error) ? null : error.message.split('\n', 1)[0] || error.name)
}

/** Returns the problem of a file and the next step; null when it is not a file system error. `path` is used when the error names none. */
export function storageErrorLine(error: Error, path = ''): string | null {
  const code = storageCode(error)
  const known = NEXT_STEPS[code]
  if (known === undefined) return null
  const place = 'path' in error && typeof error.path === 'string' ? error.path : path
  const [what, step] = known
  return `${place === '' ? '' : `${place}: `}${what} (${code}); ${step}`
}

function storageCode(error: Error): string {
  if ('errcode' in error && typeof error.errcode === 'number') {
    return SQLITE_CODES[error.errcode & 0xff] ?? ''
  }
  const isOfFiles = 'code' in error && 'syscall' in error && typeof error.code === 'string'
  return isOfFiles && !NETWORK_CALLS.has(String(error.syscall)) ? String(error.code) : ''
}

/** For these system calls EACCES and EPERM are about ports and addresses. */
const NETWORK_CALLS: ReadonlySet<string> = new Set(['listen', 'bind', 'connect'])

function isBug(error: Error): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind)
}
