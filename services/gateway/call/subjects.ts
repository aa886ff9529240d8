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

type Caller = Pick<Identity, 'tenant' | 'namespace' | 'agent' | 'session' | 'user' | 'groups'>

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
  const { tenant } = caller
  const all = namedIn(by, caller, model)
  return tenant === '' ? all : all.map((one) => ({ ...one, key: inTenant(tenant, one.key) }))
}

function namedIn(
  by: CountedBy,
  { namespace, agent, session, user, groups }: Caller,
  model: string | null,
): readonly Subject[] {
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

/** Begins the keys of what callers of a tenant count: people of two tenants with one name never share a counter. */
const TENANT = 'tenant='

/** Returns the key of what is counted in a tenant; empty: in none. */
export function inTenant(tenant: string, key: string): string {
  return tenant === '' ? key : `${TENANT}${tenant};${key}`
}

/** Returns the tenant in which a key counts, empty for none, and the key without it. */
export function tenantInKey(key: string): { readonly tenant: string; readonly rest: string } {
  if (!key.startsWith(TENANT)) return { tenant: '', rest: key }
  const end = key.indexOf(';')
  return { tenant: key.slice(TENANT.length, end), rest: key.slice(end + 1) }
}

/** Returns the names of a subject by its key; of one whose key is a hash only the hash. */
export function namesOfKey(by: CountedBy, whole: string): readonly string[] {
  const key = tenantInKey(whole).rest
  return by === 'agent' || by === 'session' ? [key.slice(key.lastIndexOf('/') + 1), key] : [key]
}

function named(by: CountedBy, name: string | null): Subject {
  if (name === null || name === '') return { key: '', names: [''], words: `calls without a ${by}` }
  // A name that looks like the key of a tenant's subject must not share its counter.
  const isHashed = name.length > MAX_KEY_LENGTH || name.startsWith(TENANT)
  const key = isHashed ? `sha256:${hash('sha256', name)}` : name
  const words = `${by} ${name}`
  const text = words.length > MAX_WORDS_LENGTH ? `${words.slice(0, MAX_WORDS_LENGTH)}…`.toWellFormed() : words
  return { key, names: namesOfKey(by, name), words: text }
}
