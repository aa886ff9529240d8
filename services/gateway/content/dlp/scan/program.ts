/** Opcodes of the compiled programs of re2js. */
export const OPS = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  emptyWidth: 4,
  fail: 5,
  match: 6,
  nop: 7,
  rune: 8,
  rune1: 9,
  runeAny: 10,
  runeAnyNotNewline: 11,
} as const

const KNOWN: ReadonlySet<number> = new Set(Object.values(OPS))

/** One instruction. `arg`: the second way of an alternative, or the conditions of an empty match. */
export interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: ArrayLike<number>
  matchRune(rune: number): boolean
}

/** A compiled expression. */
export interface Program {
  readonly start: number
  readonly instructions: readonly Instruction[]
  /** Whether an expression matches a part of a text wherever it matches the whole: no condition looks around a match. */
  readonly isContextFree: boolean
  /** Every match begins with this text; empty if nothing is known. */
  readonly prefix: string
}

/** The program as the library holds it. */
interface LibraryProgram {
  readonly start: number
  getInst(at: number): Instruction
  numInst(): number
}

/** Flag of an instruction that ignores case. */
const FOLD_CASE = 1

/** Throws if the program has unknown instructions. */
export function readProgram(program: LibraryProgram): Program {
  const instructions = Array.from({ length: program.numInst() }, (_, at) => program.getInst(at))
  for (const { op } of instructions) if (!KNOWN.has(op)) throw new Error(`unknown instruction ${op} of an expression`)
  return {
    start: program.start,
    instructions,
    isContextFree: instructions.every(({ op }) => op !== OPS.emptyWidth),
    prefix: prefixOf(instructions, program.start),
  }
}

function prefixOf(instructions: readonly Instruction[], start: number): string {
  let prefix = ''
  for (let one = instructions[start]; one !== undefined; one = instructions[one.out]) {
    if (one.op === OPS.capture || one.op === OPS.nop) continue
    const isOneRune = (one.op === OPS.rune || one.op === OPS.rune1) && one.runes.length === 1
    const rune = one.runes[0] ?? 0
    // A surrogate is read together with the next one.
    if (!isOneRune || (one.arg & FOLD_CASE) !== 0 || (rune >= 0xd800 && rune <= 0xdfff)) break
    prefix += String.fromCodePoint(rune)
  }
  return prefix
}

/** Whether an instruction other than an alternative or condition accepts a character. */
export function accepts(one: Instruction, rune: number): boolean {
  if (one.op === OPS.rune) return one.matchRune(rune)
  if (one.op === OPS.rune1) return one.runes[0] === rune
  return one.op === OPS.runeAny || (one.op === OPS.runeAnyNotNewline && rune !== NEWLINE)
}

const NEWLINE = 0x0a

/** Kind of the character before a position, as far as conditions distinguish it. */
export type Before = 0 | 1 | 2 | 3
const NOTHING = 0
const LINE_END = 1
const WORD = 2
const OTHER = 3

export function beforeAt(text: string, at: number): Before {
  return at === 0 ? NOTHING : kindOf(text.charCodeAt(at - 1))
}

/** `code` is -1 after the end of a text. */
export function kindOf(code: number): Before {
  if (code < 0) return NOTHING
  if (code === NEWLINE) return LINE_END
  const isWord =
    (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || (code >= 0x61 && code <= 0x7a)
  return isWord ? WORD : OTHER
}

/** Conditions of the library that are met between two characters. */
const BEGIN_LINE = 1
const END_LINE = 2
const BEGIN_TEXT = 4
const END_TEXT = 8
const WORD_BOUNDARY = 16
const NO_WORD_BOUNDARY = 32

export function conditionsBetween(before: Before, after: Before): number {
  let met = (before === WORD) === (after === WORD) ? NO_WORD_BOUNDARY : WORD_BOUNDARY
  if (before === NOTHING) met |= BEGIN_TEXT | BEGIN_LINE
  if (before === LINE_END) met |= BEGIN_LINE
  if (after === NOTHING) met |= END_TEXT | END_LINE
  if (after === LINE_END) met |= END_LINE
  return met
}
