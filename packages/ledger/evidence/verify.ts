import { hash } from 'node:crypto'
import type { PublicKey } from '@plat/keys'
import { type RawLine, readRawLine } from '../format.ts'
import { logFault, readAnchor } from '../proof/anchor.ts'
import { readCheckpointRecord } from '../proof/checkpoint.ts'
import { rootOfPath } from '../proof/inclusion.ts'
import { leafHash } from '../proof/tree.ts'
import { judgeCheckpoint, type Trust } from '../proof/trust.ts'
import { type EvidenceHead, type RunProof, readEvidenceHead, readProofs, readSealLine } from './object.ts'

const LF = 0x0a

export interface EvidenceTrust extends Trust {
  /** Public keys of the transparency log; null: what it signed is not judged. */
  readonly logKeys: readonly PublicKey[] | null
}

/** What an evidence object proves. */
export interface EvidenceFinding {
  readonly head: EvidenceHead
  /** It holds every record from `head.from` to `head.to`. */
  readonly whole: boolean
  /** The checkpoint stands in the transparency log: by its signature, or as the object says (null: nobody gave its keys). */
  readonly anchored: boolean | null
}

/** Verifies an evidence object with nothing but itself and the keys; a text says what is wrong. Never throws. */
export function verifyEvidence(bytes: Uint8Array, trust: EvidenceTrust): EvidenceFinding | string {
  const parts = partsOf(Buffer.from(bytes))
  if (typeof parts === 'string') return parts
  const { head, proofs } = parts
  const unsealed = sealFault(parts, trust)
  if (unsealed !== null) return unsealed
  const checkpoint = readCheckpointRecord(head.checkpoint)
  if (typeof checkpoint === 'string') return checkpoint
  if (checkpoint.ledgerId !== head.ledgerId) return 'the checkpoint is of another ledger'
  const signed = judgeCheckpoint(checkpoint, trust)
  if (signed !== true) return signed === false ? 'nothing that was given signed the checkpoint' : signed
  const fault = linesFault(parts, new Map(proofs.map((proof) => [proof.seq, proof])), checkpoint)
  if (fault !== null) return fault
  const anchored = anchorOf(head, checkpoint, trust.logKeys)
  if (typeof anchored === 'string') return anchored
  return { head, whole: Object.keys(head.about).length === 0, anchored }
}

interface Parts {
  readonly head: EvidenceHead
  /** All that is sealed, and in it the lines of the ledger. */
  readonly body: Buffer
  readonly lines: readonly (readonly [start: number, end: number])[]
  readonly proofs: readonly RunProof[]
  readonly seal: string
}

function partsOf(bytes: Buffer): Parts | string {
  const spans: [number, number][] = []
  for (let start = 0, end = bytes.indexOf(LF); end !== -1; start = end + 1, end = bytes.indexOf(LF, start)) {
    spans.push([start, end])
  }
  const [first, ...rest] = spans
  const [proofSpan, sealSpan] = rest.splice(-2)
  if (bytes.at(-1) !== LF || first === undefined || proofSpan === undefined || sealSpan === undefined) {
    return 'it is no evidence object: a head, records, proofs and a seal are needed, a line each'
  }
  const textOf = ([start, end]: readonly [number, number]) => bytes.toString('utf8', start, end)
  const head = readEvidenceHead(textOf(first))
  const proofs = readProofs(textOf(proofSpan))
  if (head === null) return 'its first line is no head of an evidence object'
  if (proofs === null) return 'its last line but one holds no proofs'
  return { head, body: bytes.subarray(0, sealSpan[0]), lines: rest, proofs, seal: textOf(sealSpan) }
}

function sealFault({ head, body, seal: text }: Parts, { keys }: Trust): string | null {
  const seal = readSealLine(text)
  if (seal === null) return 'its last line is no seal'
  if (seal.sha256 !== hash('sha256', body, 'hex') || seal.id !== head.id || seal.ledgerId !== head.ledgerId) {
    return 'the seal is about something else: the object was changed'
  }
  const { header, input, signature } = seal.jws
  const isSigned = keys.some(
    ({ kid, algorithm, key }) =>
      header.kid === kid && header.alg === algorithm.name && algorithm.verify(input, key, signature),
  )
  return isSigned ? null : 'the seal is not signed by the given key'
}

function linesFault(
  { head, body, lines }: Parts,
  proofs: ReadonlyMap<number, RunProof>,
  checkpoint: { readonly size: number; readonly root: string },
): string | null {
  if (lines.length !== head.records) return `it holds ${lines.length} records, and not ${head.records} as it says`
  const isWhole = Object.keys(head.about).length === 0
  if (isWhole && lines.length !== head.to - head.from + 1) return 'records are missing from its range'
  const raws: RawLine[] = []
  for (const [at, [start, end]] of lines.entries()) {
    const raw = readRawLine(body, start, end)
    if (typeof raw === 'string') return `line ${at + 2}: ${raw}`
    raws.push(raw)
  }
  for (const [at, { seq, hash: own }] of raws.entries()) {
    if (seq < head.from || seq > head.to) return `record ${seq} is outside of its range`
    const next = raws[at + 1]
    if (next?.seq === seq + 1) {
      if (next.prev === own) continue
      return `record ${next.seq} does not follow record ${seq}`
    }
    if (next !== undefined && next.seq <= seq) return `record ${next.seq} is out of order`
    const [start, end] = lines[at] ?? [0, 0]
    const inclusion = proofs.get(seq)?.inclusion.map((one) => Buffer.from(one, 'hex'))
    if (inclusion === undefined) return `record ${seq} has no proof`
    if (rootOfPath(leafHash(body.subarray(start, end)), seq, checkpoint.size, inclusion) !== checkpoint.root) {
      return `record ${seq} does not lead to the root of the checkpoint`
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
