import { parseStrict } from '@plat/core'
import type { Decision } from '../../../call/index.ts'
import type { Verdict } from './verdict.ts'

/** Longest reason that goes on to callers and records, in characters. */
const MAX_REASON_CHARS = 1024
/** Characters of a reason that are read for these: one may be as long as an answer. */
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
 * The `result` of an answer of OPA's Data API. Absent, which is how an undefined rule reads: null.
 * @throws JsonError, TypeError: the answer is no JSON object.
 */
function resultOf(bytes: Uint8Array): unknown {
  const answer = parseStrict(bytes)
  if (!isObject(answer)) throw new TypeError('no object')
  return answer.result ?? null
}

/**
 * The verdict of one answer: a boolean, an action, or an object with `action` (a boolean or an action) and, if it likes, `reason`; its
 * other members are the policy's own affair. An undefined result denies. Null: it is no verdict.
 */
export function verdictIn(bytes: Uint8Array): Verdict | null {
  const result = read(bytes)
  if (result === undefined) return null
  return result === null ? SILENT : verdictOf(result)
}

/**
 * The actions of one answer over a list: `tools` of the result, by name. A tool without a verdict is not in it, and the answer may name
 * others. Null: the answer speaks of no tools; an undefined result does, and of none of them.
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

/** Undefined: no answer of the Data API. */
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
  const said = isObject(result) && typeof result.reason === 'string' ? result.reason : ''
  return { action, reason: plain(said) || `the policy engine says ${action}` }
}

/** On one line, and no longer than anybody reads. */
function plain(text: string): string {
  return text
    .slice(0, MAX_READ_CHARS)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, MAX_REASON_CHARS)
    .toWellFormed()
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
