import { textOf } from './names.ts'
import type {} from './raw.ts'

/** Text that may hold a number literal which a double does not write back identically. Hits in strings only cost time. */
const SUSPECT = /\d{16}|\d[.eE]|-0/

/** Whether `JSON.stringify` writes back every number literal of this JSON identically. False where it may not. */
export function hasPlainNumbers(json: Uint8Array): boolean {
  return !SUSPECT.test(textOf(json, 0, json.length))
}

/**
 * The value, where each number literal that `JSON.stringify` would not write back identically is a `JSON.rawJSON` value:
 * 12345678901234567890, 1.0, 1e3, -0. So a changed body keeps the numbers nobody touched.
 * The input must have passed `checkJson`.
 * @throws SyntaxError
 */
export function parseLossless(input: Uint8Array | string): unknown {
  const text = typeof input === 'string' ? input : textOf(input, 0, input.length)
  return SUSPECT.test(text) ? JSON.parse(text, keepLiteral) : JSON.parse(text)
}

function keepLiteral(_name: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value
  return JSON.stringify(value) === context.source ? value : JSON.rawJSON(context.source)
}
