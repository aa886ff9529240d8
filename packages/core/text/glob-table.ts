import { glob } from './glob.ts'

/** What is known by names and patterns: an exact name beats a pattern, the longer pattern beats the shorter; of two as long, the first in the alphabet. */
export class GlobTable<T> {
  /** Many tables hold nothing, and a look-up hashes its key. */
  readonly #empty: boolean
  readonly #exact: ReadonlyMap<string, T>
  readonly #globs: readonly { readonly matches: (text: string) => boolean; readonly value: T }[]

  constructor(entries: readonly (readonly [pattern: string, value: T])[]) {
    this.#empty = entries.length === 0
    this.#exact = new Map(entries.filter(([pattern]) => !pattern.includes('*')))
    this.#globs = entries
      .filter(([pattern]) => pattern.includes('*'))
      .sort(([one], [other]) => other.length - one.length || (one < other ? -1 : 1))
      .map(([pattern, value]) => ({ matches: glob(pattern), value }))
  }

  /** Null: nothing is known of this name. */
  find(name: string): T | null {
    if (this.#empty) return null
    return this.#exact.get(name) ?? this.#globs.find(({ matches }) => matches(name))?.value ?? null
  }
}
