import { createSecretKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isObject, reasonOf } from '@plat/core'
import { type PublicKey, readPublicKeys } from '@plat/keys'
import { type Followed, followChain } from './chain.ts'
import { type Head, type RawLine, readRawLine } from './format.ts'
import { type ReadAt, scanLines } from './lines.ts'
import { type Checkpoint, readCheckpointText } from './proof/checkpoint.ts'
import { judgeCheckpoint, type Trust } from './proof/trust.ts'
import { SegmentListError } from './sequence/segment-list.ts'
import { ArchivedError, LedgerSequence } from './sequence/sequence.ts'
import type { Claim } from './verify/claim-table.ts'
import { type Finding, Pass, parsed, VerifyUsageError } from './verify-pass.ts'
import { NOTHING_BESIDE, readBeside } from './writer/beside.ts'

export interface VerifyOptions {
  /** PEM, JWK or JWK set of public keys that sign checkpoints. With an ML-DSA key among them, only hybrid checkpoints prove. */
  readonly key?: string
  /** The key of HMAC checkpoints. */
  readonly hmacKey?: KeyObject | null
  /** File of checkpoints kept elsewhere: the records they cover must exist. */
  readonly checkpoint?: string
  /** PEM, JWK or JWK set of public keys of the transparency log in which checkpoints are anchored. */
  readonly logKey?: string
  /** Parses every line, and also checks canonical form and tree. */
  readonly strict?: boolean
  /**
   * Also uses the head, checkpoints and public keys beside the ledger, each unless the corresponding option is given. Then records after the last
   * signature are not a finding: the ledger may be in use.
   */
  readonly beside?: boolean
  /** Called periodically with the bytes read and the total bytes. */
  onProgress?(done: number, total: number): void
}

/** Bytes in every line that may be a checkpoint or an anchor. */
const MARKS = ['checkpoint', 'anchor'].map((kind) => Buffer.from(`"kind":"${kind}"`))

/**
 * Verifies a ledger: its sealed segments and its active file, or the given files in order, each of which continues the previous one or begins with
 * its last line. The first pass collects checkpoints, the second verifies the chain over raw bytes and compares each checkpoint. Never throws because
 * of ledger content; throws VerifyUsageError when a file cannot be read.
 */
export async function verifyLedger(path: string | readonly string[], options: VerifyOptions = {}): Promise<Finding> {
  const paths = typeof path === 'string' ? [path] : path
  const beside = options.beside === true ? await readBeside(paths.at(-1) ?? '', options) : NOTHING_BESIDE
  const trust = await readTrust({ ...options, ...beside.key })
  const given = options.checkpoint === undefined ? [] : await readKept(options.checkpoint, trust)
  const claims = [...given, ...beside.claims(trust)]
  const logKeys = options.logKey === undefined ? null : await readKeys(options.logKey)
  const pass = new Pass({ trust, logKeys, claims, strict: options.strict === true, mayGrow: beside.key !== null })
  await using opened = new AsyncDisposableStack()
  try {
    const files = await filesOf(paths, opened)
    const progress = await progressOver(files, options)
    for (const { source } of files) await collect(source, pass)
    for (const file of files) {
      const followed = await follow(file, pass, progress)
      if (followed.damage !== null) return pass.damaged(file.path, followed.damage)
      const last = file === files.at(-1)
      if (followed.tail.length > 0 && !followed.tailComplete) return pass.torn(file.path, followed, last)
    }
    return pass.finish()
  } catch (error) {
    const isUsage = error instanceof ArchivedError || error instanceof SegmentListError
    throw isUsage ? new VerifyUsageError(error.message) : error
  }
}

/** One file under verification. */
interface LedgerFile {
  readonly path: string
  /** It is the first file of a given path, and not a part of the same ledger as the one before. */
  readonly isGiven: boolean
  readonly source: ReadAt
  size(): Promise<number>
}

/** Returns the files of one ledger, or those of all given ones in order. */
async function filesOf(paths: readonly string[], opened: AsyncDisposableStack): Promise<readonly LedgerFile[]> {
  const files: LedgerFile[] = []
  for (const path of paths) {
    const sequence = opened.use(
      await LedgerSequence.open(path).catch((error) => {
        if (error instanceof SegmentListError) throw error
        throw new VerifyUsageError(`${path} cannot be read (${codeOf(error)})`)
      }),
    )
    for (const part of sequence.parts) {
      const size = async () => part.segment?.bytes ?? (await sequence.size()) - part.offset
      files.push({ path: part.path, isGiven: part.offset === 0, source: sequence.sourceOf(part), size })
    }
  }
  return files
}

