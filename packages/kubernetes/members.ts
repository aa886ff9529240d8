import { isObject } from '@plat/core'

/** A JSON object as it came. */
export type Members = Readonly<Record<string, unknown>>

/** One reason why the API server refused an object. */
export interface Cause {
  /** `spec.tools[0].name`; empty when no field is named. */
  readonly field: string
  readonly message: string
}

/** Returns an object member; an empty object otherwise. */
export function member(object: Members, name: string): Members {
  const value = object[name]
  return isObject(value) ? value : {}
}

/** Returns a string member; empty otherwise. */
export function textOf(object: Members, name: string): string {
  const value = object[name]
  return typeof value === 'string' ? value : ''
}

/** Sent by the API server when it skipped its rules because of other causes. */
const NOWHERE_FIELD = '<nil>'

export function causesOf(status: Members): readonly Cause[] {
  const { causes } = member(status, 'details')
  if (!Array.isArray(causes)) return []
  return causes
    .filter(isObject)
    .map((cause) => ({ field: textOf(cause, 'field'), message: textOf(cause, 'message') }))
    .filter(({ field }) => field !== NOWHERE_FIELD)
}
