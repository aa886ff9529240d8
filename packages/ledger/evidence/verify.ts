import { Slices, slicedSha256 } from '@plat/core'
import type { PublicKey } from '@plat/keys'
import { seqOf } from '../find.ts'
import { MAX_LINE_BYTES, type RawLine, readRawLine } from '../format.ts'
import { logFault, readAnchor } from '../proof/anchor.ts'
import { readCheckpointRecord } from '../proof/checkpoint.ts'
import { rootOfPath } from '../proof/inclusion.ts'
import { leafHash } from '../proof/tree.ts'
import { judgeCheckpoint, type Trust } from '../proof/trust.ts'
import { type EvidenceHead, type RunProof, readEvidenceHead, readProofs, readSealLine, type Seal } from './object.ts'

const LF = 0x0a

export interface EvidenceTrust extends Trust {
  /** Public keys of the transparency log; null: its signatures are not verified. */
  readonly logKeys: readonly PublicKey[] | null
}

/** Result of verifying an evidence object. */
export interface EvidenceFinding {
  readonly head: EvidenceHead
  /** Whether it contains every record from `head.from` to `head.to`. */
  readonly whole: boolean
  /** Whether the checkpoint is in the transparency log, by the log's signature; null when the object claims it but no log key was given. */
  readonly anchored: boolean | null
}

/** Result for an object whose checkpoint has no signature that a given key could verify. */
export const UNSIGNED_CHECKPOINT = 'nothing that was given signed the checkpoint'

/** Verifies an evidence object with only itself and the keys. Resolves with a string that says what is wrong; never rejects. Works in slices. */
export async function verifyEvidence(bytes: Uint8Array, trust: EvidenceTrust): Promise<EvidenceFinding | string> {
  const parts = partsOf(bufferOf(bytes))
  if (typeof parts === 'string') return parts
  const { head, proofs } = parts
  const unsealed = await sealFault(parts, trust)
  if (unsealed !== null) return unsealed
  const checkpoint = readCheckpointRecord(head.checkpoint)
  if (typeof checkpoint === 'string') return checkpoint
  if (checkpoint.ledgerId !== head.ledgerId) return 'the checkpoint is of another ledger'
  const signed = judgeCheckpoint(checkpoint, trust)
  if (signed !== true) return signed === false ? UNSIGNED_CHECKPOINT : signed
  const fault = await linesFault(parts, new Map(proofs.map((proof) => [proof.seq, proof])), checkpoint)
  if (fault !== null) return fault
  const anchored = anchorOf(head, checkpoint, trust.logKeys)
  if (typeof anchored === 'string') return anchored
  return { head, whole: Object.keys(head.about).length === 0, anchored }
}

/**
 * Returns the numbers of the records in an object that has the bytes that were sealed, or what is wrong. For those who keep it: verifies neither
 * signatures nor proofs.
 */
export async function recordsOfEvidence(bytes: Uint8Array): Promise<readonly number[] | string> {
  const parts = partsOf(bufferOf(bytes))
  if (typeof parts === 'string') return parts
  if (!(await isSealOf(readSealLine(parts.seal), parts))) return CHANGED
  const lines = await linesOf(parts.records, parts.head.records)
  if (typeof lines === 'number') return countFault(lines, parts)
  const seqs: number[] = []
  for (const [start, end] of lines) {
    const seq = seqOf(parts.records.subarray(start, end))
    if (seq === null) return `line ${seqs.length + 2} is not a line of a ledger`
    seqs.push(seq)
  }
  return seqs
}

interface Parts {
  readonly head: EvidenceHead
  /** All sealed bytes. */
  readonly body: Buffer
  /** Its ledger lines. */
  readonly records: Buffer
  readonly proofs: readonly RunProof[]
  readonly seal: string
}

