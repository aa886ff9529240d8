import { type FileHandle, open } from 'node:fs/promises'
import { readerOf, seqOf, startOfLast } from '../find.ts'
import type { Head } from '../format.ts'
import { scanBuffer, scanLines } from '../lines.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { checkpointsPath, isCheckpointLine, lastCheckpoint, treePath } from './stored-checkpoint.ts'
import { leafHash } from './tree.ts'
import { TreeFile } from './tree-file.ts'

const FILE_MODE = 0o600
/** Offset of the hash in a line: after `{"hash":"`. */
const HASH_START = 9
const HASH_END = HASH_START + 64

interface GrowerFiles {
  readonly ledger: LedgerSequence
  readonly checkpoints: FileHandle
  readonly tree: TreeFile
}

/**
 * Extends the tree of a ledger by the records written to its file, and copies checkpoint lines beside it. Starts at the last checkpoint, or from
 * zero when the files beside the ledger do not match it.
 */
export class TreeGrower {
  readonly #ledger: LedgerSequence
  readonly #checkpoints: FileHandle
  readonly #tree: TreeFile
  readonly #buffer = scanBuffer()
  /** Offset in the ledger of the next leaf. */
  #offset: number
  /** Last record whose checkpoints are copied beside the ledger. */
  #copiedUpTo: number

  private constructor(files: GrowerFiles, offset: number, copiedUpTo: number) {
    this.#ledger = files.ledger
    this.#checkpoints = files.checkpoints
    this.#tree = files.tree
    this.#offset = offset
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
    const { size, root } = last?.rec ?? {}
    const resumed = typeof size === 'number' && typeof root === 'string' ? tree.resume(size, root) : tree.resume(0, '')
    const grower = new TreeGrower({ ledger, checkpoints, tree }, await ledger.startOf(resumed), last?.seq ?? -1)
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
      this.#tree.add(leafHash(line))
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
