import { type Denial, deny, type Identity } from '../../call/index.ts'

/** What a revocation can name, from the narrowest to the widest. */
const scopes = ['jti', 'session', 'agent', 'namespace', 'user', 'tenant', 'all'] as const
export type RevocationScope = (typeof scopes)[number]

/** `session` is `<ns>/<agent>/<session>`, `agent` is `<ns>/<agent>`; a `jti` matches the token and everything derived from it. */
export type RevocationTarget =
  | { readonly jti: string }
  | { readonly session: string }
  | { readonly agent: string }
  | { readonly namespace: string }
  | { readonly user: string }
  | { readonly tenant: string }
  | { readonly all: true }

/** One entry of the `revocationsFile` format. */
export interface Revocation {
  readonly id: string
  readonly target: RevocationTarget
  /** `suspend` is meant to be lifted; the caller is told so by another code. */
  readonly mode: 'revoke' | 'suspend'
  /** For people who read the list; never told to the caller. */
  readonly reason: string
  /** RFC 3339. */
  readonly createdAt: string
  /** RFC 3339; null: until it is lifted. */
  readonly expiresAt: string | null
}

/** Entries in one list; far above what is needed when tokens live for hours, and small in memory. */
const MAX_REVOCATIONS = 100_000

interface Entry {
  readonly revocation: Revocation
  readonly scope: RevocationScope
  readonly key: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Revocations by scope and key: asking costs a few map look-ups, and nothing while the list is empty. */
export class RevocationList {
  readonly #byId = new Map<string, Entry>()
  readonly #byScope = new Map<RevocationScope, Map<string, Set<Entry>>>()

  /** Replaces an entry of the same id. Throws a RangeError when the list is full or a time cannot be read. */
  add(revocation: Revocation, now: number): void {
    const { id, target, expiresAt } = revocation
    const until = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
    if (Number.isNaN(until)) throw new RangeError(`revocation ${id}: expiresAt is no RFC 3339 time`)
    this.#forgetExpired(now)
    this.lift(id)
    if (this.#byId.size >= MAX_REVOCATIONS) throw new RangeError(`the list of revocations is full: ${MAX_REVOCATIONS}`)
    const entry = { revocation, ...keyOf(target), expiresAt: until }
    this.#byId.set(id, entry)
    const ofScope = this.#byScope.get(entry.scope) ?? new Map<string, Set<Entry>>()
    this.#byScope.set(entry.scope, ofScope)
    ofScope.set(entry.key, (ofScope.get(entry.key) ?? new Set()).add(entry))
  }

  /** False when there is no such entry. */
  lift(id: string): boolean {
    const entry = this.#byId.get(id)
    if (entry === undefined) return false
    this.#byId.delete(id)
    const ofScope = this.#byScope.get(entry.scope)
    const same = ofScope?.get(entry.key)
    same?.delete(entry)
    if (same?.size === 0) ofScope?.delete(entry.key)
    if (ofScope?.size === 0) this.#byScope.delete(entry.scope)
    return true
  }

  list(now: number): readonly Revocation[] {
    this.#forgetExpired(now)
    return [...this.#byId.values()].map((entry) => entry.revocation)
  }

  /** The denial of the narrowest entry that matches; null when none does. */
  judge(who: Identity, now: number): Denial | null {
    if (this.#byId.size === 0) return null
    for (const scope of scopes) {
      const ofScope = this.#byScope.get(scope)
      if (ofScope === undefined) continue
      for (const key of keysOf(who, scope)) {
        for (const entry of ofScope.get(key) ?? []) if (now < entry.expiresAt) return denial(entry)
      }
    }
    return null
  }

  #forgetExpired(now: number): void {
    for (const [id, entry] of this.#byId) if (entry.expiresAt <= now) this.lift(id)
  }
}

function keyOf(target: RevocationTarget): { readonly scope: RevocationScope; readonly key: string } {
  if ('jti' in target) return { scope: 'jti', key: target.jti }
  if ('session' in target) return { scope: 'session', key: target.session }
  if ('agent' in target) return { scope: 'agent', key: target.agent }
  if ('namespace' in target) return { scope: 'namespace', key: target.namespace }
  if ('user' in target) return { scope: 'user', key: target.user }
  if ('tenant' in target) return { scope: 'tenant', key: target.tenant }
  return { scope: 'all', key: '' }
}

/** What a caller answers to in one scope. */
function keysOf(who: Identity, scope: RevocationScope): readonly string[] {
  switch (scope) {
    case 'jti':
      return [who.jti, ...who.ancestors]
    case 'session':
      return [`${who.namespace}/${who.agent}/${who.session}`]
    case 'agent':
      return [`${who.namespace}/${who.agent}`]
    case 'namespace':
      return [who.namespace]
    case 'user':
      return who.user === null ? [] : [who.user]
    case 'tenant':
      return [who.tenant]
    case 'all':
      return ['']
  }
}

function denial({ revocation, scope }: Entry): Denial {
  const subject = scope === 'all' ? 'every session' : scope === 'jti' ? 'the token' : `the ${scope}`
  return revocation.mode === 'suspend'
    ? deny('suspended', `${subject} is suspended`, { revoked: scope })
    : deny('revoked', `${subject} is revoked`, { revoked: scope })
}
