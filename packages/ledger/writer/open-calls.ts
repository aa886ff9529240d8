import { isObject } from '@plat/core'
import { type RawLine, REC_START } from '../format.ts'
import { holdsOf } from '../holds.ts'
import type { LedgerSequence } from '../sequence/sequence.ts'
import type { Rec, RecValue } from '../types.ts'

/** Maximum number of intents that wait for their outcome at any point of a ledger. A gateway has far fewer in flight. */
export const MAX_OPEN_CALLS = 1_000_000

const CALL = Buffer.from('"call":"')
const KIND = Buffer.from('"kind":"')
const QUOTE = 0x22

/**
 * Finds intents without an outcome in one pass over a ledger. Memory is bounded by the calls open at one moment, not by the ledger: an outcome
 * removes its intent.
 *
 * It reads raw bytes. A quote inside a string is escaped, so `"call":"` can only be a member; in canonical order it precedes every member with
 * nested objects, and the first `"kind":"` after it is that of the record.
 */
export class OpenCalls {
  readonly #intents = new Map<string, number>()

  /** `open`: numbers of the intents that were open before the first line. One whose segment is not here cannot be closed. */
  static async from(sequence: LedgerSequence, open: readonly number[]): Promise<OpenCalls> {
    const calls = new OpenCalls()
    await sequence.eachLine(open, (line, seq) => {
      const call = textAfter(line, CALL, 0)
      if (call !== null) calls.#intents.set(call.text, seq)
    })
    return calls
  }

  /** Processes a valid line from `followChain`; always returns null. Throws when more than `MAX_OPEN_CALLS` are open. */
  see(buffer: Buffer, start: number, line: RawLine): null {
    const record = buffer.subarray(start + REC_START, start + line.recEnd)
    const call = textAfter(record, CALL, 0)
    if (call === null) return null
    const kind = textAfter(record, KIND, call.end)?.text
    if (kind === 'outcome') this.#intents.delete(call.text)
    if (kind !== 'intent') return null
    if (this.#intents.size >= MAX_OPEN_CALLS) throw new Error(`more than ${MAX_OPEN_CALLS} intents have no outcome`)
    this.#intents.set(call.text, line.seq)
    return null
  }

  /** Returns the number of the intent of each open call, oldest first. */
  intents(): ReadonlyMap<string, number> {
    return this.#intents
  }
}

function textAfter(record: Buffer, word: Buffer, from: number): { text: string; end: number } | null {
  const at = record.indexOf(word, from)
  if (at === -1) return null
  const start = at + word.length
  const end = record.indexOf(QUOTE, start)
  return { text: record.toString('latin1', start, end), end }
}

/** Members that an outcome copies from its intent. */
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

/** Returns the outcome of a call whose process died: result `unknown`, with the whole hold spent. `line` is that of its intent. */
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
