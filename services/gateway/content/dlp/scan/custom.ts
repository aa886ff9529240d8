import { createRequire } from 'node:module'
import type { Steps } from '@plat/core'
import type { Detector } from '../detectors/detector.ts'
import { OPS, type Program, readProgram } from './program.ts'
import type { Hit } from './scan-state.ts'
import { States } from './states.ts'
import { ThreadList } from './threads.ts'

/** A detector of a profile's own. */
export interface Custom {
  /** It matches nothing shorter, in characters; at least 1. */
  readonly shortest: number
  /** Whether it is certain that no part of the text matches, in steps. */
  absentFrom(text: string): Steps<boolean>
  /** Adds what begins between `start` and `end` of a text, in steps. */
  find(text: string, start: number, end: number, hits: Hit[]): Steps<void>
}

type Library = typeof import('re2js')

let library: Library | null = null

/** Loaded by the first custom detector: most gateways have none. */
function expressions(): Library {
  if (library !== null) return library
  const loaded: Library = createRequire(import.meta.url)('re2js')
  library = loaded
  return loaded
}

/** Why an expression is none; null: it is one. Expressions are RE2's: without look-around and back-references. */
export function expressionFault(regex: string): string | null {
  const { RE2JS } = expressions()
  try {
    return RE2JS.compile(regex).matches('') ? 'matches the empty text' : null
  } catch (error) {
    return error instanceof Error ? error.message : 'is not an expression'
  }
}

/**
 * How often an expression may read a text, in the most work that reading it once can be. One that reads on after its match, such as
 * `a[^b]*b|a`, could otherwise read the rest of the text for each match.
 */
const MOST_READS = 8
/** Work that every text may cost, however short it is; one unit advances one thread by a character. */
const MIN_MOVES = 1_000_000

/**
 * Throws if `expressionFault` returns a fault. Finds what the library finds, which cannot be interrupted. If that is too much work for a text,
 * the rest of the text is one hit.
 */
export function createCustom(detector: Detector, regex: string): Custom {
  const program = readProgram(expressions().RE2JS.compile(regex).re2().prog)
  const shortest = shortestMatch(program)
  const states = new States(program)
  return {
    shortest,
    *absentFrom(text) {
      return program.isContextFree && (yield* states.find(text, 0)) === null
    },
    *find(text, start, end, hits) {
      if (end - start < shortest) return
      const read = end === text.length ? text : text.slice(0, end)
      let threads: ThreadList | null = null
      const maxMoves = MIN_MOVES + MOST_READS * program.instructions.length * (end - start)
      for (let at = start; at <= end; ) {
        const region = yield* states.find(read, at)
        if (region === null) return
        threads ??= new ThreadList(program)
        const match = (yield* threads.find(read, region.from, maxMoves)) ?? { start: region.from, end }
        // An expression may match nothing at some places only.
        const isEmpty = match.end === match.start
        if (!isEmpty) hits.push({ detector, ...match })
        at = isEmpty ? match.end + charsAt(read, match.end) : match.end
        yield
      }
    },
  }
}

/** UTF-16 units of the character at a position. */
function charsAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
}

/** Characters on the shortest way through a program; 1 where there is a shorter one: an empty match is not a hit. */
function shortestMatch({ start, instructions }: Program): number {
  const seen = new Set<number>()
  let level: number[] = [start]
  for (let length = 0; level.length > 0; length++) {
    const next: number[] = []
    for (const at of level) {
      const one = instructions[at]
      if (one === undefined || seen.has(at)) continue
      seen.add(at)
      const { op, out, arg } = one
      if (op === OPS.match) return Math.max(1, length)
      if (op === OPS.fail) continue
      if (op >= OPS.rune) next.push(out)
      else level.push(...(op === OPS.alt || op === OPS.altMatch ? [out, arg] : [out]))
    }
    level = next
  }
  return 1
}
