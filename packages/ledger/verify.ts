import { createSecretKey, type KeyObject } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import { type PublicKey, readPublicKeys } from '@plat/keys'
import { readerOf } from './find.ts'
import { scanLines } from './lines.ts'
import { type Checkpoint, readCheckpointText } from './proof/checkpoint.ts'
import { judgeCheckpoint, type Trust } from './proof/trust.ts'
import { SegmentDamagedError, SegmentListError } from './sequence/segment-list-error.ts'
import { ArchivedError, LedgerSequence } from './sequence/sequence.ts'
import type { Claim } from './verify/claim-table.ts'
import { type Finding, VerifyUsageError } from './verify/finding.ts'
import { CheckpointReader } from './verify/gap.ts'
import { KEPT, TooManyClaimsError } from './verify/part.ts'
import { PartsVerifier, type VerifiedPart } from './verify/parts.ts'
import { type PlannedPart, planParts } from './verify/plan.ts'
import {
  addArchived,
  addClaims,
  addResult,
  brokenFinding,
  type Judging,
  noTotals,
  tornFinding,
  unreadableFinding,
  wholeFinding,
} from './verify/report.ts'
import { type KeyText, keysOf } from './verify/runner.ts'
import { NOTHING_BESIDE, readBeside } from './writer/beside.ts'

export interface VerifyOptions {
  /** PEM, JWK or JWK set of public keys that sign checkpoints. With an ML-DSA key among them, only hybrid checkpoints prove. */
  readonly key?: string
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
  /** Number of threads; 0: none beside that of the caller. Default: one for each core and file, unless the ledger is small. */
  readonly threads?: number
  /** Called periodically with the bytes verified and the total bytes. */
  onProgress?(done: number, total: number): void
}

/**
 * Verifies a ledger: its sealed segments and its active file, each on its own from the `segment` record before it on, then the seams between them. The
 * finding is that of one pass over all lines. Segments that left are verified by their entry in the segment list. Never throws because of ledger
 * content; throws VerifyUsageError when a file cannot be read.
 */
export async function verifyLedger(path: string, options: VerifyOptions = {}): Promise<Finding> {
  const { strict = false, hmacKey = null, threads } = options
  const beside = options.beside === true ? await readBeside(path, options) : NOTHING_BESIDE
  const [key, logKey] = await Promise.all([readKeyText(options.key ?? beside.key?.key), readKeyText(options.logKey)])
  const job = { ledgerPath: path, strict, key, logKey, hmacKey }
  const { trust } = keysOf(job)
  const external = await openKept(options.checkpoint, trust)
  const claims = beside.claims(trust)
  try {
    const parts = await planned(path, strict || external.isNote)
    const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
    const onProgress = (bytes: number) => options.onProgress?.(bytes, total)
    const verifier = new PartsVerifier({ job, parts, onProgress, ...(threads !== undefined && { threads }) })
    let largest = { size: 0, source: KEPT }
    const add = (claim: Claim): void => {
      if (claim.size > largest.size) largest = { size: claim.size, source: claim.source ?? KEPT }
      verifier.add(claim)
    }
    await external.read(add)
    for (const claim of claims) add(claim)
    await addLeftClaims(path, parts, trust, add)
    const judging = { totals: noTotals(), hasKey: trust !== null, mayGrow: beside.key !== null, largest }
    return judge(await verifier.run(), judging)
  } catch (error) {
    if (error instanceof SegmentDamagedError) return unreadableFinding(error)
    throw USAGE_ERRORS.some((type) => error instanceof type) ? new VerifyUsageError(reasonOf(error)) : error
  }
}

const USAGE_ERRORS = [ArchivedError, SegmentListError, TooManyClaimsError]

async function planned(path: string, needsTree: boolean): Promise<readonly PlannedPart[]> {
  return await planParts(path, needsTree).catch((error: unknown) => {
    if (error instanceof SegmentListError) throw error
    return unreadable(path, error)
  })
}

