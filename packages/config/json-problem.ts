import type { JsonError } from '@plat/core'

/** Position and description of the first error in a text that is not JSON. */
export interface JsonProblem {
  readonly line: number
  readonly column: number
  /** With the fix, where it is known. */
  readonly message: string
}

/** Typical mistakes: the text before and after the first wrong byte, and how to mend it. */
const MISTAKES: readonly (readonly [before: RegExp, after: RegExp, message: string])[] = [
  [/^$/, /^\uFEFF/, 'a byte order mark; save the file as UTF-8 without it'],
  [/^/, /^(?:\/\/|\/\*|#)/, 'a comment, which JSON does not have; remove it'],
  [/,\s*$/, /^[}\]]/, 'a comma before the closing bracket; remove it'],
  [/^/, /^'/, 'a single quote; write names and texts in double quotes'],
  [/[{,]\s*$/, /^[\p{L}$_]/u, 'a name without quotes; write it in double quotes'],
  [/["}\]\w]\s*$/, /^["{[]/, 'a comma is missing before this'],
]

/** Locates an error of `parseStrict` in the text or bytes that it read. */
export function jsonProblem(source: string | Uint8Array, error: JsonError): JsonProblem {
  const bytes = Buffer.from(source)
  const before = bytes.subarray(0, error.offset).toString()
  const after = bytes.subarray(error.offset).toString()
  const isWhole = error.message.startsWith('data after the value')
  const known = isWhole ? undefined : MISTAKES.find(([head, tail]) => head.test(before) && tail.test(after))
  return {
    line: before.split('\n').length,
    column: before.length - before.lastIndexOf('\n'),
    message: known?.[2] ?? error.message.replace(/ at byte \d+$/, ''),
  }
}
