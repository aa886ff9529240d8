import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

const FILE_MODE = 0o600

/** Writes a file atomically; durable when it resolves. Asynchronous, so that calls are served meanwhile. */
export async function putDurably(path: string, bytes: Uint8Array | string): Promise<void> {
  const temporary = `${path}.tmp`
  {
    await using file = await open(temporary, 'w', FILE_MODE)
    await file.writeFile(bytes)
    await file.sync()
  }
  await rename(temporary, path)
  await using folder = await open(dirname(path), 'r')
  await folder.sync()
}
