import type { Files } from '@plat/state'
import { asyncFiles, sourceFilesOver } from '../../sequence/files.ts'
import { type GrowTree, growInThread, growTree } from '../../sequence/grow.ts'
import { SMALL_FILE_BYTES } from './sealer.ts'

/** Returns what hashes the active file: a small one in slices on this thread, since starting another one costs more. `files`: null for the system's. */
export function growFile(files: Files | null): GrowTree {
  const source = files === null ? asyncFiles : sourceFilesOver(files)
  return async (growth) => {
    const file = await source.open(growth.path)
    if (file === null) throw new Error(`${growth.path} does not exist`)
    try {
      // The thread reads files of the system only.
      if (files !== null || (await file.size()) <= SMALL_FILE_BYTES) return await growTree(file, growth)
    } finally {
      await file.close()
    }
    return await growInThread(growth)
  }
}
