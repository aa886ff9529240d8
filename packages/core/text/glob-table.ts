import { glob } from './glob.ts'

/** Table of names and patterns: an exact name beats a pattern, a longer pattern a shorter one; of equal length, the first in the alphabet. */
export class GlobTable<T> {
  /** Many tables are empty, and a look-up hashes its key. */
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

  /** Returns null when no entry matches. */
  find(name: string): T | null {
    if (this.#empty) return null
    return this.#exact.get(name) ?? this.#globs.find(({ matches }) => matches(name))?.value ?? null
  }
}