/** First pass: finds records of checkpoints and anchors by their mark, regardless of other damage. */
async function collect(source: ReadAt, pass: Pass): Promise<void> {
  await scanLines(source, {
    onLine(buffer, start, end) {
      const line = buffer.subarray(start, end)
      if (!MARKS.some((mark) => line.includes(mark))) return true
      const value = parsed(line)
      if (isObject(value) && isObject(value.rec) && typeof value.seq === 'number') pass.collect(value.seq, value.rec)
      return true
    },
  })
}

/** Second pass over one file. A first line that repeats the last one of the previous file is not counted. */
async function follow(file: LedgerFile, pass: Pass, onProgress: (bytes: number) => void): Promise<Followed> {
  const { source } = file
  const head = pass.chain.head
  const from = head === null || !file.isGiven ? 0 : await repeatedBytes(file, head)
  const onRecord = (buffer: Buffer, start: number, line: RawLine) => pass.see(buffer, start, line)
  return await followChain({ source, chain: pass.chain, from, onRecord, onProgress })
}

/** Returns the length of the first line when it repeats record `head`, and 0 when it follows it. */
async function repeatedBytes({ path, source }: LedgerFile, head: Head): Promise<number> {
  let length: number | null = null
  await scanLines(source, {
    onLine(buffer, start, end) {
      const line = readRawLine(buffer, start, end)
      if (typeof line === 'string') return false
      if (line.hash === head.hash) length = end - start + 1
      else if (line.prev === head.hash) length = 0
      return false
    },
  })
  if (length === null) throw new VerifyUsageError(`${path} does not continue the file before it (record ${head.seq})`)
  return length
}

/** Returns the key of HMAC checkpoints from the text of a secret. */
export function hmacKeyOf(secret: string | null): KeyObject | null {
  return secret === null ? null : createSecretKey(Buffer.from(secret))
}

/** Reads the keys for checkpoints; null when neither key was given. Throws VerifyUsageError when a file is unusable. */
export async function readTrust({
  key,
  hmacKey = null,
}: Pick<VerifyOptions, 'key' | 'hmacKey'>): Promise<Trust | null> {
  if (key === undefined) return hmacKey === null ? null : { keys: [], hmacKey }
  return { keys: await readKeys(key), hmacKey }
}

/** PEM, JWK or JWK set. Throws `VerifyUsageError`. */
export async function readKeys(path: string): Promise<readonly PublicKey[]> {
  try {
    return readPublicKeys(await readText(path), path)
  } catch (error) {
    throw new VerifyUsageError(reasonOf(error))
  }
}

async function readKept(path: string, trust: Trust | null): Promise<readonly Claim[]> {
  const text = await readText(path)
  // A copied checkpoints file consists of ledger lines; any other file is one checkpoint.
  const pieces = text.startsWith('{') ? text.trim().split('\n') : [text]
  return pieces.map((piece) => claimOf(readCheckpointText(piece), path, trust))
}

function claimOf(checkpoint: Checkpoint | string, path: string, trust: Trust | null): Claim {
  if (typeof checkpoint === 'string') throw new VerifyUsageError(`${path} holds no checkpoint: ${checkpoint}`)
  const signed = trust !== null && judgeCheckpoint(checkpoint, trust)
  if (trust !== null && signed !== true) throw new VerifyUsageError(`${path} is not signed by the given key`)
  const { ledgerId, size, head, root } = checkpoint
  return { ledgerId, size, head, root, seq: null, signed: signed === true, isAnchor: false, source: null }
}

async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error) => {
    throw new VerifyUsageError(`${path} cannot be read (${codeOf(error)})`)
  })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}

async function progressOver(files: readonly LedgerFile[], options: VerifyOptions): Promise<(bytes: number) => void> {
  const { onProgress } = options
  if (onProgress === undefined) return () => {}
  let total = 0
  for (const { size } of files) total += await size()
  let before = 0
  let last = 0
  return (bytes) => {
    // A smaller value than before: the next file has begun.
    if (bytes < last) before += last
    last = bytes
    onProgress(before + bytes, total)
  }
}
