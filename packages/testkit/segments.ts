import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { canonicalJson } from '@plat/core'
import type { Signer } from '@plat/keys'
import {
  checkpointsPath,
  leafHash,
  MerkleTree,
  type Rec,
  segmentPath,
  segmentsPath,
  signCheckpoint,
} from '@plat/ledger'

/** One file of a ledger: its lines without LF. */
export interface SegmentFile {
  readonly path: string
  readonly first: number
  readonly lines: string[]
}

export interface SegmentsOptions {
  /** Sealed segments, before the active file. */
  readonly segments: number
  /** Records of each file, without its `segment` record. */
  readonly records: number
  /** Signs a checkpoint over all records so far as the first record of each file but the first one, and as the last but one of the active file. */
  readonly signer?: Signer
  /** Members of record `seq`, which is not a checkpoint. */
  readonly record?: (seq: number) => Partial<Rec>
}

/** A ledger of several files on disk, with list, tree and checkpoints beside it. Record `seq` is from `seq` seconds after the start of 2026. */
export interface SegmentedLedger {
  readonly path: string
  /** The sealed segments, then the active file. */
  readonly files: readonly SegmentFile[]
  /** `segment` record of each sealed file, as the list states it. */
  readonly records: readonly string[]
  /** Writes the lines, and a list with their sizes. */
  write(): void
  /** Removes the file of a segment and changes its entry in the list, as retention does. */
  leave(
    index: number,
    entry: { readonly archive: string | null; readonly checkpoint?: string; readonly record?: string },
  ): void
}

const LEDGER_ID = '01900000-0000-7000-8000-000000000001'
const START = Date.parse('2026-01-01T00:00:00Z')

/** Time of record `seq`. */
export function timeOfRecord(seq: number): string {
  return `${new Date(START + seq * 1000).toISOString().slice(0, 19)}.000000Z`
}

/** Writes a ledger of several files without its writer, so that each test has exactly the files that it wants. */
export async function writeSegments(path: string, options: SegmentsOptions): Promise<SegmentedLedger> {
  const { segments, records, signer } = options
  const nodes: Buffer[] = []
  const checkpoints: string[] = []
  const tree = new MerkleTree(undefined, (node) => nodes.push(node))
  let head = '0'.repeat(64)
  const add = (lines: string[], rec: Rec): void => {
    const line = lineOf(head, { at: timeOfRecord(tree.size), replica: 'r', tenant: '', ...rec }, tree.size)
    head = line.hash
    lines.push(line.text)
    tree.add(leafHash(Buffer.from(line.text)))
  }
  const checkpoint = async (lines: string[]): Promise<void> => {
    if (signer === undefined || tree.size === 0) return
    const body = { ledgerId: LEDGER_ID, upTo: tree.size - 1, head, size: tree.size, root: tree.root() }
    add(lines, await signCheckpoint({ signer, pq: null, hmacKey: null }, body))
    checkpoints.push(lines.at(-1) ?? '')
  }
  const files: SegmentFile[] = []
  for (let index = 0; index <= segments; index++) {
    const isActive = index === segments
    const first = tree.size
    const file: SegmentFile = { path: isActive ? path : segmentPath(path, first), first, lines: [] }
    await checkpoint(file.lines)
    while (tree.size < first + records - (isActive ? 1 : 0)) add(file.lines, recordOf(tree.size, options.record))
    if (isActive) await checkpoint(file.lines)
    add(file.lines, isActive ? recordOf(tree.size, options.record) : segmentRec(tree, first, head))
    files.push(file)
  }
  const sealed = files.slice(0, -1)
  const statements = sealed.map(({ lines }) => lines.at(-1) ?? '')
  let listed: object[] = []
  const writeList = () => writeFileSync(segmentsPath(path), JSON.stringify({ v: 1, segments: listed }))
  const write = (): void => {
    for (const { path, lines } of files) writeFileSync(path, textOf(lines))
    listed = sealed.map(({ path, first, lines }, index) => ({
      ...{ first, last: (files[index + 1]?.first ?? 0) - 1, bytes: Buffer.byteLength(textOf(lines)) },
      ...{ from: timeOfRecord(first), to: timeOfRecord((files[index + 1]?.first ?? 0) - 1) },
      ...{ record: statements[index], checkpoint: null, file: basename(path), archive: null },
    }))
    if (listed.length > 0) writeList()
  }
  const leave: SegmentedLedger['leave'] = (index, entry) => {
    rmSync(files[index]?.path ?? '')
    listed[index] = { ...listed[index], file: null, ...entry }
    writeList()
  }
  write()
  writeFileSync(`${path}.tree`, Buffer.concat(nodes))
  if (checkpoints.length > 0) writeFileSync(checkpointsPath(path), textOf(checkpoints))
  return { path, files, records: statements, write, leave }
}

/** Returns a line of a ledger with its hash, without LF. */
export function lineOf(prev: string, rec: Rec, seq: number): { readonly text: string; readonly hash: string } {
  const body = `"prev":"${prev}","rec":${canonicalJson(rec)},"seq":${seq},"v":1}`
  const hash = createHash('sha256').update(`plat-ledger-v1\n${body}`).digest('hex')
  return { text: `{"hash":"${hash}",${body}`, hash }
}

/** Calls of one agent in turn: an intent, then its outcome. */
function recordOf(seq: number, own: SegmentsOptions['record']): Rec {
  if (seq === 0) return { kind: 'config', ledgerId: LEDGER_ID, format: 1 }
  const isIntent = seq % 2 === 1
  const call = `call-${Math.floor((seq + 1) / 2)}`
  const shared = { call, session: 's-1', namespace: 'default', agent: 'assistant', user: 'alice', op: 'mcp.call' }
  const more = isIntent ? { action: 'allow' } : { result: 'completed', status: 200, ms: 4 }
  return {
    ...{ kind: isIntent ? 'intent' : 'outcome', ...shared, server: 'notes', tool: 'add_note', ...more },
    ...own?.(seq),
  }
}

function segmentRec(tree: MerkleTree, first: number, head: string): Rec {
  const { size, subtrees } = tree.state()
  return {
    ...{ kind: 'segment', ledgerId: LEDGER_ID, first, last: size - 1, head, size, root: tree.root(), open: [] },
    subtrees: subtrees.map((hash) => hash.toString('hex')),
  }
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}
