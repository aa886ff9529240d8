import type { Steps } from '@plat/core'
import { accepts, beforeAt, conditionsBetween, kindOf, OPS, type Program } from './program.ts'

/** Threads that are moved by a character in one step. */
const STEP_THREADS = 16 * 1024

/** From `start` to before `end` of a text. */
export interface Match {
  readonly start: number
  readonly end: number
}

/** Places in a program, each once, in the order of preference, with where their match began. */
class Threads {
  readonly places: Int32Array
  readonly starts: Int32Array
  size = 0
  readonly #seen: Uint32Array
  #round = 0

  constructor(length: number) {
    this.places = new Int32Array(length)
    this.starts = new Int32Array(length)
    this.#seen = new Uint32Array(length)
  }

  clear(): void {
    this.size = 0
    this.#round++
  }

  /** Whether a place is seen for the first time since `clear`. */
  isNew(place: number): boolean {
    if (this.#seen[place] === this.#round) return false
    this.#seen[place] = this.#round
    return true
  }

  push(place: number, start: number): void {
    this.places[this.size] = place
    this.starts[this.size] = start
    this.size++
  }
}

/**
 * Finds where an expression matches: the leftmost match, and of those that begin there the one that the expression prefers, as in RE2. Its work is
 * proportional to the text and to the length of the program. Not to be used for two texts at a time.
 */
export class ThreadList {
  readonly #program: Program
  /** Places after the last character, and those reached from them. */
  #moved: Threads
  #reached: Threads
  readonly #open: number[] = []
  #match: Match | null = null
  /** Threads moved since it was created. */
  moves = 0

  constructor(program: Program) {
    this.#program = program
    this.#moved = new Threads(program.instructions.length)
    this.#reached = new Threads(program.instructions.length)
  }

  /** Returns the first match that begins at `from` or later, or null; also null once `moves` exceed `maxMoves`. */
  *find(text: string, from: number, maxMoves: number): Steps<Match | null> {
    this.#match = null
    this.#moved.clear()
    let left = STEP_THREADS
    for (let at = from; at <= text.length; ) {
      const rune = at < text.length ? (text.codePointAt(at) ?? 0) : -1
      this.#reach(conditionsBetween(beforeAt(text, at), kindOf(rune)), at)
      const { size } = this.#reached
      if (size === 0 && this.#match !== null) break
      if (rune === -1) break
      this.#consume(rune)
      this.moves += size + 1
      if (this.moves > maxMoves) return null
      left -= size + 1
      at += rune > 0xffff ? 2 : 1
      if (left > 0) continue
      left = STEP_THREADS
      yield
    }
    return this.#match
  }

  /** Follows each thread, and a new one from the start, to the places that accept a character. A match ends those that are preferred less. */
  #reach(met: number, at: number): void {
    const moved = this.#moved
    this.#reached.clear()
    for (let thread = 0; thread < moved.size; thread++) {
      const start = moved.starts[thread] ?? 0
      if (this.#follow(moved.places[thread] ?? 0, start, met)) {
        this.#match = { start, end: at }
        return
      }
    }
    if (this.#match === null && this.#follow(this.#program.start, at, met)) this.#match = { start: at, end: at }
  }

  /** Whether a match was reached. */
  #follow(from: number, start: number, met: number): boolean {
    const { instructions } = this.#program
    const open = this.#open
    open.length = 0
    open.push(from)
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      const one = instructions[place]
      if (one === undefined || !this.#reached.isNew(place)) continue
      if (one.op === OPS.match) return true
      if (one.op === OPS.alt || one.op === OPS.altMatch) open.push(one.arg, one.out)
      else if (one.op === OPS.capture || one.op === OPS.nop) open.push(one.out)
      else if (one.op === OPS.emptyWidth) {
        if ((one.arg & ~met) === 0) open.push(one.out)
      } else if (one.op !== OPS.fail) this.#reached.push(place, start)
    }
    return false
  }

  #consume(rune: number): void {
    const { places, starts, size } = this.#reached
    const { instructions } = this.#program
    const moved = this.#moved
    moved.clear()
    for (let thread = 0; thread < size; thread++) {
      const one = instructions[places[thread] ?? 0]
      // Two threads may move to the same place: the preferred one is followed first.
      if (one !== undefined && accepts(one, rune)) moved.push(one.out, starts[thread] ?? 0)
    }
  }
}