function partsOf(bytes: Buffer): Parts | string {
  const headEnd = bytes.indexOf(LF)
  const end = bytes.length - 1
  const sealStart = bytes.lastIndexOf(LF, end - 1) + 1
  const proofStart = bytes.lastIndexOf(LF, sealStart - 2) + 1
  if (bytes[end] !== LF || headEnd === -1 || proofStart <= headEnd || sealStart <= proofStart) {
    return 'it is not an evidence object: a head, records, proofs and a seal are needed, a line each'
  }
  const head = headEnd > MAX_LINE_BYTES ? null : readEvidenceHead(bytes.toString('utf8', 0, headEnd))
  if (head === null) return 'its first line is not a head of an evidence object'
  const proofs = readProofs(bytes.toString('utf8', proofStart, sealStart - 1))
  if (proofs === null) return 'its last line but one holds no proofs'
  const seal = bytes.toString('utf8', sealStart, end)
  return { head, body: bytes.subarray(0, sealStart), records: bytes.subarray(headEnd + 1, proofStart), proofs, seal }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

async function sealFault({ head, body, seal: text }: Parts, { keys }: Trust): Promise<string | null> {
  const seal = readSealLine(text)
  if (seal === null) return 'its last line is not a seal'
  if (!(await isSealOf(seal, { head, body }))) return CHANGED
  const { header, input, signature } = seal.jws
  const isSigned = keys.some(
    ({ kid, algorithm, key }) =>
      header.kid === kid && header.alg === algorithm.name && algorithm.verify(input, key, signature),
  )
  return isSigned ? null : 'the seal is not signed by the given key'
}

const CHANGED = 'the seal is about something else: the object was changed'

async function isSealOf(seal: Seal | null, { head, body }: Pick<Parts, 'head' | 'body'>): Promise<boolean> {
  return seal?.id === head.id && seal.ledgerId === head.ledgerId && seal.sha256 === (await slicedSha256(body))
}

function countFault(found: number, { head }: Pick<Parts, 'head'>): string {
  return `it holds ${found} records, and not ${head.records} as it says`
}

type Span = readonly [start: number, end: number]

/** Returns the spans of all lines, or their number when it is not `count`. */
async function linesOf(records: Buffer, count: number): Promise<readonly Span[] | number> {
  const spans: Span[] = []
  const slices = new Slices()
  let found = 0
  for (let start = 0, end = records.indexOf(LF); end !== -1; start = end + 1, end = records.indexOf(LF, start)) {
    if (found++ < count) spans.push([start, end])
    if (found % LINES_AT_ONCE === 0 && slices.isOver) await slices.next()
  }
  return found === count ? spans : found
}

/** Lines between two checks of the time. */
const LINES_AT_ONCE = 256

async function linesFault(
  { head, records }: Parts,
  proofs: ReadonlyMap<number, RunProof>,
  checkpoint: { readonly size: number; readonly root: string },
): Promise<string | null> {
  const lines = await linesOf(records, head.records)
  if (typeof lines === 'number') return countFault(lines, { head })
  const isWhole = Object.keys(head.about).length === 0
  if (isWhole && lines.length !== head.to - head.from + 1) return 'records are missing from its range'
  const slices = new Slices()
  const raws: RawLine[] = []
  for (const [at, [start, end]] of lines.entries()) {
    if (at % LINES_AT_ONCE === 0 && slices.isOver) await slices.next()
    const raw = readRawLine(records, start, end)
    if (typeof raw === 'string') return `line ${at + 2}: ${raw}`
    raws.push(raw)
  }
  for (const [at, raw] of raws.entries()) {
    if (at % LINES_AT_ONCE === 0 && slices.isOver) await slices.next()
    const { seq } = raw
    if (seq < head.from || seq > head.to) return `record ${seq} is outside of its range`
    const next = raws[at + 1]
    if (next?.seq === seq + 1) {
      if (next.prev === raw.hash) continue
      return `record ${next.seq} does not follow record ${seq}`
    }
    if (next !== undefined && next.seq <= seq) return `record ${next.seq} is out of order`
    const [start, end] = lines[at] ?? [0, 0]
    const inclusion = proofs.get(seq)?.inclusion.map((one) => Buffer.from(one, 'hex'))
    if (inclusion === undefined) return `record ${seq} has no proof`
    if (rootOfPath(leafHash(records.subarray(start, end)), seq, checkpoint.size, inclusion) !== checkpoint.root) {
      return `record ${seq} is not included under the root of the checkpoint`
    }
  }
  return null
}

function anchorOf(
  { anchor: rec }: EvidenceHead,
  checkpoint: { readonly size: number; readonly root: string; readonly head: string | null },
  logKeys: readonly PublicKey[] | null,
): boolean | null | string {
  if (rec === null) return false
  const anchor = readAnchor(rec)
  if (typeof anchor === 'string') return anchor
  const { size, root, head } = anchor.covers
  if (size !== checkpoint.size || root !== checkpoint.root || head !== checkpoint.head) {
    return 'the anchor is about another checkpoint'
  }
  return logKeys === null ? null : (logFault(anchor, logKeys) ?? true)
}
