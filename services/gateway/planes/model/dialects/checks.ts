import { isObject, type JsonObject } from '@plat/core'
import { type Denial, deny } from '../../../call/index.ts'

/** Checks that all dialects share. A denial names the invalid member in `data.param`. */
export function commonFault({ model, stream }: JsonObject): Denial | null {
  if (isSet(model) && (typeof model !== 'string' || model === '')) return wrong('model', 'must be a string')
  return isSet(stream) && typeof stream !== 'boolean' ? wrong('stream', 'must be true or false') : null
}

/** A limit of output tokens. */
export function limitFault(value: JsonObject, name: string): Denial | null {
  const limit = value[name]
  const ok = !isSet(limit) || isCount(limit, Number.MAX_SAFE_INTEGER)
  return ok ? null : wrong(name, 'must be a whole number above 0')
}

export function objectFault(value: JsonObject, name: string): Denial | null {
  return isSet(value[name]) && !isObject(value[name]) ? wrong(name, 'must be an object') : null
}

export function wrong(param: string, why: string): Denial {
  return deny('invalid_request', `${param} ${why}`, { data: { param } })
}

/** Providers read null as absent. */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

export function isCount(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most
}

/** Returns a reported number of tokens; 0 if there is none. */
export function tokens(value: unknown): number {
  return isTokens(value) ? value : 0
}

export function isTokens(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
