import { closest, glob } from '@plat/core'

/** Names of one sort that exist. */
export class Names {
  /** In messages: `MCP server`. */
  readonly what: string
  readonly #known: ReadonlySet<string>

  constructor(what: string, known: Iterable<string>) {
    this.what = what
    this.#known = new Set(known)
  }

  get all(): ReadonlySet<string> {
    return this.#known
  }

  matched(pattern: string): readonly string[] {
    if (!pattern.includes('*')) return this.#known.has(pattern) ? [pattern] : []
    return [...this.#known].filter(glob(pattern))
  }

  /** Returns problem and fix of a pattern that matches no name; null if it matches one. */
  problem(pattern: string): string | null {
    if (pattern === '*' || this.matched(pattern).length > 0) return null
    const verb = pattern.includes('*') ? 'matches' : 'is named'
    return `no ${this.what} ${verb} ${JSON.stringify(pattern)}; ${this.#fix(pattern)}`
  }

  /** Returns problem and fix of a name that nothing else has and that resembles one; null for every other name. */
  misspelling(name: string): string | null {
    if (name.includes('*') || this.#known.has(name)) return null
    const meant = closest(name, this.#known)
    return meant === null ? null : `no other ${this.what} is named ${JSON.stringify(name)}; ${didYouMean(meant)}`
  }

  #fix(pattern: string): string {
    const meant = closest(pattern, this.#known)
    if (meant !== null) return didYouMean(meant)
    if (this.#known.size === 0) return 'there is none: declare it, or remove this entry'
    const names = [...this.#known].toSorted()
    const listed = names.slice(0, SHOWN_MAX).join(', ')
    return `declare it, or name one of ${listed}${names.length > SHOWN_MAX ? ', …' : ''}`
  }
}

const SHOWN_MAX = 5

function didYouMean(name: string): string {
  return `did you mean ${JSON.stringify(name)}?`
}
