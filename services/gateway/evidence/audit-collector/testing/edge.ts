import { join } from 'node:path'
import { ephemeralSigner, type Signer } from '@plat/keys'
import { LineReader, NO_RECORD, type SegmentSeal, segmentBytes, signSeal } from '@plat/ledger'
import { fillLedger, ledgerLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'

const AT = '2026-01-01T00:00:00.000000Z'

/** An edge that seals selected records of its ledger. */
export interface TestEdge {
  readonly path: string
  readonly ledgerId: string
  readonly signer: Signer
  lines(): string[]
  /** Seals records `from` to `to`; `change` falsifies the seal before it is signed. */
  segment(from: number, to: number, change?: Partial<SegmentSeal>, signer?: Signer): Promise<Buffer>
  /** Returns a seal without records, after record `seq`. */
  question(seq: number): Promise<Buffer>
}

/** Creates an edge with a ledger of this many records. */
export async function testEdge(records: number, edge = 'north'): Promise<TestEdge> {
  const path = join(tempFolder(), 'audit.jsonl')
  await fillLedger(path, records - 1)
  const signer = ephemeralSigner()
  const { ledgerId } = JSON.parse(ledgerLines(path)[0] ?? '').rec
  const reader = new LineReader(path)
  const sealed = async (seal: SegmentSeal, lines: Uint8Array, by: Signer) =>
    segmentBytes(await signSeal(by, seal), lines)
  return {
    path,
    ledgerId,
    signer,
    lines: () => ledgerLines(path),
    async segment(from, to, change = {}, by = signer) {
      const wanted = { from, upTo: to, maxRecords: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER }
      const { bytes, prev, head } = await reader.read(wanted)
      const seal = { edge, ledgerId, from, to, prev, head, bytes: bytes.length, since: AT, at: AT, ...change }
      return await sealed(seal, bytes, by)
    },
    async question(seq) {
      const head = seq < 0 ? NO_RECORD.hash : ((await reader.hashOf(seq)) ?? '')
      const place = { from: seq + 1, to: seq, prev: head, head, bytes: 0 }
      return await sealed({ edge, ledgerId, ...place, since: AT, at: AT }, new Uint8Array(), signer)
    },
  }
}
