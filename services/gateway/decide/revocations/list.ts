import type { Clock } from '@plat/core'
import { type Denial, deny, type Identity, type SessionRef } from '../../call/index.ts'
import type { Revocation, RevocationTarget } from './format.ts'

/** Where an entry comes from: made through the admin API, or read from the `revocationsFile`. */
export type RevocationSource = 'breakglass' | 'file'

/** Scopes of a revocation, narrowest first. */
export const scopes = ['jti', 'session', 'agent', 'namespace', 'user', 'tenant', 'all'] as const
export type RevocationScope = (typeof scopes)[number]

interface Entry {
  readonly revocation: Revocation
  readonly scope: RevocationScope
  readonly key: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** A session, without a call of it. */
export interface AbsentSession {
  readonly tenant: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string | null
}

/** Revocations by scope and key. A lookup costs a few map accesses, and nothing while the list is empty. */
export class RevocationList {
  readonly #byId = new Map<string, Entry>()
  readonly #byScope = new Map<RevocationScope, Map<string, Set<Entry>>>()

  /** Number of entries, including expired ones that were not removed yet. */
  get size(): number {
    return this.#byId.size
  }

  get(id: string): Revocation | null {
    return this.#byId.get(id)?.revocation ?? null
  }

  /** Adds an entry. Replaces one with the same id. */
  add(revocation: Revocation): void {
    const { id, target } = revocation
    this.remove(id)
    const entry = { revocation, ...keyOf(target), until: endOf(revocation) }
    this.#byId.set(id, entry)
    const ofScope = this.#byScope.get(entry.scope) ?? new Map<string, Set<Entry>>()
    this.#byScope.set(entry.scope, ofScope)
    ofScope.set(entry.key, (ofScope.get(entry.key) ?? new Set()).add(entry))
  }

  remove(id: string): void {
    const entry = this.#byId.get(id)
    if (entry === undefined) return
    this.#byId.delete(id)
    const ofScope = this.#byScope.get(entry.scope)
    const same = ofScope?.get(entry.key)
    same?.delete(entry)
    if (same?.size === 0) ofScope?.delete(entry.key)
    if (ofScope?.size === 0) this.#byScope.delete(entry.scope)
  }

  forgetExpired(now: number): void {
    for (const [id, { until }] of this.#byId) if (until <= now) this.remove(id)
  }

  /** Entries in force. */
  inForce(now: number): Revocation[] {
    return [...this.#byId.values()].filter(({ until }) => now < until).map(({ revocation }) => revocation)
  }

  /** Whether this user of an issuer is revoked by name. Suspensions are temporary and do not count. */
  hasRevoked(user: string, issuer: string, clock: Pick<Clock, 'now'>): boolean {
    const ofScope = this.#byScope.get('user')
    const entries = userNames(user, issuer).flatMap((name) => [...(ofScope?.get(name) ?? [])])
    return entries.some(({ revocation, until }) => revocation.mode === 'revoke' && clock.now() < until)
  }

  /**
   * Whether a session is revoked as a whole. Suspensions are temporary and do not count, and neither do entries for single tokens or for the user of
   * one issuer.
   */
  hasEnded(session: AbsentSession, clock: Pick<Clock, 'now'>): boolean {
    return this.#entriesOf(session, clock).some(({ revocation }) => revocation.mode === 'revoke')
  }

  /** Whether a session is revoked or suspended as a whole. */
  hasStopped(session: AbsentSession, clock: Pick<Clock, 'now'>): boolean {
    return this.#entriesOf(session, clock).length > 0
  }

  /** Entries in force for a session as a whole. */
  #entriesOf({ tenant, namespace, agent, session, user }: AbsentSession, clock: Pick<Clock, 'now'>): readonly Entry[] {
    if (this.#byId.size === 0) return []
    const keys: Readonly<Partial<Record<RevocationScope, string>>> = {
      session: `${namespace}/${agent}/${session}`,
      agent: `${namespace}/${agent}`,
      namespace,
      ...(user !== null && { user }),
      ...(tenant !== '' && { tenant }),
      all: '',
    }
    const entries = scopes.flatMap((scope) => [...(this.#byScope.get(scope)?.get(keys[scope] ?? NO_KEY) ?? [])])
    return entries.filter(({ until }) => clock.now() < until)
  }

  /** Returns the denial of the narrowest matching entry, or null. Reads the clock only if an entry names the caller. */
  judge(who: Identity, clock: Pick<Clock, 'now'>): Denial | null {
    if (this.#byId.size === 0) return null
    for (const scope of scopes) {
      const ofScope = this.#byScope.get(scope)
      if (ofScope === undefined) continue
      for (const key of keysOf(who, scope)) {
        for (const entry of ofScope.get(key) ?? []) if (clock.now() < entry.until) return denial(entry)
      }
    }
    return null
  }
}

/** Key of no entry: targets hold no control characters. */
const NO_KEY = '\0'

/** Returns when an entry expires, in milliseconds since the epoch. */
export function endOf({ expiresAt }: Revocation): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
}

export function keyOf(target: RevocationTarget): { readonly scope: RevocationScope; readonly key: string } {
  for (const scope of scopes) {
    const key = target[scope]
    if (key !== undefined) return { scope, key: key === true ? '' : key }
  }
  throw new Error('a revocation has no target')
}

function keysOf(who: Identity, scope: RevocationScope): readonly string[] {
  switch (scope) {
    case 'jti':
      return [who.jti, ...who.ancestors]
    case 'session':
      return ancestry(who).map(({ namespace, agent, session }) => `${namespace}/${agent}/${session}`)
    case 'agent':
      return ancestry(who).map(({ namespace, agent }) => `${namespace}/${agent}`)
    case 'namespace':
      return ancestry(who).map(({ namespace }) => namespace)
    case 'user':
      return who.user === null ? [] : userNames(who.user, who.issuer)
    case 'tenant':
      return who.tenant === '' ? [] : [who.tenant]
    case 'all':
      return ['']
  }
}

/**
 * Keys of a user: the plain name, which any issuer may assign, and the name at its issuer. An issuer has no fragment (RFC 8414, section
 * 2), so the first `#` ends it.
 */
function userNames(user: string, issuer: string): readonly string[] {
  return [user, `${issuer}#${user}`]
}

/** The caller's session and all sessions that its authority derives from. Revoking one of them ends its delegations and forks. */
function ancestry(who: Identity): readonly SessionRef[] {
  return [who, ...who.delegators, ...who.forkedFrom]
}

function denial({ revocation, scope }: Entry): Denial {
  const subject = scope === 'all' ? 'every session' : scope === 'jti' ? 'the token' : `the ${scope}`
  return revocation.mode === 'suspend'
    ? deny('suspended', `${subject} is suspended`, { revoked: scope })
    : deny('revoked', `${subject} is revoked`, { revoked: scope })
}
