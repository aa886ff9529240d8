import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'

/** A place for copies of sealed segments. */
export interface Archive {
  /** Stores a copy of the file under this name, reads it back and compares it. Resolves with where it is. */
  put(path: string, name: string): Promise<string>
}

/** Bytes read at once: the smallest part of an upload to S3, which limits what the event loop hashes in one piece. */
export const PART_BYTES = 5 * 1024 * 1024

/** Calls `work` with each part of a file in order, and returns the SHA-256 of all. */
export async function eachPart(
  path: string,
  partBytes: number,
  work: (part: Buffer, index: number) => Promise<void>,
): Promise<string> {
  await using file = await open(path, 'r')
  const digest = createHash('sha256')
  for (let index = 0; ; index++) {
    const part = await partOf(file, partBytes, index * partBytes)
    if (part.length === 0) return digest.digest('hex')
    digest.update(part)
    await work(part, index)
    if (part.length < partBytes) return digest.digest('hex')
  }
}

async function partOf(file: FileHandle, length: number, position: number): Promise<Buffer> {
  const part = Buffer.allocUnsafe(length)
  for (let got = 0; ; ) {
    const { bytesRead } = await file.read(part, got, length - got, position + got)
    got += bytesRead
    if (bytesRead === 0 || got === length) return part.subarray(0, got)
  }
}
