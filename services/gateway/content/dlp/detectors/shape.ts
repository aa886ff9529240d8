import type { ScanState } from '../scan/scan-state.ts'
import type { Finder } from './detector.ts'

/** The text does not have the shape. */
const NO = -1
/** The text ends before the shape is decided. */
const UNDECIDED = -2

const ZERO = 0x30
const NINE = 0x39
const A = 0x41
const Z = 0x5a
/** In a shape: a digit, a capital letter, or either. Any other character is literal. */
const DIGIT = 0x64
const LETTER = 0x4c
const EITHER = 0x78

const POINT = 0x2e
const HYPHEN = 0x2d

export interface ShapeRule {
  /** `ddd-dd-dddd`: `d` is a digit, `L` a capital letter, `x` either. */
  readonly shapes: readonly string[]
  /** Returns whether the digits and letters, without separators, are valid. */
  readonly is: (text: string) => boolean
  /** A word required within `LOOK_BACK_CHARS` before, if the check alone has too many false positives. */
  readonly near?: RegExp
}

/** Numbers and codes of fixed shapes. */
export function shaped(rule: ShapeRule): Finder {
  const { shapes, is, near } = rule
  const starts = shapes.map(startOf)
  return {
    digits: [...new Set(starts.flatMap(({ letters, digits }) => (letters === 0 ? digits : [])))],
    letters: [...new Set(starts.flatMap(({ letters }) => (letters === 0 ? [] : [letters])))],
    find(look, detector, at) {
      for (const shape of shapes) {
        const end = endOf(look, at, shape)
        if (end === NO || (end !== UNDECIDED && !is(plain(look.slice(at, end))))) continue
        if (near !== undefined && !near.test(look.before(at))) return
        if (end !== UNDECIDED) return look.hit(detector, at, end)
        look.open(at)
      }
    },
  }
}

const PUNCTUATION = /[^0-9A-Z]/
const ALL_PUNCTUATION = /[^0-9A-Z]/g

function plain(text: string): string {
  return PUNCTUATION.test(text) ? text.replace(ALL_PUNCTUATION, '') : text
}

/** Letters before the first digit, and possible counts of leading digits. */
function startOf(shape: string): { readonly letters: number; readonly digits: readonly number[] } {
  const [, letters = '', digits = '', more = ''] = /^(L*)(d*)(x*)/.exec(shape) ?? []
  const counts = Array.from({ length: more.length + 1 }, (_, extra) => digits.length + extra)
  return { letters: letters.length, digits: counts }
}

/** End of a text of this shape, if it matches and is not continued. */
function endOf(look: ScanState, at: number, shape: string): number {
  const { text, end } = look
  const last = Math.min(at + shape.length, end)
  for (let next = at; next < last; next++) if (!isOf(text.charCodeAt(next), shape.charCodeAt(next - at))) return NO
  if (at + shape.length > end) return look.isOpen ? UNDECIDED : NO
  return endAt(look, last)
}

function isOf(code: number, wanted: number): boolean {
  if (wanted === DIGIT) return isDigit(code)
  if (wanted === LETTER) return code >= A && code <= Z
  if (wanted === EITHER) return isDigit(code) || (code >= A && code <= Z)
  return code === wanted
}

/** Returns the position if a number can end there: not followed by a word character, or by digits after a point or hyphen. */
export function endAt(look: ScanState, end: number): number {
  const next = look.code(end)
  if (next === -1) return look.isOpen ? UNDECIDED : end
  if (!look.ends(end)) return NO
  if (next !== POINT && next !== HYPHEN) return end
  const after = look.code(end + 1)
  if (after === -1 && look.isOpen) return UNDECIDED
  return isDigit(after) ? NO : end
}

export function isUndecided(end: number): boolean {
  return end === UNDECIDED
}

export function isEnd(end: number): boolean {
  return end >= 0
}

export function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

/** Whether a number continues earlier digits, as a fraction or one group of a longer one. */
export function continues(look: ScanState, at: number): boolean {
  const before = look.code(at - 1)
  if (before !== POINT && before !== HYPHEN) return false
  return isDigit(look.code(at - 2)) && !look.isHitEnd(at - 1)
}
