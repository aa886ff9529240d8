import { member, rfc3339Micros } from '@plat/core'
import type { LedgerMoment } from '@plat/ledger'
import type { Static, TObject } from 'typebox'
import { Check, Errors } from 'typebox/value'
import { AdminError } from './error.ts'

/** A request body that fits `schema`; anything else is `invalid_request`, naming the first field that is wrong. */
export function bodyAs<const T extends TObject>(schema: T, body: unknown): Static<T> {
  if (Check(schema, body)) return body
  const [first] = Errors(schema, body)
  const field = first?.instancePath.slice(1).replaceAll('/', '.') ?? ''
  const why = first?.message ?? 'does not fit'
  throw new AdminError('invalid_request', field === '' ? `the body ${why}` : `${field}: ${why}`)
}

/** A path parameter, decoded; absent is a mistake of ours. */
export function parameter(params: unknown, name: string): string {
  const value = member(params, name)
  if (typeof value !== 'string') throw new Error(`the route has no parameter ${name}`)
  return value
}

/** Returns a query parameter, which must occur at most once. */
export function queried(query: unknown, name: string): string | null {
  const value = member(query, name)
  if (value === undefined) return null
  if (typeof value === 'string') return value
  throw new AdminError('invalid_request', `${name}: must stand once`)
}

/** Returns a query parameter that is `true` or `false`; false if it is absent. */
export function flagIn(query: unknown, name: string): boolean {
  const value = queried(query, name) ?? 'false'
  if (value === 'true' || value === 'false') return value === 'true'
  throw new AdminError('invalid_request', `${name}: must be true or false`)
}

/** Returns a record number or a time (RFC 3339); null if the parameter is absent. */
export function momentIn(text: string | null, name: string): LedgerMoment | null {
  if (text === null) return null
  if (/^\d+$/.test(text)) return seqIn(text, name)
  const time = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time))
    throw new AdminError('invalid_request', `${name}: must be a record's number or an RFC 3339 time`)
  return { at: rfc3339Micros(time) }
}

export function seqIn(text: string, name: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new AdminError('invalid_request', `${name}: must be a record's number`)
}
