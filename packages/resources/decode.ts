import { parseStrict } from '@plat/core'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { checkStructure, type FieldProblem } from './check.ts'

/** Content of a file, or every reason for its refusal, one line each. */
export type Decoded<T> = { readonly ok: true; readonly file: T } | { readonly ok: false; readonly problems: string[] }

/**
 * Decodes a rendered file strictly: JSON without duplicate members or unknown fields, with every type and size of the schema. `unbuilt` names fields
 * that the reader does not enforce; a file that uses one is refused as a whole, so that no rule is accepted and then ignored.
 */
export function decodeRendered<const T extends TSchema>(
  schema: T,
  bytes: Uint8Array,
  unbuilt: (file: Static<T>) => string[],
): Decoded<Static<T>> {
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    return { ok: false, problems: [error instanceof Error ? error.message : 'not JSON'] }
  }
  const problems = checkStructure(schema, value).map(problemLine)
  if (problems.length > 0) return { ok: false, problems }
  if (!Value.Check(schema, value)) return { ok: false, problems: ['does not fit its schema'] }
  const paths = unbuilt(value)
  if (paths.length === 0) return { ok: true, file: value }
  return { ok: false, problems: paths.map((path) => `${path}: not built yet in this version`) }
}

/** `spec.tier: Required value`, or the message alone without a field. */
export function problemLine({ path, message }: FieldProblem): string {
  return path === '' ? message : `${path}: ${message}`
}
