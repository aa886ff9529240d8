import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Archive, eachPart, PART_BYTES } from './archive.ts'

/** Records describe what agents did: only the owner may read them. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/** A folder, such as a mounted volume. A copy appears under its name when it is complete and durable. */
export function fileArchive(folder: string): Archive {
  return {
    async put(path, name) {
      const target = join(folder, name)
      await mkdir(dirname(target), { recursive: true, mode: FOLDER_MODE })
      await refuseSameFolder(path, dirname(target))
      const temporary = `${target}.tmp`
      try {
        const digest = await copy(path, temporary)
        const copied = await eachPart(temporary, PART_BYTES, async () => {})
        if (copied !== digest) throw new Error(`${target}: the copy reads back differently`)
        await rename(temporary, target)
      } catch (error) {
        await rm(temporary, { force: true }).catch(() => {})
        throw error
      }
      await syncFolder(dirname(target))
      return target
    },
  }
}

/** Copies durably; returns the SHA-256. */
async function copy(from: string, to: string): Promise<string> {
  // Replaces the file of a crash; a link is not followed.
  await rm(to, { force: true })
  await using file = await open(to, 'wx', FILE_MODE)
  const digest = await eachPart(from, PART_BYTES, (part) => file.writeFile(part))
  await file.sync()
  return digest
}

/** Otherwise the copy would have the name of the segment itself, which is then removed. */
async function refuseSameFolder(path: string, folder: string): Promise<void> {
  const [a, b] = await Promise.all([stat(dirname(path)), stat(folder)])
  if (a.dev === b.dev && a.ino === b.ino) throw new Error(`${folder} is the folder of the ledger: archive elsewhere`)
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}
