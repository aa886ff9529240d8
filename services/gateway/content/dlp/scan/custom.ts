import { createRequire } from 'node:module'
import type { Steps } from '@plat/core'
import type { Detector } from '../detectors/detector.ts'
import type { Hit } from './scan-state.ts'

/** A detector of a profile's own. */
export interface Custom {
  /** It matches nothing shorter, in characters; at least 1. */
  readonly shortest: number
  /** Whether it is certain that no part of the text matches. */
  isAbsentFrom(text: string): boolean
  /** Adds what begins between `start` and `end` of a text; a step after each hit. */
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

/** Throws where `expressionFault` has a word. */
export function createCustom(detector: Detector, regex: string): Custom {
  const pattern = expressions().RE2JS.compile(regex)
  const program = pattern.re2()
  const shortest = shortestMatch(program.prog)
  const isFree = isContextFree(program.prog)
  // The automaton of the library reports whether there is a match ten times as fast as where it is.
  const isAnywhere = (text: string, start: number) =>
    program.matchWithGroup(text, start, text.length, UNANCHORED, 0)[0] !== false
  return {
    shortest,
    isAbsentFrom: (text) => isFree && !isAnywhere(text, 0),
    *find(text, start, end, hits) {
      if (end - start < shortest) return
      const read = end === text.length ? text : text.slice(0, end)
      if (!isAnywhere(read, start)) return
      const matcher = pattern.matcher(read)
      for (let found = matcher.find(start); found; found = matcher.find()) {
        // An expression may match nothing at some places only.
        if (matcher.end() > matcher.start()) hits.push({ detector, start: matcher.start(), end: matcher.end() })
        yield
      }
    },
  }
}

/** A match may begin anywhere. */
const UNANCHORED = 0

/** Instructions of the library's programs: two ways to go on, and those that take a character. */
const FORKS: ReadonlySet<number> = new Set([1, 2])
const TAKES: ReadonlySet<number> = new Set([8, 9, 10, 11])
/** Other instructions that look at nothing around them: ends of groups, matches, failures. */
const PLAIN: ReadonlySet<number> = new Set([3, 5, 6, 7])
const MATCH = 6
const FAIL = 5

type Program = ReturnType<InstanceType<Library['RE2JS']>['re2']>['prog']

/** Characters on the shortest way through a program; 1 where there is a shorter one: an empty match is no hit. */
function shortestMatch(program: Program): number {
  const seen = new Set<number>()
  let level: number[] = [program.start]
  for (let length = 0; level.length > 0; length++) {
    const next: number[] = []
    for (const at of level) {
      if (seen.has(at)) continue
      seen.add(at)
      const { op, out, arg } = program.getInst(at)
      if (op === MATCH) return Math.max(1, length)
      if (op === FAIL) continue
      if (TAKES.has(op)) next.push(out)
      else level.push(...(FORKS.has(op) ? [out, arg] : [out]))
    }
    level = next
  }
  return 1
}

/** Whether an expression matches a part of a text only where it matches in the whole: it depends on nothing around its match. */
function isContextFree(program: Program): boolean {
  for (let at = 0; at < program.numInst(); at++) {
    const { op } = program.getInst(at)
    if (!FORKS.has(op) && !TAKES.has(op) && !PLAIN.has(op)) return false
  }
  return true
}
