/** Number of ASCII codes: anchors contain no others. */
const WIDTH = 128

/** A matched anchor with its payload. */
export interface Anchored<T> {
  readonly length: number
  readonly owner: T
}

/**
 * Finds any number of fixed words in one pass (Aho and Corasick, 1975): one step a character, whatever the words are. Words are ASCII.
 */
export class Automaton<T> {
  /** Transitions by state and character. */
  readonly next: Int16Array
  /** 1 if a word ends in this state. */
  readonly marks: Uint8Array
  readonly #found: readonly (readonly Anchored<T>[])[]
  /** Longest proper suffix that is also a prefix of a word. */
  readonly #shorter: Int16Array
  readonly #depth: readonly number[]

  constructor(words: readonly (readonly [word: string, owner: T])[]) {
    const trie = new Trie<T>()
    for (const [word, owner] of words) trie.add(word, owner)
    const { states } = trie
    this.next = new Int16Array(states.length * WIDTH)
    this.marks = new Uint8Array(states.length)
    this.#shorter = new Int16Array(states.length)
    this.#depth = states.map(({ depth }) => depth)
    const found: Anchored<T>[][] = states.map(({ ends }) => [...ends])
    for (const state of trie.inBreadth()) this.#link(states, state, found)
    this.#found = found
  }

  /** Requires the links of all states of lower depth. */
  #link(states: readonly State<T>[], state: number, found: Anchored<T>[][]): void {
    const { next, marks } = this
    const shorter = this.#shorter[state] ?? 0
    if (state !== 0) found[state]?.push(...(found[shorter] ?? []))
    marks[state] = (found[state]?.length ?? 0) > 0 ? 1 : 0
    for (let code = 0; code < WIDTH; code++) {
      const onward = state === 0 ? 0 : (next[shorter * WIDTH + code] ?? 0)
      const child = states[state]?.children.get(code)
      next[state * WIDTH + code] = child ?? onward
      if (child !== undefined) this.#shorter[child] = onward
    }
  }

  /** Words that end in this state, the longest first. */
  found(state: number): readonly Anchored<T>[] {
    return this.#found[state] ?? []
  }

  /** Lengths of suffixes that are prefixes of a word, the longest first. */
  *begun(state: number): Generator<number> {
    for (let at = state; at !== 0; at = this.#shorter[at] ?? 0) yield this.#depth[at] ?? 0
  }
}

interface State<T> {
  readonly depth: number
  readonly children: Map<number, number>
  readonly ends: Anchored<T>[]
}

class Trie<T> {
  readonly states: State<T>[] = [{ depth: 0, children: new Map(), ends: [] }]

  add(word: string, owner: T): void {
    let state = this.states[0]
    for (const char of word) {
      const code = char.charCodeAt(0)
      const depth = (state?.depth ?? 0) + 1
      const child = state?.children.getOrInsertComputed(
        code,
        () => this.states.push({ depth, children: new Map(), ends: [] }) - 1,
      )
      state = child === undefined ? undefined : this.states[child]
    }
    state?.ends.push({ length: word.length, owner })
  }

  /** All states in breadth-first order. */
  *inBreadth(): Generator<number> {
    const queue = [0]
    for (const state of queue) {
      yield state
      queue.push(...(this.states[state]?.children.values() ?? []))
    }
  }
}
