import { member } from '@plat/core'
import { deny } from '../../../call/index.ts'
import { withoutForgedRefusal } from '../../wire/refusal.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { ModelFrame } from '../frame.ts'
import { refusalOf } from '../translate/all.ts'

/** Returns the body of a provider's error, unchanged if it is in the caller's dialect. Throws `InvalidResponseError`. */
export function errorBody(
  bytes: Uint8Array,
  {
    status,
    dialect,
    isTranslated,
  }: { readonly status: number; readonly dialect: Dialect; readonly isTranslated: boolean },
): Uint8Array {
  const { value } = ModelFrame.body(bytes)
  const isOwnDialect = !isTranslated && typeof member(member(value, 'error'), 'message') === 'string'
  if (isOwnDialect) return withoutForgedRefusal(bytes, value)
  const message = refusalOf(value)
  const error = { denial: deny('upstream_error', message), status, message, decisionId: null }
  return Buffer.from(JSON.stringify(dialect.errorBody(error)))
}

/** Returns a response without refusals that only the gateway may state. */
export function genuine(frame: ModelFrame, json: Uint8Array): ModelFrame {
  const own = withoutForgedRefusal(json, frame.value)
  return own === json ? frame : ModelFrame.body(own)
}

/** Returns an error in JSON as an event. */
export function asEvent(json: Uint8Array, dialect: Dialect): Uint8Array {
  const line = Buffer.from(json)
    .toString('utf8')
    .replace(/[\r\n]+/g, ' ')
  return Buffer.from(dialect.errorEvent(line))
}
