import { open } from 'node:fs/promises'

/** The whole file. Rejects with the system's error, and when the file is larger than `maxBytes`. */
export async function readBounded(path: string, maxBytes: number): Promise<Buffer> {
  const bytes = await readUpTo(path, maxBytes + 1)
  if (bytes.length > maxBytes) throw new Error(`${path} is larger than ${maxBytes} bytes`)
  return bytes
}

/** The text of a file; null when it is missing, unreadable or larger than `maxBytes`. */
export async function readText(path: string, maxBytes: number): Promise<string | null> {
  try {
    return (await readBounded(path, maxBytes)).toString('utf8')
  } catch {
    return null
  }
}

/** The first `most` bytes of a file, or all of a shorter one. Rejects with the system's error. */
export async function readUpTo(path: string, most: number): Promise<Buffer> {
  await using file = await open(path, 'r')
  return Buffer.concat(await file.createReadStream({ end: most - 1, autoClose: false }).toArray())
}
