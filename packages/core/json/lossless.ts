import { runAtOnce, type Steps } from '../slices.ts'
import { type JsonOptions, parseStrict } from './check.ts'
import { textOf } from './names.ts'
import { exactMarks, MARK, withMarks } from './number-marks.ts'
import { parseChecked } from './parse.ts'
import type { RawJson } from './raw.ts'

/** Whether `JSON.stringify` writes back every number literal of this JSON identically. */
export function hasPlainNumbers(json: Uint8Array): boolean {
  return exactMarks(json).literals === 0
}

/**
 * Returns the value, where each number literal that `JSON.stringify` would not write back identically is a `JSON.rawJSON` value:
 * 12345678901234567890, 1.0, 1e3, -0. So a changed body keeps all unchanged numbers.
 * The input must have passed `checkJson`. Throws SyntaxError.
 */
export function parseLossless(input: Uint8Array | string): unknown {
  return runAtOnce(losslessSteps(input))
}

/** The same in steps: the longest is `JSON.parse`. */
export function* losslessSteps(input: Uint8Array | string): Steps<unknown> {
  const bytes = typeof input === 'string' ? bytesOf(input) : input
  const marks = exactMarks(bytes)
  yield
  if (marks.literals === 0) return parseChecked(typeof input === 'string' ? input : textOf(bytes, 0, bytes.length))
  // A reviver would be called for every value: a hundred times the time of parsing for a list of numbers. And the engine gives it no source
  // text behind some escaped names. A text of nothing but different exact numbers still takes ten times as long as parsing alone.
  const marked: unknown = parseChecked(withMarks(bytes, marks))
  yield
  return new Restoration().of(marked)
}

/** Returns the value of JSON that passes `checkJson`, with numbers as `parseLossless` returns them. Throws JsonError. */
export function parseStrictLossless(bytes: Uint8Array, options?: JsonOptions): unknown {
  const value = parseStrict(bytes, options)
  const marks = exactMarks(bytes)
  return marks.literals === 0 ? value : new Restoration().of(parseChecked(withMarks(bytes, marks)))
}

/** A lone surrogate has no UTF-8: it is escaped, as it may be in JSON. */
function bytesOf(text: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text)
  // Behind a backslash it would become something else: refused here.
  JSON.parse(text)
  return Buffer.from(text.replaceAll(/\p{Surrogate}/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`))
}

/** Puts number literals in the places of the strings that stand for them. */
class Restoration {
  /** By the string: hostile texts repeat one literal. */
  readonly #known = new Map<string, RawJson>()

  of(value: unknown): unknown {
    if (typeof value === 'string') return isMarked(value) ? this.#literal(value) : value
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) this.#elements(value)
    else this.#members(value)
    return value
  }

  #elements(list: unknown[]): void {
    for (let at = 0; at < list.length; at++) {
      const value = list[at]
      if (typeof value === 'string') {
        if (isMarked(value)) list[at] = this.#literal(value)
      } else if (typeof value === 'object' && value !== null) this.of(value)
    }
  }

  #members(object: object): void {
    for (const name of Object.keys(object)) {
      const value: unknown = Reflect.get(object, name)
      if (typeof value === 'object' && value !== null) this.of(value)
      // Not by assignment: a member may be called __proto__.
      else if (typeof value === 'string' && isMarked(value))
        Object.defineProperty(object, name, { value: this.#literal(value) })
    }
  }

  /** A string that begins with two marks has begun with one of them before. */
  #literal(marked: string): RawJson | string {
    if (marked.charCodeAt(1) === MARK) return marked.slice(1)
    let literal = this.#known.get(marked)
    if (literal === undefined) {
      literal = JSON.rawJSON(marked.slice(1))
      this.#known.set(marked, literal)
    }
    return literal
  }
}

function isMarked(text: string): boolean {
  return text.charCodeAt(0) === MARK
}
