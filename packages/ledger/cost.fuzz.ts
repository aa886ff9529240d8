import { constants, zstdCompressSync } from 'node:zlib'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { openChunk } from './copy/chunk.ts'
import { verifyEvidence } from './evidence/verify.ts'
import { FollowedChain } from './followed/followed-chain.ts'
import { readRawLine } from './format.ts'
import { scanLines } from './lines.ts'
import { readNote } from './proof/note.ts'
import { verifyReceipt } from './proof/receipt.ts'
import { selectorOf } from './search/filter.ts'
import { followSegment, readSegment } from './segment/segment.ts'
import { asyncFiles } from './sequence/files.ts'
import { readFrameTable, WINDOW_LOG, writeFrameTable } from './sequence/frame-table.ts'
import { loadSegments } from './sequence/segment-list.ts'

const KIB = 1024
const MIB = 1024 * KIB
const line = (rec: string) => `{"hash":"${'0'.repeat(64)}","prev":"${'0'.repeat(64)}","rec":{${rec}},"seq":1,"v":1}`
const lines: Families = {
  ...text,
  records: (n) => `${line('"a":1')}\n`.repeat(n / 180),
  'one record': (n) => line(`"a":"${'b'.repeat(n)}"`),
  'digits of the number': (n) => line(`"a":1},"seq":${'1'.repeat(n)}`),
}

const entry = (members: string) => `{"hash":"${'0'.repeat(64)}","entry":{"seq":0,"prev":"${'0'.repeat(64)}"${members}}}`
const openLines: Families = {
  'open records': (n) => `${entry('')}\n`.repeat(n / 170),
  'one open record': (n) => entry(`,"a":"${'b'.repeat(n)}"`),
  'signatures without an end': (n) => `{"hash":"${'0'.repeat(64)}","sig":"${'0'.repeat(n)}`,
  'digits of an entry': (n) => `{"hash":"${'0'.repeat(64)}","entry":{"seq":${'1'.repeat(n)}}}`,
}

