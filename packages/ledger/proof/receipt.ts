import { isObject, type JsonObject } from '@plat/core'
import { readRawLine } from '../format.ts'
import { scanLines } from '../lines.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { readCheckpointRecord } from './checkpoint.ts'
import { inclusionPath, placesOfPath, type ReadNode, rootOfPath } from './inclusion.ts'
import { isCheckpointLine, lastCheckpoint, treePath } from './stored-checkpoint.ts'
import { leafHash, MerkleTree } from './tree.ts'
import { TreeFile } from './tree-file.ts'
import { judgeCheckpoint, type Trust } from './trust.ts'

/** One record with the proof of its inclusion in a ledger: verifiable without the ledger (admin API, `/v1/audit/proof/{seq}`). */
export interface Receipt {
  readonly seq: number
  /** The record's line, without its LF. */
  readonly line: string
  /** Record of a checkpoint that covers it. */
  readonly checkpoint: JsonObject
  /** Hashes from the leaf to the checkpoint's root, 64 hex digits each (RFC 6962, section 2.1.1). */
  readonly inclusion: readonly string[]
}

/** Why there is no receipt. */
export type NoReceipt = 'no record' | 'no checkpoint'

/** Returns the receipt of record `seq` from the files beside a ledger in use. Throws when they do not match the ledger. */
export async function receiptBeside(ledgerPath: string, seq: number): Promise<Receipt | NoReceipt> {
  const checkpoint = (await lastCheckpoint(ledgerPath))?.rec ?? null
  await using sequence = await LedgerSequence.open(ledgerPath)
  const line = (await sequence.lineOf(seq))?.line ?? null
  if (line === null) return 'no record'
  if (checkpoint === null || seq >= sizeOf(checkpoint)) return 'no checkpoint'
  const tree = new TreeFile(treePath(ledgerPath), 'readOnly')
  try {
    return receiptOf(seq, line, checkpoint, tree.node)
  } finally {
    tree.close()
  }
}

/**
 * Returns the receipt of record `seq` from the files of the ledger alone, which are read twice: first for its last checkpoint, then for the hashes. Throws
 * when the ledger contradicts the checkpoint.
 */
export async function receiptFromLedger(ledgerPath: string, seq: number): Promise<Receipt | NoReceipt> {
  const { records, checkpoint } = await lastCheckpointIn(ledgerPath)
  if (seq >= records) return 'no record'
  if (checkpoint === null || seq >= sizeOf(checkpoint)) return 'no checkpoint'
  const size = sizeOf(checkpoint)
  const needed = placesOfPath(seq, size)
  const nodes = new Map<number, Buffer>()
  let place = 0
  const tree = new MerkleTree(undefined, (node) => {
    if (needed.has(place)) nodes.set(place, node)
    place++
  })
  let found = Buffer.alloc(0)
  await scanFile(ledgerPath, (line) => {
    if (tree.size === size) return false
    if (tree.size === seq) found = Buffer.from(line)
    tree.addLine(line)
    return true
  })
  return receiptOf(seq, found, checkpoint, (at) => nodes.get(at) ?? Buffer.alloc(0))
}

async function lastCheckpointIn(ledgerPath: string): Promise<{ records: number; checkpoint: JsonObject | null }> {
  let last = Buffer.alloc(0)
  let records = 0
  await scanFile(ledgerPath, (line) => {
    records++
    if (isCheckpointLine(line)) last = Buffer.from(line)
    return true
  })
  return { records, checkpoint: last.length === 0 ? null : recordOf(last) }
}

async function scanFile(path: string, onLine: (line: Buffer) => boolean): Promise<void> {
  await using sequence = await LedgerSequence.open(path)
  await scanLines(sequence, { onLine: (buffer, start, end) => onLine(buffer.subarray(start, end)) })
}

/** Verifies the receipt, so that a wrong one is never returned. */
export function receiptOf(seq: number, line: Buffer, checkpoint: JsonObject, node: ReadNode): Receipt {
  const size = sizeOf(checkpoint)
  const path = inclusionPath(node, seq, size)
  if (rootOfPath(leafHash(line), seq, size, path) !== checkpoint.root) {
    throw new Error(
      `record ${seq} is not included under the root of the last checkpoint: it was changed, or the tree; \`plat audit verify\` names the file`,
    )
  }
  return { seq, line: line.toString(), checkpoint, inclusion: path.map((hash) => hash.toString('hex')) }
}

function sizeOf(checkpoint: JsonObject): number {
  return typeof checkpoint.size === 'number' ? checkpoint.size : 0
}

function recordOf(line: Buffer): JsonObject | null {
  const value: unknown = JSON.parse(line.toString())
  return isObject(value) && isObject(value.rec) ? value.rec : null
}

/** Result of verifying a receipt. */
export interface ReceiptFinding {
  readonly seq: number
  readonly hash: string
  readonly ledgerId: string
  /** Number of records that its checkpoint covers. */
  readonly size: number
  /** Whether the given key signed the checkpoint; null without a key. */
  readonly signed: boolean | null
}

/** Verifies a receipt with only itself and the keys. Returns a string that says what is wrong; never throws. */
export function verifyReceipt(receipt: unknown, trust: Trust | null): ReceiptFinding | string {
  if (!isReceipt(receipt)) return 'it is not a receipt: {"seq", "line", "checkpoint", "inclusion"} are needed'
  const { seq, inclusion } = receipt
  const bytes = Buffer.from(receipt.line)
  const line = readRawLine(Buffer.from(bytes), 0, bytes.length)
  if (typeof line === 'string') return line
  if (line.seq !== seq) return `the line is record ${line.seq}, not ${seq}`
  const checkpoint = readCheckpointRecord(receipt.checkpoint)
  if (typeof checkpoint === 'string') return checkpoint
  const signed = trust === null ? null : judgeCheckpoint(checkpoint, trust)
  if (typeof signed === 'string') return signed
  const path = inclusion.map((hash) => Buffer.from(hash, 'hex'))
  const root = rootOfPath(leafHash(bytes), seq, checkpoint.size, path)
  if (root !== checkpoint.root) return 'the record is not included under the root of the checkpoint'
  return { seq, hash: line.hash, ledgerId: checkpoint.ledgerId, size: checkpoint.size, signed }
}

const HASH = /^[0-9a-f]{64}$/

function isReceipt(value: unknown): value is Receipt {
  if (!isObject(value)) return false
  const { seq, line, checkpoint, inclusion } = value
  const isPath = Array.isArray(inclusion) && inclusion.every((hash) => typeof hash === 'string' && HASH.test(hash))
  return Number.isSafeInteger(seq) && typeof line === 'string' && isObject(checkpoint) && isPath
}
