import { type FileHandle, open } from 'node:fs/promises'
import { readerOf, seqOf, startOfLast } from '../find.ts'
import type { Head } from '../format.ts'
import { scanBuffer, scanLines } from '../lines.ts'
import type { LedgerSegment } from '../sequence/segment-entry.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { type ResumedTree, resumeTree } from './resume-tree.ts'
import { checkpointsPath, isCheckpointLine, lastCheckpoint, treePath } from './stored-checkpoint.ts'
import { TreeFile } from './tree-file.ts'

const FILE_MODE = 0o600
/** Offset of the hash in a line: after `{"hash":"`. */
const HASH_START = 9
const HASH_END = HASH_START + 64
/** Offset of the hash of the record before: after `","prev":"`. */
const PREV_START = HASH_END + 10
const PREV_END = PREV_START + 64

interface GrowerFiles {
  readonly path: string
  readonly ledger: LedgerSequence
  readonly checkpoints: FileHandle
  readonly tree: TreeFile
}

/** Where a tree goes on, and the offset of the next leaf in the ledger. */
interface GrowerStart extends ResumedTree {
  readonly offset: number
}

/**
 * Extends the tree of a ledger by the records written to its file, and copies checkpoint lines beside it. Starts at the last checkpoint, or
 * earlier when the files beside the ledger do not match it (`resumeTree`).
 */
export class TreeGrower {
  readonly #path: string
  readonly #ledger: LedgerSequence
  readonly #checkpoints: FileHandle
  readonly #tree: TreeFile
  readonly #buffer = scanBuffer()
  /** Offset in the ledger of the next leaf. */
  #offset: number
  /** Hash that the next line must state as `prev`; null when it is known to. */
  #after: string | null
  /** Root that the tree must have at this size; null when none is stated. */
  readonly #expected: ResumedTree['expected']
  /** Last record whose checkpoints are copied beside the ledger. */
  #copiedUpTo: number

  private constructor(files: GrowerFiles, start: GrowerStart, copiedUpTo: number) {
    this.#path = files.path
    this.#ledger = files.ledger
    this.#checkpoints = files.checkpoints
    this.#tree = files.tree
    this.#offset = start.offset
    this.#after = start.after
    this.#expected = start.expected
    this.#copiedUpTo = copiedUpTo
  }

  static async open(ledgerPath: string): Promise<TreeGrower> {
    const last = await lastCheckpoint(ledgerPath)
    await using opened = new AsyncDisposableStack()
    const ledger = opened.use(await LedgerSequence.open(ledgerPath))
    const checkpoints = opened.use(await open(checkpointsPath(ledgerPath), 'a+', FILE_MODE))
    // A crash may leave half of a line; the ledger has the whole one.
    const written = { from: 0, to: (await checkpoints.stat()).size }
    await checkpoints.truncate(await startOfLast(readerOf(checkpoints), 0, written))
    const tree = new TreeFile(treePath(ledgerPath))
    opened.defer(() => tree.close())
    const resumed = resumeTree(ledgerPath, tree, { segments: await sinceLeft(ledger), last })
    const offset = await ledger.startOf(resumed.size)
    const grower = new TreeGrower(
      { path: ledgerPath, ledger, checkpoints, tree },
      { offset, ...resumed },
      last?.seq ?? -1,
    )
    opened.move()
    return grower
  }

  /** Returns the root over all records up to `to`, which must be durable. Throws when the file holds another record there. */
  async grow(to: Head): Promise<string> {
    const found: Buffer[] = []
    let head = ''
    const onLine = (buffer: Buffer, start: number, end: number): boolean => {
      if (this.#tree.size > to.seq) return false
      const line = buffer.subarray(start, end)
      if (this.#after !== null && line.toString('latin1', PREV_START, PREV_END) !== this.#after) throw this.#mismatch()
      this.#after = null
      this.#tree.addLine(line)
      if (this.#tree.size === this.#expected?.size && this.#tree.root() !== this.#expected.root) throw this.#mismatch()
      this.#offset += line.length + 1
      head = line.toString('latin1', HASH_START, HASH_END)
      if (isCheckpointLine(line) && (seqOf(line) ?? -1) > this.#copiedUpTo)
        found.push(Buffer.from(buffer.subarray(start, end + 1)))
      return true
    }
    if (this.#tree.size <= to.seq) await scanLines(this.#ledger, { from: this.#offset, buffer: this.#buffer, onLine })
    if (this.#tree.size !== to.seq + 1 || (head !== '' && head !== to.hash)) {
      throw new Error(`the ledger file no longer holds record ${to.seq} as it was written`)
    }
    this.#tree.sync()
    await this.#copyCheckpoints(found)
    return this.#tree.root()
  }

  #mismatch(): Error {
    const { size } = this.#expected ?? this.#tree
    return new Error(
      `${treePath(this.#path)} cannot be rebuilt: the ledger up to record ${size - 1} does not have the root of its checkpoint or of its list of ` +
        `segments: look with: plat audit verify ${this.#path}; then restore what differs from a copy`,
    )
  }

  async #copyCheckpoints(lines: readonly Buffer[]): Promise<void> {
    if (lines.length === 0) return
    await this.#checkpoints.appendFile(Buffer.concat(lines))
    await this.#checkpoints.datasync()
    this.#copiedUpTo = seqOf((lines.at(-1) ?? Buffer.alloc(0)).subarray(0, -1)) ?? this.#copiedUpTo
  }

  async close(): Promise<void> {
    this.#tree.close()
    await Promise.all([this.#ledger.close(), this.#checkpoints.close()])
  }
}

/** Returns the last segment that left, and those after it. */
async function sinceLeft(ledger: LedgerSequence): Promise<readonly LedgerSegment[]> {
  const { parts } = ledger
  const at = parts.findLastIndex(({ leftUpTo }) => leftUpTo !== null)
  const left = await ledger.segmentOf(parts[at]?.leftUpTo ?? -1)
  const here = parts.slice(at + 1).flatMap(({ segment }) => (segment === null ? [] : [segment]))
  return left === null ? here : [left, ...here]
}
