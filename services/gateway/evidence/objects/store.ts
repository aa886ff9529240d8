import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { type EvidenceHead, type LedgerSegment, readEvidenceHead } from '@plat/ledger'
import { isMissing } from '@plat/state'
import { EvidenceSegments, EvidenceUnreadableError } from './evidence-segments.ts'

const SUFFIX = '.evidence'
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Maximum length of the first line, in bytes: it holds a checkpoint and its anchor. */
const HEAD_MAX_BYTES = 1024 * 1024
const LF = 0x0a

/** Evidence objects as files of one folder, each written atomically and only once. */
export class EvidenceStore {
  readonly #dir: string
  #known: ReadonlyMap<string, EvidenceSegments> = new Map()

  constructor(dir: string) {
    this.#dir = dir
  }

  /** Durable when it resolves. Rejects if the id is in use. */
  async put(id: string, bytes: Uint8Array): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 })
    const draft = path.join(this.#dir, `.${id}.draft`)
    try {
      await writeDurably(draft, bytes)
      // Unlike a rename, a link never replaces a file.
      await link(draft, this.#fileOf(id))
    } finally {
      await rm(draft, { force: true })
    }
    await syncFolder(this.#dir)
  }

  /** Returns ids, the newest first: ids increase with time. */
  async ids(): Promise<readonly string[]> {
    try {
      const names = await readdir(this.#dir)
      return names
        .filter((name) => name.endsWith(SUFFIX))
        .map((name) => name.slice(0, -SUFFIX.length))
        .filter((id) => ID.test(id))
        .toSorted()
        .reverse()
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  /** Returns null if there is no object of this id, or its version is unknown. */
  async head(id: string): Promise<EvidenceHead | null> {
    if (!ID.test(id)) return null
    try {
      const file = await open(this.#fileOf(id), 'r')
      try {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_MAX_BYTES), 0, HEAD_MAX_BYTES, 0)
        const end = buffer.subarray(0, bytesRead).indexOf(LF)
        return end === -1 ? null : readEvidenceHead(buffer.toString('utf8', 0, end))
      } finally {
        await file.close()
      }
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  /**
   * Returns which segments stay for the objects: those with a record of one. An object is read when the first segment of the range that was searched for
   * it is in question. Rejects when an object cannot be read: it may need any segment.
   */
  async needs(segments: readonly LedgerSegment[]): Promise<(segment: LedgerSegment) => Promise<boolean>> {
    const ids = await this.ids()
    const known = new Map<string, EvidenceSegments>()
    for (const id of ids) known.set(id, this.#known.get(id) ?? (await this.#segmentsOf(id)))
    this.#known = known
    return async (segment) => {
      for (const one of known.values()) if (await one.needs(segment, segments)) return true
      return false
    }
  }

  async #segmentsOf(id: string): Promise<EvidenceSegments> {
    const path = this.#fileOf(id)
    const head = await this.head(id)
    if (head === null) throw new EvidenceUnreadableError(path, 'its first line is not a head of an evidence object')
    return new EvidenceSegments(path, head)
  }

  /** Returns the object whose head was read. */
  bytes(id: string): Promise<Buffer> {
    return readFile(this.#fileOf(id))
  }

  #fileOf(id: string): string {
    return path.join(this.#dir, id + SUFFIX)
  }
}

async function writeDurably(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, 'wx', 0o400)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function syncFolder(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
