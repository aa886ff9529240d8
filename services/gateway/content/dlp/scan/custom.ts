import { createRequire } from 'node:module'
import type { Detector } from '../detectors/detector.ts'
import type { Hit } from './scan-state.ts'

/** A detector of a profile's own. */
export interface Custom {
  /** Adds what begins between `start` and `end` of a text. */
  find(text: string, start: number, end: number, hits: Hit[]): void
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
    return error instanceof Error ? error.message : 'is no expression'
  }
}

/** Throws where `expressionFault` has a word. */
export function createCustom(detector: Detector, regex: string): Custom {
  const pattern = expressions().RE2JS.compile(regex)
  return {
    find(text, start, end, hits) {
      const matcher = pattern.matcher(end === text.length ? text : text.slice(0, end))
      for (let found = matcher.find(start); found; found = matcher.find()) {
        // An expression may match nothing at some places only.
        if (matcher.end() > matcher.start()) hits.push({ detector, start: matcher.start(), end: matcher.end() })
      }
    },
  }
}
