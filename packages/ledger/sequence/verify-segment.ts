import { Chain, followChain } from '../chain.ts'
import type { Head, RawLine } from '../format.ts'
import type { ReadAt } from '../lines.ts'
import { MerkleTree } from '../proof/tree.ts'
import type { LedgerSegment } from './segment-entry.ts'
import { readSegmentLine, treeAfter } from './segment-record.ts'

/**
 * Verifies the chain of the first `bytes` of the active file up to `head`, which the next record states. `before` is the last sealed segment, or null.
 * Returns null when it is valid, else what is wrong and where.
 */
export async function verifyBeginning(
  source: ReadAt,
  { bytes, head: stated }: { readonly bytes: number; readonly head: Head },
  before: LedgerSegment | null,
): Promise<string | null> {
  const chain = new Chain(readSegmentLine(Buffer.from(before?.record ?? ''))?.place ?? null)
  const beginning: ReadAt = {
    read: (target, position) => source.read(target.subarray(0, Math.max(0, bytes - position)), position),
  }
  const { damage, tail, head } = await followChain({ source: beginning, chain })
  if (damage !== null) return `line ${damage.line} (record ${damage.seq}, byte ${damage.offset}): ${damage.what}`
  const isSame = head?.seq === stated.seq && head.hash === stated.hash && tail.length === 0
  return isSame ? null : `record ${stated.seq} is not the one that the next record follows`
}

/**
 * Verifies one sealed segment against the `segment` record of the one before it: the chain, and the tree that its own record states. `before` is null
 * for the first segment. `onLine` is called with each valid line. Returns null when it is valid, else what is wrong and where.
 */
export async function verifySegment(
  source: ReadAt,
  segment: LedgerSegment,
  before: LedgerSegment | null,
  onLine: (line: Buffer) => void = () => {},
): Promise<string | null> {
  const line = Buffer.from(before?.record ?? '')
  const previous = readSegmentLine(line)
  const stated = readSegmentLine(Buffer.from(segment.record))
  if (stated === null) return 'it has no segment record'
  if ((previous?.place.seq ?? -1) + 1 !== segment.first)
    return `the segment before record ${segment.first} is not listed`
  const chain = new Chain(previous?.place ?? null)
  const tree = new MerkleTree(previous === null ? undefined : treeAfter(previous, line))
  const root = new MerkleTree(stated.tree).root()
  const onRecord = (buffer: Buffer, start: number, { seq, length }: RawLine) => {
    if (seq === segment.last && tree.root() !== root) {
      return { kind: 'broken', what: 'the root in the segment record is not that of the records' } as const
    }
    if (seq > segment.last) return { kind: 'broken', what: 'it follows the segment record' } as const
    const text = buffer.subarray(start, start + length)
    onLine(text)
    tree.addLine(text)
    return null
  }
  const { damage, tail, head } = await followChain({ source, chain, onRecord })
  if (damage !== null) return `line ${damage.line} (record ${damage.seq}, byte ${damage.offset}): ${damage.what}`
  if (head?.seq !== stated.place.seq || head.hash !== stated.place.hash || tail.length > 0) {
    return `it does not end with its segment record ${stated.place.seq}`
  }
  return null
}
