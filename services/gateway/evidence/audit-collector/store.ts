import { mkdir, open, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { LineReader } from '@plat/ledger'
import { isMissing } from '@plat/state'
import type { EdgePositions, Stored } from './positions.ts'

const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

export interface EdgeStoreParts {
  readonly edge: string
  /** `<dir>/<edge>/ledger.jsonl`: the ledger as the edge wrote it. */
  readonly dir: string
  readonly places: EdgePositions
}

/**
 * Stored ledger of one edge. Lines are durable before the journal of positions covers them, and only covered lines are
 * acknowledged: lines left behind by a crash are cut off before the next write.
 */
export class EdgeStore {
  readonly #path: string
  readonly #parts: EdgeStoreParts
  readonly #reader: LineReader

  private constructor(parts: EdgeStoreParts) {
    this.#parts = parts
    this.#path = join(parts.dir, parts.edge, 'ledger.jsonl')
    this.#reader = new LineReader(this.#path)
  }

  /** Throws if acknowledged records are missing. */
  static async open(parts: EdgeStoreParts): Promise<EdgeStore> {
    const store = new EdgeStore(parts)
    await mkdir(join(parts.dir, parts.edge), { recursive: true, mode: FOLDER_MODE })
    const { upTo, head } = store.stored
    if (upTo >= 0 && (await store.hashOf(upTo)) !== head) {
      throw new Error(
        `${store.#path} does not hold record ${upTo}, which was acknowledged to edge ${parts.edge}: put the file back, or move it and its journal away to collect anew`,
      )
    }
    return store
  }

  get stored(): Stored {
    const { places, edge } = this.#parts
    return places.of(edge)
  }

  /** Returns null if the record does not exist. */
  async hashOf(seq: number): Promise<string | null> {
    try {
      return await this.#reader.hashOf(seq)
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  /** Appends lines. Durable when it resolves; after a failure none of them counts as stored. */
  async append(lines: Uint8Array, after: Omit<Stored, 'bytes'>, beforeCounted: () => Promise<void>): Promise<void> {
    const { places, edge } = this.#parts
    const before = this.stored.bytes
    await this.#cut(before)
    {
      await using file = await open(this.#path, 'a', FILE_MODE)
      await file.writeFile(lines)
      await file.datasync()
    }
    if (before === 0) await syncFolders(this.#parts)
    await beforeCounted()
    await places.keep(edge, { ...after, bytes: before + lines.length })
  }

  /** Removes lines that were never acknowledged. */
  async #cut(bytes: number): Promise<void> {
    try {
      await truncate(this.#path, bytes)
    } catch (error) {
      if (!isMissing(error) || bytes > 0) throw error
    }
  }
}

/** Syncs the folders too: only then a new file survives power loss. */
async function syncFolders({ dir, edge }: EdgeStoreParts): Promise<void> {
  for (const folder of [join(dir, edge), dir]) {
    await using handle = await open(folder, 'r')
    await handle.sync()
  }
}
