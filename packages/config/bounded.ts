import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

/** Suffix of gzip-compressed files (RFC 1952), after the name of the file. */
export const PACKED_SUFFIX = '.gz'

const decompress = promisify(gunzip)

/** Decompresses gzip. Rejects when it is damaged, or would exceed `maxBytes`. */
export async function unpack(bytes: Uint8Array, maxBytes: number): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    const isOver = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    throw new Error(isOver ? `it has more than ${maxBytes} bytes` : 'it is not valid gzip', { cause: error })
  }
}

/** Reads the whole file. Rejects with the system's error, and when the file exceeds `maxBytes`. */
export async function readBounded(path: string, maxBytes: number): Promise<Buffer> {
  const bytes = await readUpTo(path, maxBytes + 1)
  if (bytes.length > maxBytes) throw new Error(`${path} is larger than ${maxBytes} bytes`)
  return bytes
}

/** Returns the text of a file; null when it is missing, unreadable or larger than `maxBytes`. */
export async function readText(path: string, maxBytes: number): Promise<string | null> {
  try {
    return (await readBounded(path, maxBytes)).toString('utf8')
  } catch {
    return null
  }
}

/** Returns the first `most` bytes of a file, or all of a shorter one. Rejects with the system's error. */
export async function readUpTo(path: string, most: number): Promise<Buffer> {
  await using file = await open(path, 'r')
  return Buffer.concat(await file.createReadStream({ end: most - 1, autoClose: false }).toArray())
}

/** Maximum size of a token or CA bundle in bytes. */
const MAX_TOKEN_BYTES = 16 * 1024
const MAX_CA_BYTES = 1024 * 1024

/** Files of a peer named in the configuration; an empty path: none. */
export interface PeerFiles {
  readonly tokenFile: string
  readonly caFile: string
}

/**
 * Reads the bearer token for a peer and the CA bundle that it is verified with, for each request, since their files may be replaced. Rejects when a
 * file cannot be read; `at` is its place in the configuration, such as `offline.forward`.
 */
export async function peerFiles(
  { tokenFile, caFile }: PeerFiles,
  at: string,
): Promise<{ readonly headers: Record<string, string>; readonly trust: { caPEM?: string } }> {
  const headers: Record<string, string> = {}
  const trust: { caPEM?: string } = {}
  if (tokenFile !== '') {
    const token = (await readText(tokenFile, MAX_TOKEN_BYTES))?.trim() ?? ''
    if (token === '') throw new Error(`${at}.tokenFile ${tokenFile} cannot be read, or is empty`)
    headers.authorization = `Bearer ${token}`
  }
  if (caFile !== '') {
    const caPEM = await readText(caFile, MAX_CA_BYTES)
    if (caPEM === null) throw new Error(`${at}.caFile ${caFile} cannot be read`)
    trust.caPEM = caPEM
  }
  return { headers, trust }
}

/** `Name: value` (RFC 9110, section 5). */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)[\t ]*$/
/** Headers set by the client itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])

/**
 * Parses the headers in the lines of a file, names in lower case; empty lines are ignored. Returns the number of the first line that is not `Name:
 * value`, or names a header set by the client.
 */
export function headerLines(text: string): Readonly<Record<string, string>> | number {
  const headers: Record<string, string> = {}
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const [, name = '', value = ''] = HEADER.exec(line) ?? []
    const header = name.toLowerCase()
    if (header === '' || OWN_HEADERS.has(header)) return index + 1
    headers[header] = value
  }
  return headers
}
