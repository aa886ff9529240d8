import { isObject, type JsonObject } from '@plat/core'
import { type Denial, deny } from '../../../call/index.ts'

/**
 * Members by which some providers and proxies (OpenRouter, LiteLLM) serve a request with another model than `model`, by which the gateway chooses
 * the route, and policies and prices judge.
 */
const OTHER_MODELS = ['models', 'preset', 'fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks'] as const

/** Returns the refusal of a request that names further models, also in a field of a form with brackets. */
export function otherModelsFault(value: JsonObject): Denial | null {
  for (const name of OTHER_MODELS) if (isSet(value[name])) return otherModel(name)
  for (const name in value) {
    const bracket = name.indexOf('[')
    if (bracket !== -1 && OTHER_MODELS.some((one) => one === name.slice(0, bracket))) return otherModel(name)
  }
  return null
}

function otherModel(name: string): Denial {
  return wrong(name, 'may name another model than model does: leave it out, or let the route have fallbacks')
}

/** Printable ASCII. Providers and proxies trim names, which policies compare as they are. */
const MODEL_NAME = /^[!-~](?:[ -~]*[!-~])?$/

/** Returns what is wrong with the name of a model, or null. */
export function modelFault(model: unknown): Denial | null {
  if (!isSet(model)) return null
  if (typeof model !== 'string' || model === '') return wrong('model', 'must be a string')
  return MODEL_NAME.test(model) ? null : wrong('model', 'must be printable ASCII without spaces around it')
}

/** Checks that all dialects share. A denial names the invalid member in `data.param`. */
export function commonFault(value: JsonObject): Denial | null {
  const { model, stream } = value
  const unnamed = modelFault(model)
  if (unnamed !== null) return unnamed
  if (isSet(stream) && typeof stream !== 'boolean') return wrong('stream', 'must be true or false')
  return otherModelsFault(value)
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
