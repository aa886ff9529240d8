import { isObject, parseStrict } from '@plat/core'
import type { Decision } from '../../../call/index.ts'
import type { Verdict } from './verdict.ts'

/** Maximum length of a reason in responses and records, in characters. */
const MAX_REASON_CHARS = 1024
/** Maximum length of a reason that is scanned, in characters. */
const MAX_READ_CHARS = 16 * 1024

const ACTIONS: ReadonlyMap<unknown, Decision['action']> = new Map<unknown, Decision['action']>([
  [true, 'allow'],
  [false, 'deny'],
  ['allow', 'allow'],
  ['deny', 'deny'],
  ['require_approval', 'require_approval'],
])

const SILENT: Verdict = { action: 'deny', reason: 'the policy engine allows nothing for this' }

/**
 * Returns the `result` of a response of OPA's Data API; null if absent, as for an undefined rule. Throws JsonError or TypeError if the
 * response is not a JSON object.
 */
function resultOf(bytes: Uint8Array): unknown {
  const answer = parseStrict(bytes)
  if (!isObject(answer)) throw new TypeError('no object')
  return answer.result ?? null
}

/**
 * Returns the verdict of a response: a boolean, an action, or an object with `action` and optional `reason`; other members are ignored.
 * An undefined result denies. Returns null if there is no valid verdict.
 */
export function verdictIn(bytes: Uint8Array): Verdict | null {
  const result = read(bytes)
  if (result === undefined) return null
  return result === null ? SILENT : verdictOf(result)
}

/**
 * Returns the actions of a response for a list, from `tools` of the result, by name. Tools without a verdict are absent, and unknown
 * names are ignored. Returns null if the result is defined but has no tools.
 */
export function actionsIn(bytes: Uint8Array, names: readonly string[]): ReadonlyMap<string, Decision['action']> | null {
  const result = read(bytes)
  if (result === null) return new Map()
  if (!isObject(result) || !isObject(result.tools)) return null
  const { tools } = result
  const actions = new Map<string, Decision['action']>()
  for (const name of names) {
    const action = Object.hasOwn(tools, name) ? actionOf(tools[name]) : undefined
    if (action !== undefined) actions.set(name, action)
  }
  return actions
}

/** Returns undefined if it is not a response of the Data API. */
function read(bytes: Uint8Array): unknown {
  try {
    return resultOf(bytes)
  } catch {
    return undefined
  }
}

function actionOf(result: unknown): Decision['action'] | undefined {
  return ACTIONS.get(isObject(result) ? result.action : result)
}

function verdictOf(result: unknown): Verdict | null {
  const action = actionOf(result)
  if (action === undefined) return null
  const given = isObject(result) && typeof result.reason === 'string' ? result.reason : ''
  return { action, reason: plain(given) || `the policy engine says ${action}` }
}

/** Truncated to one line of bounded length. */
function plain(text: string): string {
  return text
    .slice(0, MAX_READ_CHARS)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, MAX_REASON_CHARS)
    .toWellFormed()
}