/** Adds the claims of the checkpoints that are named for segments that left, about records after the adjacent ones. */
async function addLeftClaims(
  path: string,
  parts: readonly PlannedPart[],
  trust: Trust | null,
  add: (claim: Claim) => void,
): Promise<void> {
  if (parts.every(({ leftUpTo }) => leftUpTo === null)) return
  await using sequence = await LedgerSequence.open(path)
  const checkpoints = new CheckpointReader(trust)
  for (const { first, leftUpTo } of parts) {
    if (leftUpTo === null) continue
    let before: string | null = null
    for await (const segment of sequence.segmentsOf(first, leftUpTo)) {
      const claim = segment.checkpoint === before ? null : checkpoints.of(segment)
      before = segment.checkpoint
      if (claim !== null && typeof claim !== 'string' && claim.size > leftUpTo + 1) add(claim)
    }
  }
}

/** Returns the first problem in the order of records, as one pass would. */
function judge(verified: readonly VerifiedPart[], judging: Judging): Finding {
  const { totals } = judging
  for (const { claims } of verified) addClaims(totals, claims)
  for (const { archived } of verified) for (const one of archived) addArchived(totals.archived, one)
  for (const { part, result } of verified) {
    addResult(totals, result)
    const isLast = part === verified.at(-1)?.part
    const found = brokenFinding(judging, part.path, result) ?? tornFinding(judging, part.path, result, isLast)
    if (found !== null) return found
  }
  return wholeFinding(judging)
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
  const text = await readText(path)
  try {
    return readPublicKeys(text, path)
  } catch (error) {
    throw new VerifyUsageError(reasonOf(error))
  }
}

/** Returns the text of a file of keys that are usable; null without a file. */
async function readKeyText(path: string | undefined): Promise<KeyText | null> {
  if (path === undefined) return null
  const text = await readText(path)
  try {
    readPublicKeys(text, path)
  } catch (error) {
    throw new VerifyUsageError(reasonOf(error))
  }
  return { path, text }
}

/** Checkpoints kept elsewhere. */
interface Kept {
  /** It is one note, which states a root and no hash. */
  readonly isNote: boolean
  read(add: (claim: Claim) => void): Promise<void>
}

/** A copied checkpoints file consists of ledger lines; any other file is one checkpoint. Throws VerifyUsageError. */
async function openKept(path: string | undefined, trust: Trust | null): Promise<Kept> {
  if (path === undefined) return { isNote: false, read: async () => {} }
  const file = await open(path).catch((error: unknown) => unreadable(path, error))
  const size = await file.stat().then((stat) => stat.size)
  const begin = Buffer.alloc(1)
  await file.read(begin, 0, 1, 0)
  await file.close()
  if (begin.toString() === '{') return { isNote: false, read: (add) => readKeptLines(path, trust, add) }
  if (size > MAX_NOTE_BYTES) throw new VerifyUsageError(`${path} holds no checkpoint: it is too long`)
  const claim = claimOf(readCheckpointText(await readText(path)), path, trust)
  return { isNote: claim.head === null, read: async (add) => add(claim) }
}

/** Maximum size of a checkpoint that is not a line of JSON. */
const MAX_NOTE_BYTES = 64 * 1024

async function readKeptLines(path: string, trust: Trust | null, add: (claim: Claim) => void): Promise<void> {
  await using file = await open(path)
  const see = (line: Buffer) => add(claimOf(readCheckpointText(line.toString()), path, trust))
  const rest = await scanLines(readerOf(file), {
    onLine(buffer, start, end) {
      see(buffer.subarray(start, end))
      return true
    },
  })
  if (rest.tooLong) throw new VerifyUsageError(`${path} holds no checkpoint: a line is too long`)
  if (rest.tail.length > 0) see(rest.tail)
}

function claimOf(checkpoint: Checkpoint | string, path: string, trust: Trust | null): Claim {
  if (typeof checkpoint === 'string') throw new VerifyUsageError(`${path} holds no checkpoint: ${checkpoint}`)
  const signed = trust !== null && judgeCheckpoint(checkpoint, trust)
  if (trust !== null && signed !== true) throw new VerifyUsageError(`${path} is not signed by the given key`)
  const { ledgerId, size, head, root } = checkpoint
  return { ledgerId, size, head, root, seq: null, signed: signed === true, kind: 'checkpoint', source: null }
}

async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => unreadable(path, error))
}

function unreadable(path: string, error: unknown): never {
  throw new VerifyUsageError(`${path} cannot be read (${codeOf(error)})`)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
