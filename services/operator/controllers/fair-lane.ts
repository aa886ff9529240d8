import { LinkedMap } from '@plat/core'

/** Keys of one namespace, with the time since which each waits. */
type Waiting = LinkedMap<string, number>

/**
 * Keys that wait, `<namespace>/<name>` or without a namespace. Namespaces take turns, so that one with many changed objects does not
 * delay those of another; within a namespace the key that was added first comes first.
 */
export class FairLane {
  /** The namespace whose turn it is comes first. */
  readonly #namespaces = new LinkedMap<string, Waiting>()
  #size = 0

  get size(): number {
    return this.#size
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  /** Since when the key waits. */
  get(key: string): number | undefined {
    return this.#namespaces.get(namespaceOf(key))?.get(key)
  }

  /** Adds a key that does not wait yet. */
  set(key: string, since: number): void {
    const namespace = namespaceOf(key)
    const waiting: Waiting = this.#namespaces.get(namespace) ?? new LinkedMap()
    this.#namespaces.set(namespace, waiting)
    waiting.set(key, since)
    this.#size++
  }

  delete(key: string): void {
    const namespace = namespaceOf(key)
    const waiting = this.#namespaces.get(namespace)
    if (waiting?.delete(key) !== true) return
    this.#size--
    if (waiting.size === 0) this.#namespaces.delete(namespace)
  }

  /** Removes the next key; null: none waits. */
  shift(): readonly [key: string, since: number] | null {
    const [namespace, waiting] = this.#namespaces.oldest ?? []
    const first = waiting?.oldest ?? null
    if (namespace === undefined || first === null) return null
    this.delete(first[0])
    this.#namespaces.renew(namespace)
    return first
  }
}

/** Keys without a namespace are one namespace. */
function namespaceOf(key: string): string {
  const slash = key.indexOf('/')
  return slash < 0 ? '' : key.slice(0, slash)
}