/** Returns a segment whose seal states this many bytes of lines. */
function segmentOf(lines: string): string {
  const [header, seal] = [
    { alg: 'EdDSA', kid: 'k', typ: 'plat-segment+jws' },
    {
      ...{ edge: 'e', ledgerId: 'example', from: 1, to: 9, prev: '0'.repeat(64), head: '0'.repeat(64) },
      ...{ bytes: lines.length, since: '2026-01-01T00:00:00.000000Z', at: '2026-01-01T00:00:00.000000Z' },
    },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return `${header}.${seal}.AAAA\n${lines}`
}

/** Returns a table of frames that all have this size. */
function table(frames: number, size: number): string {
  const sizes = Array.from({ length: Math.floor(frames) }, () => ({ bytes: size, plainBytes: size }))
  return writeFrameTable(sizes).toString('latin1')
}

/** A receipt of record 1 whose members a caller changes. */
function receipt(members: object): string {
  const checkpoint = { upTo: 9, size: 10, head: '0'.repeat(64), root: '0'.repeat(64) }
  return JSON.stringify({ seq: 1, line: line('"a":1'), checkpoint, inclusion: [], ...members })
}

const statement = (claims: string) =>
  ['{"alg":"EdDSA","kid":"k","typ":"plat-checkpoint+jws"}', claims, 'AAAA']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')

const receipts: Families = {
  ...json,
  'a long line': (n) => receipt({ line: line(`"a":"${'b'.repeat(n)}"`) }),
  'escaped quotes in the line': (n) => receipt({ line: line(`"a":"${'\\"'.repeat(n / 4)}"`) }),
  'members of the line': (n) => receipt({ line: line(Array.from({ length: n / 16 }, (_, at) => `"m${at}":1`).join()) }),
  hashes: (n) => receipt({ inclusion: Array.from({ length: n / 67 }, () => 'a'.repeat(64)) }),
  'a long hash': (n) => receipt({ inclusion: ['a'.repeat(n)] }),
  'a long note': (n) => receipt({ checkpoint: { jws: statement('{}'), note: '— a AAAA\n'.repeat(n / 11) } }),
  'a long statement': (n) => receipt({ checkpoint: { jws: statement(`{"a":"${'a'.repeat(n * 0.7)}"}`) } }),
}

/** The list of a ledger with segments of ten records each. */
function listOf(count: number, members: object): string {
  const segments = Array.from({ length: Math.floor(count) }, (_, at) => {
    const [first, last] = [at * 10, at * 10 + 9]
    const file = `ledger.jsonl.${String(first).padStart(20, '0')}.jsonl`
    return { first, last, bytes: 100, from: '', to: '', record: '', checkpoint: null, file, archive: null, ...members }
  })
  return JSON.stringify({ v: 1, segments })
}

const lists: Families = {
  ...json,
  segments: (n) => listOf(n / 150, {}),
  'the same segment': (n) => listOf(n / 150, { first: 1, last: 2, file: null }),
  'segments that left': (n) => listOf(n / 150, { file: null, left: '2026-01-01T00:00:00.000000Z', archive: 'a' }),
  'long names': (n) => listOf(2, { file: `${'a.'.repeat(n / 4)}.jsonl` }),
  'long records': (n) => listOf(2, { record: line(`"a":"${'b'.repeat(n / 2)}"`) }),
}

const rows: readonly Row[] = [
  {
    parser: 'receipts',
    limit: MIB,
    families: receipts,
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      return () => verifyReceipt(value, null)
    },
  },
  {
    parser: 'lists of segments',
    limit: 8 * MIB,
    families: lists,
    run: (input) => {
      const text = async (path: string) => (path.endsWith('.segments.json') ? input : null)
      return loadSegments('/nowhere/ledger.jsonl', { ...asyncFiles, text, version: async () => null })
    },
  },
  {
    parser: 'chunks of copies',
    limit: MIB,
    families: lines,
    prepare: (input) => {
      const bytes = Buffer.byteLength(input)
      const place = { first: 1, last: 2, prev: '0'.repeat(64), hash: '0'.repeat(64), position: 0 }
      const data = zstdCompressSync(input, { params: { [constants.ZSTD_c_windowLog]: WINDOW_LOG } })
      return () => openChunk({ ...place, bytes, data }).catch(() => null)
    },
  },
  {
    parser: 'ledger lines',
    limit: MIB,
    families: lines,
    prepare: (input) => {
      const bytes = Buffer.concat([Buffer.alloc(64), Buffer.from(input)])
      return () => readRawLine(bytes, 64, bytes.length)
    },
  },
  {
    parser: 'ledger files',
    limit: 16 * MIB,
    families: lines,
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const read = async (target: Uint8Array, position: number) => bytes.copy(target, 0, position)
      return () => scanLines({ read }, { onLine: () => true })
    },
  },
  {
    parser: 'ledgers of other programs',
    limit: 16 * MIB,
    families: { ...lines, ...openLines },
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const read = async (target: Uint8Array, position: number) => bytes.copy(target, 0, position)
      return () => {
        const chain = new FollowedChain(null, true)
        return scanLines(
          { read },
          { onLine: (buffer, start, end) => void chain.follow(buffer, start, end) === undefined },
        )
      }
    },
  },
  {
    parser: 'filters of records',
    limit: MIB,
    families: { ...text, 'beginnings of the text': (n) => 'é'.repeat(n / 2) },
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const wanted = (length: number) => `${'é'.repeat(length)}b${'é'.repeat(length)}`
      const selectors = [selectorOf({ text: wanted(127) }), selectorOf({ session: wanted(4000) })]
      return () => selectors.map(({ matchesLine }) => matchesLine(bytes))
    },
  },
  {
    parser: 'evidence objects',
    limit: 16 * MIB,
    families: { ...lines, heads: (n) => `{"a":1}\n`.repeat(n / 8) },
    prepare: (input) => {
      const bytes = Buffer.from(input)
      return () => verifyEvidence(bytes, { keys: [], hmacKey: null, logKeys: null })
    },
  },
  {
    parser: 'notes',
    limit: 128 * KIB,
    families: { ...text, signatures: (n) => `a\n1\n${'A'.repeat(43)}=\n\n${'— a AAAA\n'.repeat(n / 9)}` },
    run: readNote,
  },
  {
    parser: 'tables of compressed segments',
    limit: MIB,
    families: { ...text, frames: (n) => table(n / 8, 1), 'frames of any size': (n) => table(n / 8, 0xff) },
    prepare: (input) => {
      const bytes = Buffer.from(input, 'latin1')
      return () => (bytes.length < 17 ? null : readFrameTable(bytes, 1024 * MIB))
    },
  },
  {
    parser: 'segments',
    limit: 16 * MIB,
    families: lines,
    prepare: (input) => {
      const bytes = Buffer.from(segmentOf(input), 'latin1')
      return () => {
        const segment = readSegment(bytes)
        return typeof segment === 'string' ? segment : followSegment(segment, 0)
      }
    },
  },
]

export const target = costTarget('cost/ledger', rows)
