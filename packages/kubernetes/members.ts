/** A JSON object as it came. */
export type Members = Readonly<Record<string, unknown>>

/** One reason why the API server refused an object. */
export interface Cause {
  /** `spec.tools[0].name`; empty where no field is to blame. */
  readonly field: string
  readonly message: string
}

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A member that is an object; an empty one when it is not. */
export function member(object: Members, name: string): Members {
  const value = object[name]
  return isMembers(value) ? value : {}
}

/** A member that is a text; empty when it is not. */
export function textOf(object: Members, name: string): string {
  const value = object[name]
  return typeof value === 'string' ? value : ''
}

/** The API server says so where it did not ask its rules because of the other causes. */
const NOWHERE_FIELD = '<nil>'

/** The causes of a Status. */
export function causesOf(status: Members): readonly Cause[] {
  const { causes } = member(status, 'details')
  if (!Array.isArray(causes)) return []
  return causes
    .filter(isMembers)
    .map((cause) => ({ field: textOf(cause, 'field'), message: textOf(cause, 'message') }))
    .filter(({ field }) => field !== NOWHERE_FIELD)
}
