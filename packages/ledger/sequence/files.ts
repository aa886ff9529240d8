import { readSync } from 'node:fs'
import { type FileHandle, open, readdir, readFile, rename, stat } from 'node:fs/promises'
import { type Files, isMissing } from '@plat/state'
import type { ReadAt } from '../lines.ts'

/** An open file that is only read. */
export interface SourceFile extends ReadAt {
  size(): number | Promise<number>
  close(): void | Promise<void>
}

/** The file operations of readers. */
export interface SourceFiles {
  /** Returns the names in a folder; none when it does not exist. */
  names(folder: string): Promise<readonly string[]>
  /** Returns the text of a file, or null when it does not exist. */
  text(path: string): Promise<string | null>
  /** Returns a value that changes with the content of a file, or null when it cannot be known. */
  version(path: string): Promise<string | null>
  /** Returns a value that changes when another file is under the name, or null when there is none. */
  identity(path: string): Promise<string | null>
  /** Returns null when the file does not exist. */
  open(path: string): Promise<SourceFile | null>
}

/** The system's files, read off the event loop. */
export const asyncFiles: SourceFiles = filesOf((file, target, position) =>
  file.read(target, 0, target.length, position).then(({ bytesRead }) => bytesRead),
)

/** For worker threads: they have nothing else to do, so a synchronous read is cheaper than an asynchronous one. */
export const blockingFiles: SourceFiles = filesOf(({ fd }, target, position) =>
  readSync(fd, target, 0, target.length, position),
)

type ReadFile = (file: FileHandle, target: Uint8Array, position: number) => number | Promise<number>

function filesOf(read: ReadFile): SourceFiles {
  return {
    names: (folder) => orNull(readdir(folder)).then((names) => names ?? []),
    text: (path) => orNull(readFile(path, 'utf8')),
    version: async (path) => {
      const found = await orNull(stat(path))
      return found === null ? null : `${found.dev}:${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`
    },
    identity: async (path) => {
      const found = await orNull(stat(path))
      return found === null ? null : `${found.dev}:${found.ino}`
    },
    async open(path) {
      const file = await orNull(open(path, 'r'))
      if (file === null) return null
      return {
        read: (target, position) => read(file, target, position),
        size: async () => (await file.stat()).size,
        close: () => file.close(),
      }
    },
  }
}

/** Files of a writer as files of a reader. No file is renamed meanwhile, so the path is the identity. */
export function sourceFilesOver(files: Files): SourceFiles {
  return {
    names: async (folder) => files.list(folder),
    async text(path) {
      const bytes = files.readWhole(path)
      return bytes === null ? null : Buffer.from(bytes).toString()
    },
    version: async () => null,
    identity: async (path) => (files.exists(path) ? path : null),
    open: async (path) => (files.exists(path) ? files.openRead(path) : null),
  }
}

const FILE_MODE = 0o600

/** Replaces a file atomically, off the event loop. The folder is not synced: after a power failure the old or the new text is there. */
export async function replaceText(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`
  {
    await using file = await open(temporary, 'w', FILE_MODE)
    await file.writeFile(text)
    await file.datasync()
  }
  await rename(temporary, path)
}

/** A new name survives a power failure only after its folder was synced. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

async function orNull<T>(value: Promise<T>): Promise<T | null> {
  try {
    return await value
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}
