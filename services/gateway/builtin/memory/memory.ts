import type { SharedPool } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { journalKey, type MemoryEvent, readJournalKey, type Written } from './events.ts'
import { type Owner, ownerKey } from './owner.ts'

/** Approximate overhead of an item beside its text, in bytes. */
const ITEM_BYTES = 512
/** The journal is compacted when it holds this many more bytes than needed. */
export const SPARE_MAX_BYTES = 16 * 1024 * 1024

/** A stored item. */
export interface Item extends Omit<Written, 't'> {
  readonly key: string
  /** Number of its events in the journal. */
  readonly version: number
}

export interface MemoryOptions {
  readonly journal: Journal<MemoryEvent>
  /** Called when the journal could not be written. */
  readonly onFault: (error: unknown) => void
  /** Bytes of each namespace and owner, including pending writes. */
  readonly pool: SharedPool
}

class Drawer {
  readonly owner: Owner
  readonly items = new Map<string, Item>()
  /** Number of pending writes by key. */
  readonly arriving = new Map<string, number>()

  constructor(owner: Owner) {
    this.owner = owner
  }
}

/** The limit that prevents a write. */
export type NoRoom = 'items' | 'bytes'

/** All items: a projection of the journal, which every replica follows. */
export class Memory {
  readonly #options: MemoryOptions
  readonly #drawers = new Map<string, Drawer>()
  readonly #pool: SharedPool
  readonly #follower: JournalFollower<MemoryEvent>
  /** Approximate number of obsolete bytes in the journal. */
  #spareBytes = 0
  #compacting: Promise<void> | null = null

