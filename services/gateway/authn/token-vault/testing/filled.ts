import assert from 'node:assert/strict'
import type { Static, TSchema } from 'typebox'
import { Check, Default } from 'typebox/value'

/** A part of the configuration with its defaults. */
export function filled<const T extends TSchema>(schema: T, value: object): Static<T> {
  const whole: unknown = Default(schema, { ...value })
  assert.ok(Check(schema, whole))
  return whole
}
