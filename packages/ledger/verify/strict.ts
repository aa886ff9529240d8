import { isUtf8 } from 'node:buffer'
import { canonicalJson, isObject, type JsonObject } from '@plat/core'
import { REC_START } from '../format.ts'
import { isOrdinaryRecord } from './ordinary-record.ts'

/**
 * Checks a line beyond its hash and frame, which must be valid: UTF-8, canonical JSON without duplicate members, a kind, a time. Returns null when it
 * is in order. `recEnd`: the offset of the byte after the record.
 */
export function strictProblem(line: Buffer, recEnd: number): string | null {
  if (!isUtf8(line)) return 'the line is not UTF-8'
  if (isOrdinaryRecord(line, REC_START, recEnd)) return null
  const text = line.toString()
  const value = parsed(text)
  if (!isObject(value) || !isObject(value.rec)) return 'the line is not JSON'
  if (typeof value.rec.kind !== 'string' || typeof value.rec.at !== 'string') return 'the record lacks "kind" or "at"'
  if (isInOrder(value) && JSON.stringify(value) === text && !text.includes(LONE_SURROGATE)) return null
  try {
    return canonicalJson(value) === text ? null : 'the line is not canonical JSON (RFC 8785)'
  } catch {
    return 'the line has no canonical form (RFC 8785)'
  }
}

/** Output of `JSON.stringify` for a lone surrogate; also occurs in a string that quotes this text. */
const LONE_SURROGATE = '\\ud'

/** Returns whether the members of all objects are in canonical order. Then canonical JSON equals the output of `JSON.stringify`. */
function isInOrder(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isInOrder)
  return isObject(value) && areMembersInOrder(value)
}

function areMembersInOrder(value: JsonObject): boolean {
  let before = ''
  // Lines of one kind have members of the same names, which V8 then lists once for all of them.
  for (const name in value) {
    if (name < before) return false
    const member = value[name]
    if (typeof member === 'object' && !isInOrder(member)) return false
    before = name
  }
  return true
}

/** Parses the line as JSON. Returns null when it is malformed. */
export function parsed(line: Buffer | string): unknown {
  try {
    return JSON.parse(line.toString())
  } catch {
    return null
  }
}
