import type { RawLine } from '../format.ts'
import { REC_START } from '../format.ts'
import { holdsOf } from '../holds.ts'
import type { Rec, RecValue } from '../types.ts'

/** Most calls whose intent waits for its outcome at any point of a ledger. A gateway has far fewer in flight. */
export const MAX_OPEN_CALLS = 1_000_000

const CALL = Buffer.from('"call":"')
const KIND = Buffer.from('"kind":"')
const QUOTE = 0x22

/**
 * Finds intents without an outcome while a ledger is read once. What it keeps is bounded by the calls that are open at one
 * moment, not by the ledger: an outcome takes its intent out again.
 *
 * It reads raw bytes. A quote inside a string is escaped, so `"call":"` can only be a member; in canonical order it comes
 * before every member that holds objects with names of their own, and the first `"kind":"` after it is the record's.
 */
export class OpenCalls {
  readonly #intents = new Map<string, { offset: number; length: number }>()

  /** Looks at one good line, which `followChain` hands over; it never finds fault with it. Throws when more than `MAX_OPEN_CALLS` are open. */
  see(buffer: Buffer, start: number, line: RawLine, offset: number): null {
    const record = buffer.subarray(start + REC_START, start + line.recEnd)
    const call = textAfter(record, CALL, 0)
    if (call === null) return null
    const kind = textAfter(record, KIND, call.end)?.text
    if (kind === 'outcome') this.#intents.delete(call.text)
    if (kind !== 'intent') return null
    if (this.#intents.size >= MAX_OPEN_CALLS) throw new Error(`more than ${MAX_OPEN_CALLS} intents have no outcome`)
    this.#intents.set(call.text, { offset, length: line.length })
    return null
  }

  /** Places of the intents that are still open, oldest first. */
  places(): readonly { readonly offset: number; readonly length: number }[] {
    return [...this.#intents.values()]
  }
}

function textAfter(record: Buffer, word: Buffer, from: number): { text: string; end: number } | null {
  const at = record.indexOf(word, from)
  if (at === -1) return null
  const start = at + word.length
  const end = record.indexOf(QUOTE, start)
  return { text: record.toString('latin1', start, end), end }
}

/** Members that an outcome repeats from its intent. */
const REPEATED = [
  'call',
  'session',
  'namespace',
  'agent',
  'user',
  'jti',
  'op',
  'server',
  'tool',
  'method',
  'parent',
] as const

/** The outcome of a call whose process died: result `unknown`; what was held counts as spent as a whole. `line` is its intent's. */
export function unknownOutcome(line: string): Rec {
  const rec = recordOf(line)
  const repeated: Record<string, RecValue> = {}
  for (const name of REPEATED) {
    const value = rec[name]
    if (typeof value === 'string') repeated[name] = value
  }
  const held = holdsOf(rec)
  const settled = Object.fromEntries(held.map(({ key, amount }) => [key, amount]))
  const reason = 'the process ended before the outcome was recorded'
  return { ...repeated, kind: 'outcome', result: 'unknown', reason, ...(held.length > 0 && { settled }) }
}

function recordOf(line: string): Record<string, unknown> {
  const value: unknown = JSON.parse(line)
  if (!isObject(value) || !isObject(value.rec)) throw new Error('a ledger line without a record')
  return value.rec
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
