import { once } from 'node:events'
import { open, rename, rm } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { reasonOf } from '@plat/core'
import { CommandError } from '../../shared/output.ts'

/** Destination of an export. */
export interface Target {
  write(bytes: Uint8Array): Promise<void>
}

/** Calls `use` with a stream that is not read further than it accepts. */
export async function toStream<T>(stream: Writable, use: (target: Target) => Promise<T>): Promise<T> {
  return await use({
    async write(bytes) {
      if (bytes.length > 0 && !stream.write(bytes)) await once(stream, 'drain')
    },
  })
}

/** Calls `use` with a new file, which gets its name when all of it is on disk: an export that fails leaves a file of this name as it was. */
export async function toFile<T>(path: string, use: (target: Target) => Promise<T>): Promise<T> {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    let result: T
    {
      await using file = await open(temporary, 'wx', 0o600)
      result = await use({ write: async (bytes) => void (bytes.length > 0 && (await file.writeFile(bytes))) })
      await file.sync()
    }
    await rename(temporary, path)
    return result
  } catch (error) {
    await rm(temporary, { force: true })
    if (error instanceof Error && 'syscall' in error)
      throw new CommandError(`${path} cannot be written: ${reasonOf(error)}`)
    throw error
  }
}
