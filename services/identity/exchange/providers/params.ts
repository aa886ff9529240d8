import { closest } from '@plat/core'
import type { Audience } from '../config.ts'

type Params = Audience['params']

/** One key of `params`. Every value is a text. */
export interface ParamRule {
  readonly required?: boolean
  readonly fits: (text: string) => boolean
  /** Requirement in the message for an invalid value: `must be …`. */
  readonly must: string
}

export type ParamRules = Readonly<Record<string, ParamRule>>

/** Keys that every provider takes. */
export const COMMON_PARAMS: ParamRules = {
  subject: { fits: (text) => text === 'agent' || text === 'session', must: 'be agent or session' },
  audience: { fits: (text) => /^[\x21-\x7e]{1,512}$/.test(text), must: 'be a text of visible ASCII without spaces' },
}

/** The address of a service in place of the cloud's own. What is sent there is as good as a password: no plain http. */
export const ADDRESS: ParamRule = { fits: isSafeUrl, must: 'be an https URL (http on loopback) without user or query' }

function isSafeUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname))
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** Returns the problems of `params`, one line each, beginning with the key. */
export function paramProblems(rules: ParamRules, params: Params): readonly string[] {
  const known = Object.keys(rules)
  const unknown = Object.keys(params)
    .filter((name) => !known.includes(name))
    .map((name) => `${name}: unknown key${suggestion(name, known)}`)
  const wrong = Object.entries(rules).flatMap(([name, { required, fits, must }]) => {
    const value = params[name]
    if (value === undefined) return required === true ? [`${name}: is missing`] : []
    return typeof value === 'string' && fits(value) ? [] : [`${name}: must ${must}`]
  })
  return [...unknown, ...wrong]
}

function suggestion(name: string, known: readonly string[]): string {
  const meant = closest(name, known)
  return meant === null ? '' : `; did you mean "${meant}"?`
}

/** Returns a key that passed `paramProblems`; `otherwise` when it is absent. */
export function param(params: Params, name: string, otherwise = ''): string {
  const value = params[name]
  return typeof value === 'string' ? value : otherwise
}

/** `base` followed by `path`, with one slash between them. */
export function under(base: string, path: string): string {
  return base.replace(/\/$/, '') + path
}
