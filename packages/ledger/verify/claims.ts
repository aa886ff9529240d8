import { isObject, type JsonObject } from '@plat/core'
import type { PublicKey } from '@plat/keys'
import { type Anchor, isLogAnchor, logFault, readAnchor } from '../proof/anchor.ts'
import { readCheckpointRecord } from '../proof/checkpoint.ts'
import { MerkleTree } from '../proof/tree.ts'
import { judgeCheckpoint, type Trust } from '../proof/trust.ts'
import { readSegmentLine } from '../sequence/segment-record.ts'
import type { Claim } from './claim-table.ts'
import type { Finding } from './finding.ts'
import { parsed } from './strict.ts'

/** Keys of a verification. */
export interface VerifyKeys {
  /** Null when no key for checkpoints was given. */
  readonly trust: Trust | null
  /** Keys of transparency logs; null when none was given. */
  readonly logKeys: readonly PublicKey[] | null
}

/** A record with a claim about the records before it. */
export interface Stating {
  readonly seq: number
  readonly kind: Claim['kind']
  /** Its claim, or the reason why it is not acceptable. */
  readonly claim: Claim | string
  /** Of an anchor that is acceptable. */
  readonly anchor: Finding['anchors']['last']
}

/** Parses a line that may be a checkpoint, an anchor or a `segment` record. Returns null when it is none. */
export function readStating(line: Buffer, keys: VerifyKeys): Stating | null {
  const value = parsed(line)
  if (!isObject(value) || !isObject(value.rec) || typeof value.seq !== 'number') return null
  const { seq, rec } = value
  if (rec.kind === 'checkpoint')
    return { seq, kind: 'checkpoint', claim: checkpointClaim(seq, rec, keys), anchor: null }
  if (rec.kind === 'segment') return { seq, kind: 'segment', claim: segmentClaim(line), anchor: null }
  return isLogAnchor(rec) ? anchorStating(seq, rec, keys) : null
}

function checkpointClaim(seq: number, rec: JsonObject, { trust }: VerifyKeys): Claim | string {
  const checkpoint = readCheckpointRecord(rec)
  if (typeof checkpoint === 'string') return checkpoint
  const { ledgerId, size, head, root } = checkpoint
  if (size > seq) return `the checkpoint covers ${size} records, but only ${seq} came before it`
  const signed = trust !== null && judgeCheckpoint(checkpoint, trust)
  if (typeof signed === 'string') return signed
  return { ledgerId, size, head, root, seq, signed, kind: 'checkpoint', source: null }
}

function segmentClaim(line: Buffer): Claim | string {
  const read = readSegmentLine(line)
  if (read === null) return 'the segment record is malformed'
  const { ledgerId, closed, tree, place } = read
  const root = new MerkleTree(tree).root()
  return {
    ledgerId,
    size: tree.size,
    head: closed.hash,
    root,
    seq: place.seq,
    signed: false,
    kind: 'segment',
    source: null,
  }
}

function anchorStating(seq: number, rec: JsonObject, keys: VerifyKeys): Stating {
  const anchor = readAnchor(rec)
  const fault = typeof anchor === 'string' ? anchor : anchorFault(anchor, keys)
  if (typeof anchor === 'string' || fault !== null) {
    return { seq, kind: 'anchor', claim: fault ?? String(anchor), anchor: null }
  }
  const { ledgerId, size, head, root } = anchor.covers
  const claim: Claim = { ledgerId, size, head, root, seq, signed: false, kind: 'anchor', source: null }
  return { seq, kind: 'anchor', claim, anchor: { upTo: size - 1, url: anchor.url } }
}

function anchorFault(anchor: Anchor, { trust, logKeys }: VerifyKeys): string | null {
  const signed = trust === null ? true : judgeCheckpoint(anchor.covers, trust)
  if (typeof signed === 'string') return signed
  return logKeys === null ? null : logFault(anchor, logKeys)
}
