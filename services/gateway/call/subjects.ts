import { hash } from 'node:crypto'
import type { Identity } from './facts.ts'

/** By what the calls of a template are counted: each has a separate count. */
export type CountedBy = 'user' | 'group' | 'agent' | 'session' | 'model' | 'namespace'

/** One of those that a template counts separately. */
export interface Subject {
  /** Its part of the key of a counter: at most 200 characters. */
  readonly key: string
  /** Names by which a template selects it: `assistant`, `default/assistant`. */
  readonly names: readonly string[]
  /** For refusals: `user ada`. */
  readonly words: string
}

type Caller = Pick<Identity, 'namespace' | 'agent' | 'session' | 'user' | 'groups'>

/** Maximum length of a subject in a key; of a longer one its hash is the key. */
const MAX_KEY_LENGTH = 200
/** Maximum length of the words of a subject. */
const MAX_WORDS_LENGTH = 100

/**
 * Returns the subjects of a call: one, or for `group` each group of the user. Calls without a user, a group or a model share a subject, so that
 * omitting the claim does not evade the limit. Users and groups count by name over all issuers (docs/decisions/0153). `model`: null for calls of
 * tools.
 */
export function subjectsOf(by: CountedBy, caller: Caller, model: string | null): readonly Subject[] {
  const { namespace, agent, session, user, groups } = caller
  switch (by) {
    case 'user':
      return [named(by, user)]
    case 'group':
      return groups.length === 0 ? [named(by, null)] : groups.map((group) => named(by, group))
    case 'agent':
      return [named(by, `${namespace}/${agent}`)]
    case 'session':
      return [named(by, `${namespace}/${agent}/${session}`)]
    case 'model':
      return [named(by, model)]
    case 'namespace':
      return [named(by, namespace)]
  }
}

/** Returns the names of a subject by its key; of one whose key is a hash only the hash. */
export function namesOfKey(by: CountedBy, key: string): readonly string[] {
  return by === 'agent' || by === 'session' ? [key.slice(key.lastIndexOf('/') + 1), key] : [key]
}

function named(by: CountedBy, name: string | null): Subject {
  if (name === null || name === '') return { key: '', names: [''], words: `calls without a ${by}` }
  const key = name.length > MAX_KEY_LENGTH ? `sha256:${hash('sha256', name)}` : name
  const words = `${by} ${name}`
  const text = words.length > MAX_WORDS_LENGTH ? `${words.slice(0, MAX_WORDS_LENGTH)}…`.toWellFormed() : words
  return { key, names: namesOfKey(by, name), words: text }
}
