import type { Steps } from '@plat/core'
import { accepts, type Before, beforeAt, conditionsBetween, kindOf, OPS, type Program } from './program.ts'

/** Characters that are read in one step. */
const STEP_CHARS = 64 * 1024
/** Known states and transitions of characters beyond ASCII; beyond them, all are computed anew. */
const MAX_STATES = 1000
const MAX_WIDE = 10_000
const LAST_ASCII = 0x7f

/** A set of places in the program, with the kind of the last character. */
interface State {
  readonly places: readonly number[]
  readonly before: Before
  /** By character. */
  readonly ascii: (State | undefined)[]
  readonly wide: Map<number, State>
}

/** Where a match is, roughly: it begins at `from` or later. The first to end ends at `to`. */
export interface Region {
  readonly from: number
  readonly to: number
}

/**
 * Finds out whether and where an expression matches, by states that are computed when they are needed: one look-up per character. The states
 * hold nothing of a text.
 */
export class States {
  readonly #program: Program
  readonly #known = new Map<string, State>()
  readonly #matched: State = { places: [], before: 0, ascii: [], wide: new Map() }
  #wide = 0

  constructor(program: Program) {
    this.#program = program
  }

  /** Returns the region of the first match to end that begins at `from` or later, or null. */
  *find(text: string, from: number): Steps<Region | null> {
    const { length } = text
    let state = this.#idle(text, from)
    let idleAt = from
    for (let at = from; at < length; ) {
      const stop = Math.min(length, at + STEP_CHARS)
      while (at < stop) {
        if (state.places.length === 0) {
          idleAt = this.#skip(text, at)
          if (idleAt === -1) return null
          if (idleAt > at) state = this.#idle(text, idleAt)
          at = idleAt
        }
        const code = text.charCodeAt(at)
        const rune = code > LAST_ASCII ? (text.codePointAt(at) ?? code) : code
        const next = (code > LAST_ASCII ? state.wide.get(rune) : state.ascii[code]) ?? this.#next(state, rune)
        if (next === this.#matched) return { from: idleAt, to: at }
        state = next
        at += rune > 0xffff ? 2 : 1
      }
      yield
    }
    return this.#reach(state, -1) === null ? { from: idleAt, to: length } : null
  }

  /** Where a match can begin at `at` or later; -1 if nowhere. */
  #skip(text: string, at: number): number {
    const { prefix } = this.#program
    return prefix === '' ? at : text.indexOf(prefix, at)
  }

  #idle(text: string, at: number): State {
    return this.#state([], this.#before(beforeAt(text, at)))
  }

  #before(kind: Before): Before {
    return this.#program.isContextFree ? 0 : kind
  }

  #state(places: readonly number[], before: Before): State {
    const name = `${before}:${places.join()}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (this.#known.size >= MAX_STATES) this.#forget()
    const state: State = { places, before, ascii: Array(LAST_ASCII + 1).fill(undefined), wide: new Map() }
    this.#known.set(name, state)
    return state
  }

  /** States in use go on, without what they lead to. */
  #forget(): void {
    for (const { ascii, wide } of this.#known.values()) {
      ascii.fill(undefined)
      wide.clear()
    }
    this.#known.clear()
    this.#wide = 0
  }

  #next(state: State, rune: number): State {
    const reached = this.#reach(state, rune)
    const next =
      reached === null ? this.#matched : this.#state(this.#consume(reached, rune), this.#before(kindOf(rune)))
    if (rune <= LAST_ASCII) state.ascii[rune] = next
    else {
      if (this.#wide++ >= MAX_WIDE) this.#forget()
      state.wide.set(rune, next)
    }
    return next
  }

  #consume(reached: readonly number[], rune: number): readonly number[] {
    const places = new Set<number>()
    for (const place of reached) {
      const one = this.#program.instructions[place]
      if (one !== undefined && accepts(one, rune)) places.add(one.out)
    }
    return [...places].sort((one, other) => one - other)
  }

  /** The places that accept a character, from a state and from the start; null if there is a match before `rune`. */
  #reach({ places, before }: State, rune: number): readonly number[] | null {
    const { instructions, start } = this.#program
    const met = conditionsBetween(before, kindOf(rune))
    const seen = new Set<number>()
    const reached: number[] = []
    const open = [start, ...places]
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      const one = instructions[place]
      if (one === undefined || seen.has(place)) continue
      seen.add(place)
      if (one.op === OPS.match) return null
      if (one.op === OPS.alt || one.op === OPS.altMatch) open.push(one.out, one.arg)
      else if (one.op === OPS.capture || one.op === OPS.nop) open.push(one.out)
      else if (one.op !== OPS.emptyWidth) reached.push(place)
      else if ((one.arg & ~met) === 0) open.push(one.out)
    }
    return reached
  }
}
