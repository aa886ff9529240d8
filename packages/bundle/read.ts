import { hash } from 'node:crypto'
import { createGunzip } from 'node:zlib'
import { Slices } from '@plat/core'
import { isFault, type Jws, parseJws } from '@plat/tokens'
import { type BundleStatement, decodeStatement, digestInSlices, TYPE } from './statement.ts'
import { type Entry, readTar } from './tar.ts'

/** The first file of an archive: signatures over the statement, one compact JWS a line. */
export const SIGNATURES = 'bundle.jws'
/** Files of a bundle, the signatures not counted. */
export const MAX_FILES = 256
/** Signatures of a bundle: two kinds of two keys each while keys change, and as many again. */
const MAX_SIGNATURES = 8
/** Largest file of signatures, in bytes: eight of the largest kind are smaller. */
const MAX_SIGNATURES_BYTES = 64 * 1024

/** A parsed bundle. Untrusted before `isSigned`. */
export interface Bundle {
  readonly statement: BundleStatement
  /** SHA-256 of the signed statement, as hex: equal for equal content, with any signers. */
  readonly id: string
  readonly signatures: readonly Jws[]
  /** The files covered by the statement; each is a view of the unpacked archive. */
  readonly files: readonly Entry[]
}

/** Why bytes are not a bundle. `incomplete`: the archive is truncated, or still being copied. `digest`: the files do not match the statement. */
export interface BundleFault {
  readonly kind: 'fault'
  readonly reason: 'incomplete' | 'malformed' | 'size' | 'digest'
  readonly message: string
}

/** Unpacks a bundle in memory: neither it nor its content may exceed `maxBytes`. */
export async function readBundle(bytes: Uint8Array, maxBytes: number): Promise<Bundle | BundleFault> {
  if (bytes.length > maxBytes) return fault('size', `the bundle has more than ${maxBytes} bytes`)
  const archive = await unpacked(bytes, maxBytes)
  if (!Buffer.isBuffer(archive)) return archive
  const entries = readTar(archive, MAX_FILES + 1)
  if (typeof entries === 'string') return fault('malformed', entries)
  const [first, ...files] = entries
  if (first?.name !== SIGNATURES) return fault('malformed', `the first file of the archive is not ${SIGNATURES}`)
  const signatures = readSignatures(first.bytes)
  if (typeof signatures === 'string') return fault('malformed', signatures)
  const { payload, input } = signatures[0]
  const statement = decodeStatement(payload)
  if (isFault(statement)) return fault('malformed', `${SIGNATURES}: ${statement.message}`)
  if (statement.digest !== (await digestInSlices(files)))
    return fault('digest', 'the files are not those that were signed')
  return { statement, id: hash('sha256', payloadOf(input)), signatures, files }
}

/** Smallest number of bytes unpacked at once. */
const PIECE_BYTES = 1024 * 1024

async function unpacked(bytes: Uint8Array, maxBytes: number): Promise<Buffer | BundleFault> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    const unpacking = createGunzip({ chunkSize: pieceSize(bytes, maxBytes) })
    unpacking.end(bytes)
    for await (const piece of unpacking) {
      if (!Buffer.isBuffer(piece)) throw new TypeError('no bytes')
      size += piece.length
      if (size > maxBytes) return fault('size', `the bundle unpacks to more than ${maxBytes} bytes`)
      pieces.push(piece)
    }
  } catch (error) {
    const isCut = error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR'
    return isCut
      ? fault('incomplete', 'the archive ends before it is complete')
      : fault('malformed', 'the bundle is not a gzip archive')
  }
  return joined(pieces, size)
}

/**
 * Returns a size in which an honest archive becomes one piece, written by a thread of zlib: its last four bytes are the size of its content
 * (RFC 1952, section 2.3.1). One more byte shows that nothing follows.
 */
function pieceSize(bytes: Uint8Array, maxBytes: number): number {
  const stated = bytes.length < 4 ? 0 : Buffer.from(bytes.subarray(-4)).readUInt32LE()
  return Math.max(PIECE_BYTES, Math.min(stated, maxBytes) + 1)
}

/** Returns the only piece as it is. Copies several, of an archive that states a wrong size, in slices. */
async function joined(pieces: readonly Buffer[], size: number): Promise<Buffer> {
  const [only] = pieces
  if (only?.length === size) return only
  const whole = Buffer.allocUnsafeSlow(size)
  const slices = new Slices()
  let at = 0
  for (const piece of pieces) {
    if (slices.isOver) await slices.next()
    at += piece.copy(whole, at)
  }
  return whole
}

type Signatures = readonly [Jws, ...(readonly Jws[])]

/** Parses the signatures, which must all cover one statement. */
export function readSignatures(bytes: Uint8Array): Signatures | string {
  if (bytes.length > MAX_SIGNATURES_BYTES) return `${SIGNATURES} is larger than ${MAX_SIGNATURES_BYTES} bytes`
  const lines = Buffer.from(bytes).toString('latin1').replace(/\n$/, '').split('\n')
  if (lines.length > MAX_SIGNATURES) return `${SIGNATURES} has more than ${MAX_SIGNATURES} signatures`
  const read: Jws[] = []
  for (const line of lines) {
    const jws = parseJws(line)
    if (isFault(jws) || jws.header.typ !== TYPE) return `${SIGNATURES} has a line that is not a JWS of type ${TYPE}`
    read.push(jws)
  }
  const [first, ...more] = read
  if (first === undefined) return `${SIGNATURES} is empty`
  const stated = payloadOf(first.input)
  if (more.some(({ input }) => payloadOf(input) !== stated)) return `${SIGNATURES} signs more than one statement`
  return [first, ...more]
}

/** Returns the signed statement in base64url: the header before it differs with each key. */
function payloadOf(input: Uint8Array): string {
  const text = Buffer.from(input).toString('latin1')
  return text.slice(text.indexOf('.') + 1)
}

function fault(reason: BundleFault['reason'], message: string): BundleFault {
  return { kind: 'fault', reason, message }
}
