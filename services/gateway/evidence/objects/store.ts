import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { type EvidenceHead, type HoldTarget, readEvidenceHead, textOfTarget } from '@plat/ledger'
import { isMissing } from '@plat/state'

const SUFFIX = '.evidence'
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Maximum length of the first line, in bytes: it holds a checkpoint and its anchor. */
const HEAD_MAX_BYTES = 1024 * 1024
const LF = 0x0a

/** Evidence objects as files of one folder, each written atomically and only once. */
export class EvidenceStore {
  readonly #dir: string
  #targets: ReadonlyMap<string, HoldTarget> = new Map()

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

  /** Returns what each object is about, each once. Reads only heads of objects that are new since the last call. */
  async targets(): Promise<readonly HoldTarget[]> {
    const targets = new Map<string, HoldTarget>()
    for (const id of await this.ids()) {
      const known = this.#targets.get(id)
      const head = known === undefined ? await this.head(id) : null
      const target = known ?? (head === null ? undefined : targetOf(head))
      if (target !== undefined) targets.set(id, target)
    }
    this.#targets = targets
    return [...new Map([...targets.values()].map((target) => [textOfTarget(target), target])).values()]
  }

  /** Returns the object whose head was read. */
  bytes(id: string): Promise<Buffer> {
    return readFile(this.#fileOf(id))
  }

  #fileOf(id: string): string {
    return path.join(this.#dir, id + SUFFIX)
  }
}

/** Returns the session or agent, or the range if it is about others. */
function targetOf({ about: { namespace, agent, session }, from, to }: EvidenceHead): HoldTarget {
  if (namespace === undefined || agent === undefined) return { from, to }
  return session === undefined ? { agent: `${namespace}/${agent}` } : { session: `${namespace}/${agent}/${session}` }
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
