import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Slots } from './slots.ts'

const FILE = /^[0-9a-f]{32}\.slot$/
const EMPTY_FILE = Buffer.alloc(0)
/** State of a context without a slot, without a file and without a request. */
const UNUSED = { slot: null, hasFile: false, isBusy: false, isDropped: false } as const

/** A context: in a slot, in a file, or empty. */
interface Context {
  /** Null: it is in no slot. */
  slot: number | null
  /** Whether there is a file with its state, which is older than the slot if it is in one. */
  hasFile: boolean
  isBusy: boolean
  /** It was dropped while a request used it. */
  isDropped: boolean
}

/** A result of the protocol of context engines (docs/context-engines.md). */
export type ContextResult = 'created' | 'exists' | 'done' | 'missing' | 'busy'

export interface SavedFile {
  readonly bytes: number
  readonly sha256: string
}

/**
 * Contexts of sessions in the slots of llama.cpp's server. There may be more contexts than slots: the least recently used one that no request uses
 * is saved to a file, and restored in whatever slot is free when it is used again. Operations run one at a time, requests of models do not.
 */
export class SlotContexts {
  readonly #slots: Slots
  readonly #dir: string
  /** Context of each slot. */
  readonly #holders: (string | null)[]
  /** The least recently used first. */
  readonly #contexts = new Map<string, Context>()
  #last: Promise<unknown> = Promise.resolve()

  private constructor(slots: Slots, dir: string, count: number) {
    this.#slots = slots
    this.#dir = dir
    this.#holders = new Array<string | null>(count).fill(null)
  }

  /** Erases all slots and the files of an earlier run. `dir`: `--slot-save-path`. */
  static async open(slots: Slots, dir: string): Promise<SlotContexts> {
    const count = await slots.count()
    for (let slot = 0; slot < count; slot++) await slots.erase(slot)
    for (const name of await readdir(dir)) if (FILE.test(name)) await rm(join(dir, name))
    return new SlotContexts(slots, dir, count)
  }

  /** Creates a context unless it exists, as a copy of `from` if that is not null. */
  create(id: string, from: string | null): Promise<ContextResult> {
    return this.#alone(async () => {
      if (this.#contexts.has(id)) return 'exists'
      const parent = from === null ? null : this.#contexts.get(from)
      if (parent === undefined || (from !== null && parent === null)) return 'missing'
      if (parent?.isBusy === true) return 'busy'
      const hasFile = from !== null && parent !== null && (await this.#write(from, parent, id))
      this.#contexts.set(id, { ...UNUSED, hasFile })
      return 'created'
    })
  }

  /** A context that a request uses is dropped after it. */
  drop(id: string): Promise<ContextResult> {
    return this.#alone(async () => {
      const context = this.#contexts.get(id)
      if (context === undefined) return 'missing'
      context.isDropped = context.isBusy
      if (context.isBusy) return 'done'
      if (context.slot !== null) await this.#empty(context.slot)
      await rm(this.#path(id), { force: true })
      this.#contexts.delete(id)
      return 'done'
    })
  }

  /** Writes a context to a file anywhere. */
  save(id: string, path: string): Promise<ContextResult | SavedFile> {
    return this.#alone(async () => {
      const context = this.#contexts.get(id)
      if (context === undefined) return 'missing'
      if (context.isBusy) return 'busy'
      if (await this.#write(id, context, id)) await copyFile(this.#path(id), path)
      else await writeFile(path, EMPTY_FILE)
      return await describe(path)
    })
  }

  /** Replaces a context with that of a file. */
  load(id: string, path: string): Promise<ContextResult | SavedFile> {
    return this.#alone(async () => {
      const found = await stat(path).catch(() => null)
      const context = this.#contexts.get(id) ?? UNUSED
      if (found === null) return 'missing'
      if (context.isBusy) return 'busy'
      if (context.slot !== null) await this.#empty(context.slot)
      await copyFile(path, this.#path(id))
      this.#contexts.set(id, { ...UNUSED, hasFile: found.size > 0 })
      return await describe(path)
    })
  }

  /** Returns the slot in which the context is until `release`. */
  acquire(id: string): Promise<number | 'missing' | 'busy'> {
    return this.#alone(async () => {
      const context = this.#contexts.get(id)
      if (context === undefined || context.isDropped) return 'missing'
      if (context.isBusy) return 'busy'
      const slot = context.slot ?? (await this.#freeSlot())
      if (slot === null) return 'busy'
      if (context.slot === null && context.hasFile && !(await this.#slots.restore(slot, fileOf(id)))) {
        this.#contexts.delete(id)
        return 'missing'
      }
      this.#holders[slot] = id
      context.slot = slot
      context.isBusy = true
      this.#contexts.delete(id)
      this.#contexts.set(id, context)
      return slot
    })
  }

  async release(id: string): Promise<void> {
    const context = this.#contexts.get(id)
    if (context === undefined) return
    context.isBusy = false
    if (context.isDropped) await this.drop(id)
  }

  /** Returns an erased slot: a free one, or that of the least recently used context; null if requests use all. */
  async #freeSlot(): Promise<number | null> {
    const free = this.#holders.indexOf(null)
    if (free >= 0) return free
    for (const [id, context] of this.#contexts) {
      if (context.slot === null || context.isBusy) continue
      const { slot } = context
      context.hasFile = await this.#write(id, context, id)
      await this.#empty(slot)
      context.slot = null
      return slot
    }
    return null
  }

  /** Writes the state of a context to the file of `to`. Returns false if it is empty. */
  async #write(id: string, context: Context, to: string): Promise<boolean> {
    if (context.slot !== null) {
      await this.#slots.save(context.slot, fileOf(to))
      return true
    }
    if (!context.hasFile) return false
    if (to !== id) await copyFile(this.#path(id), this.#path(to))
    return true
  }

  async #empty(slot: number): Promise<void> {
    await this.#slots.erase(slot)
    this.#holders[slot] = null
  }

  #path(id: string): string {
    return join(this.#dir, fileOf(id))
  }

  #alone<T>(job: () => Promise<T>): Promise<T> {
    const next = this.#last.then(job, job)
    this.#last = next.catch(() => {})
    return next
  }
}

function fileOf(id: string): string {
  return `${id}.slot`
}

async function describe(path: string): Promise<SavedFile> {
  const digest = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path)) {
    digest.update(chunk)
    bytes += chunk.length
  }
  return { bytes, sha256: digest.digest('hex') }
}
