import type { Binding } from './binding.ts'

/** Share of the bindings of an agent that one search returns, since it looks at all of them. */
const FOUND_SHARE = 1 / 8

/** A binding as a search found it. */
interface Found {
  readonly key: string
  readonly binding: Binding
  readonly usedAt: number
}

/** Finds what each agent has not used for longest, one after the other, with one search for many of them. */
export class OldestBindings {
  readonly #bindings: ReadonlyMap<string, Binding>
  /** Results of the last search of each agent that were not returned yet, the oldest last. */
  readonly #found = new Map<string, Found[]>()

  constructor(bindings: ReadonlyMap<string, Binding>) {
    this.#bindings = bindings
  }

  /** Returns the binding that was not used for longest among these of an agent, or null if all are pending writes. */
  next(agent: string, keys: ReadonlySet<string>): Pick<Found, 'key' | 'binding'> | null {
    let found = this.#found.get(agent) ?? []
    let next = found.pop()
    // Results used or replaced since the search are not the oldest any more; all others still are.
    while (next !== undefined && !this.#isUnused(next)) next = found.pop()
    if (next === undefined) {
      found = this.#search(keys)
      this.#found.set(agent, found)
      next = found.pop()
    }
    if (found.length === 0) this.#found.delete(agent)
    return next ?? null
  }

  /** Called when an agent has no binding any more. */
  forget(agent: string): void {
    this.#found.delete(agent)
  }

  #isUnused({ key, binding, usedAt }: Found): boolean {
    return this.#bindings.get(key) === binding && binding.usedAt === usedAt && binding.writing === null
  }

  #search(keys: ReadonlySet<string>): Found[] {
    const known: Found[] = []
    for (const key of keys) {
      const binding = this.#bindings.get(key)
      if (binding?.writing === null) known.push({ key, binding, usedAt: binding.usedAt })
    }
    known.sort((one, other) => one.usedAt - other.usedAt)
    return known.slice(0, Math.ceil(known.length * FOUND_SHARE)).reverse()
  }
}
