import { type FileHandle, open } from 'node:fs/promises'
import { offsetOf, seqOf } from '../find.ts'
import type { Head } from '../format.ts'
import { scanBuffer, scanLines } from '../lines.ts'
import { startOfLast } from '../tail.ts'
import { checkpointsPath, isCheckpointLine, lastCheckpoint, treePath } from './stored-checkpoint.ts'
import { leafHash } from './tree.ts'
import { TreeFile } from './tree-file.ts'

const FILE_MODE = 0o600
/** Where a line tells its hash: after `{"hash":"`. */
const HASH_START = 9
const HASH_END = HASH_START + 64

interface GrowerFiles {
  readonly ledger: FileHandle
  readonly checkpoints: FileHandle
  readonly tree: TreeFile
}

/**
 * Grows the tree of a ledger by what was written to it, read from its file, and puts the lines of checkpoints that it meets beside it.
 * It begins where the last checkpoint ends, and from nothing when what lies beside the ledger does not fit it.
 */
export class TreeGrower {
  readonly #ledger: FileHandle
  readonly #checkpoints: FileHandle
  readonly #tree: TreeFile
  readonly #buffer = scanBuffer()
  /** Byte of the ledger at which the next leaf begins. */
  #offset: number
  /** Checkpoints up to this record stand beside the ledger. */
  #told: number

  private constructor(files: GrowerFiles, offset: number, told: number) {
    this.#ledger = files.ledger
    this.#checkpoints = files.checkpoints
    this.#tree = files.tree
    this.#offset = offset
    this.#told = told
  }

  static async open(ledgerPath: string): Promise<TreeGrower> {
    const last = await lastCheckpoint(ledgerPath)
    await using opened = new AsyncDisposableStack()
    const ledger = opened.use(await open(ledgerPath, 'r'))
    const checkpoints = opened.use(await open(checkpointsPath(ledgerPath), 'a+', FILE_MODE))
    // A crash may leave half of a line; the ledger has the whole one.
    await checkpoints.truncate(await startOfLast(checkpoints, 0))
    const tree = new TreeFile(treePath(ledgerPath))
    opened.defer(() => tree.close())
    const { size, root } = last?.rec ?? {}
    const kept = typeof size === 'number' && typeof root === 'string' ? tree.resume(size, root) : tree.resume(0, '')
    const grower = new TreeGrower({ ledger, checkpoints, tree }, await offsetOf(ledger, kept), last?.seq ?? -1)
    opened.move()
    return grower
  }

  /** Answers the root over all records up to `to`, which is durable. Throws when the file holds something else there. */
  async grow(to: Head): Promise<string> {
    const found: Buffer[] = []
    let head = ''
    const onLine = (buffer: Buffer, start: number, end: number): boolean => {
      if (this.#tree.size > to.seq) return false
      const line = buffer.subarray(start, end)
      this.#tree.add(leafHash(line))
      this.#offset += line.length + 1
      head = line.toString('latin1', HASH_START, HASH_END)
      if (isCheckpointLine(line) && (seqOf(line) ?? -1) > this.#told)
        found.push(Buffer.from(buffer.subarray(start, end + 1)))
      return true
    }
    const read = async (target: Uint8Array, position: number) =>
      (await this.#ledger.read(target, 0, target.length, position)).bytesRead
    if (this.#tree.size <= to.seq) await scanLines({ read }, { from: this.#offset, buffer: this.#buffer, onLine })
    if (this.#tree.size !== to.seq + 1 || (head !== '' && head !== to.hash)) {
      throw new Error(`the ledger file no longer holds record ${to.seq} as it was written`)
    }
    this.#tree.sync()
    await this.#tell(found)
    return this.#tree.root()
  }

  async #tell(lines: readonly Buffer[]): Promise<void> {
    if (lines.length === 0) return
    await this.#checkpoints.appendFile(Buffer.concat(lines))
    await this.#checkpoints.datasync()
    this.#told = seqOf((lines.at(-1) ?? Buffer.alloc(0)).subarray(0, -1)) ?? this.#told
  }

  async close(): Promise<void> {
    this.#tree.close()
    await Promise.all([this.#ledger.close(), this.#checkpoints.close()])
  }
}