  private constructor(options: MemoryOptions) {
    this.#options = options
    this.#pool = options.pool
    const { journal, onFault } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      apply: (entry) => this.#follow(entry),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal first. Rejects if it cannot be read. */
  static async open(options: MemoryOptions): Promise<Memory> {
    const memory = new Memory(options)
    await memory.#follower.open()
    return memory
  }

  async close(): Promise<void> {
    this.#follower.close()
    await this.#compacting
  }

  get(owner: Owner, key: string): Item | null {
    return this.#drawers.get(ownerKey(owner))?.items.get(key) ?? null
  }

  list(owner: Owner): readonly Item[] {
    const items = [...(this.#drawers.get(ownerKey(owner))?.items.values() ?? [])]
    return items.sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  *owners(): Generator<{ readonly owner: Owner; readonly items: Iterable<Item> }> {
    for (const { owner, items } of this.#drawers.values()) if (items.size > 0) yield { owner, items: items.values() }
  }

  /** Resolves with null when durable. Rejects if the journal fails. */
  async write(
    owner: Owner,
    { key, maxItems, written }: { readonly key: string; readonly maxItems: number; readonly written: Written },
  ): Promise<NoRoom | null> {
    const drawer = this.#drawerOf(owner)
    const bytes = sizeOf(written.text)
    const isNew = !drawer.items.has(key) && !drawer.arriving.has(key)
    const arrivingNew = [...drawer.arriving.keys()].filter((other) => !drawer.items.has(other)).length
    if (isNew && drawer.items.size + arrivingNew >= maxItems) return this.#refuse(drawer, 'items')
    if (this.#pool.acquire(callersOf(owner), bytes) !== null) return this.#refuse(drawer, 'bytes')
    drawer.arriving.set(key, (drawer.arriving.get(key) ?? 0) + 1)
    try {
      await this.#options.journal.append(journalKey(owner, key), [written])
      return null
    } finally {
      // From the journal on, `#follow` counts it.
      this.#pool.release(callersOf(owner), bytes)
      const left = (drawer.arriving.get(key) ?? 0) - 1
      if (left > 0) drawer.arriving.set(key, left)
      else drawer.arriving.delete(key)
      this.#dropEmpty(drawer)
    }
  }

  /** Resolves when durably removed. Rejects if the journal fails. */
  async remove(owner: Owner, key: string): Promise<void> {
    await this.#options.journal.append(journalKey(owner, key), [{ t: 'removed' }])
  }

  /** Removes matching items and returns their number once none is in the journal. Rejects if it fails. */
  async erase(matches: (owner: Owner, item: Item) => boolean): Promise<number> {
    const found = [...this.owners()].flatMap(({ owner, items }) =>
      [...items].filter((item) => matches(owner, item)).map(({ key }) => ({ owner, key })),
    )
    await Promise.all(found.map(({ owner, key }) => this.remove(owner, key)))
    await this.compact()
    return found.length
  }

  /** Removes items that are not `kept`, also from the journal. Rejects if it fails. */
  async sweep(isKept: (owner: Owner, item: Item) => boolean): Promise<void> {
    let forgotten = 0
    for (const drawer of [...this.#drawers.values()]) {
      for (const item of [...drawer.items.values()]) {
        if (isKept(drawer.owner, item)) continue
        this.#take(drawer, item.key)
        forgotten++
      }
      this.#dropEmpty(drawer)
    }
    if (forgotten > 0) await this.compact()
  }

  /** Compacts the journal. Rejects if it fails. */
  async compact(): Promise<void> {
    // A running compaction may have begun before the last event.
    await this.#compacting?.catch(() => {})
    this.#compacting ??= this.#compact().finally(() => {
      this.#compacting = null
    })
    await this.#compacting
  }

  async #compact(): Promise<void> {
    const snapshot = () =>
      [...this.#drawers.values()].flatMap(({ owner, items }) =>
        [...items.values()].map(({ key, version, ...rest }) => ({
          key: journalKey(owner, key),
          version,
          event: { t: 'written', ...rest } as const,
        })),
      )
    const spare = this.#spareBytes
    await this.#follower.compact(snapshot)
    this.#spareBytes -= spare
  }

  #follow({ key: text, version, event }: JournalEntry<MemoryEvent>): void {
    const { owner, key } = readJournalKey(text)
    const drawer = this.#drawerOf(owner)
    this.#take(drawer, key)
    if (event.t === 'removed') this.#spareBytes += ITEM_BYTES
    else {
      const { t: _, ...rest } = event
      drawer.items.set(key, { ...rest, key, version })
      this.#pool.add(callersOf(owner), sizeOf(event.text))
    }
    this.#dropEmpty(drawer)
    if (this.#spareBytes > SPARE_MAX_BYTES && this.#compacting === null) this.compact().catch(this.#options.onFault)
  }

  /** Replaces all items by the journal's; pending writes stay. */
  #replace(entries: readonly JournalEntry<MemoryEvent>[]): void {
    for (const drawer of [...this.#drawers.values()]) {
      for (const key of [...drawer.items.keys()]) this.#take(drawer, key)
      this.#dropEmpty(drawer)
    }
    this.#spareBytes = 0
    for (const entry of entries) this.#follow(entry)
  }

  #take(drawer: Drawer, key: string): void {
    const before = drawer.items.get(key)
    if (before === undefined) return
    drawer.items.delete(key)
    const bytes = sizeOf(before.text)
    this.#pool.release(callersOf(drawer.owner), bytes)
    this.#spareBytes += bytes
  }

  #refuse(drawer: Drawer, why: NoRoom): NoRoom {
    this.#dropEmpty(drawer)
    return why
  }

  #drawerOf(owner: Owner): Drawer {
    return this.#drawers.getOrInsertComputed(ownerKey(owner), () => new Drawer(owner))
  }

  #dropEmpty(drawer: Drawer): void {
    if (drawer.items.size === 0 && drawer.arriving.size === 0) this.#drawers.delete(ownerKey(drawer.owner))
  }
}

/** Pool shares of an item: those of its namespace and its owner. */
function callersOf(owner: Owner): readonly [string, string] {
  return [`${owner.tenant}/${owner.namespace}`, ownerKey(owner)]
}

function sizeOf(text: string): number {
  return Buffer.byteLength(text) + ITEM_BYTES
}
