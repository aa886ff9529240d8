import { type FileWatch, watchFile } from '@plat/config'
import { type Clock, isObject, parseStrict } from '@plat/core'
import type { Log } from '@plat/process'
import { ancestryOf, type Descendant, type SessionClaims } from '@plat/tokens'

/** How often the file is looked at, in milliseconds. */
const RECHECK_EVERY_MS = 1000
/** Entries in one list. */
const MAX_REVOCATIONS = 100_000

/** Kinds of revocation targets. `session` is `<ns>/<agent>/<session>`, `agent` is `<ns>/<agent>`. */
const SCOPES = ['jti', 'session', 'agent', 'namespace', 'user', 'tenant', 'all'] as const
type Scope = (typeof SCOPES)[number]

/** Subject of a look-up in the list. */
export type Subject = Descendant &
  Pick<SessionClaims, 'jti' | 'parentJti' | 'delegatorJti' | 'delegationJtis' | 'session' | 'user' | 'issuer'>

export type RevocationVerdict = 'revoked' | 'suspended' | 'unavailable' | null

/** The list of flag `-revocations-file`. */
export interface Revocations {
  /** Returns null when not revoked. `unavailable`: the list cannot be read, so every token is refused. */
  judge(who: Subject, tenant: string | null): RevocationVerdict
  start(): Promise<void>
  close(): void
}

interface Entry {
  readonly mode: 'revoke' | 'suspend'
  /** Milliseconds since the epoch. */
  readonly until: number
}

export interface RevocationsOptions {
  /** Empty: there is no list. */
  readonly path: string
  readonly clock: Clock
  readonly log: Log
}

export function createRevocations(options: RevocationsOptions): Revocations {
  if (options.path !== '') return new RevocationsFile(options)
  return { judge: () => null, start: async () => {}, close: () => {} }
}

class RevocationsFile implements Revocations {
  readonly #clock: Clock
  readonly #watch: FileWatch
  /** Null while the file is missing or wrong. */
  #entries: ReadonlyMap<string, readonly Entry[]> | null = null

  constructor({ path, clock, log }: RevocationsOptions) {
    this.#clock = clock
    this.#watch = watchFile({
      path,
      everyMs: RECHECK_EVERY_MS,
      clock,
      onBytes: (bytes) => {
        this.#entries = null
        if (bytes === null) throw new Error('the file is missing')
        this.#entries = readRevocations(bytes)
      },
      onError: (error) => {
        this.#entries = null
        log.error({ path, error: String(error) }, '-revocations-file: every token is refused until it can be read')
      },
    })
  }

  judge(who: Subject, tenant: string | null): RevocationVerdict {
    if (this.#entries === null) return 'unavailable'
    if (this.#entries.size === 0) return null
    const now = this.#clock.now()
    const found = keysOf(who, tenant).flatMap((key) => this.#entries?.get(key) ?? [])
    const live = found.filter(({ until }) => now < until)
    if (live.length === 0) return null
    return live.some(({ mode }) => mode === 'revoke') ? 'revoked' : 'suspended'
  }

  start(): Promise<void> {
    return this.#watch.check()
  }

  close(): void {
    this.#watch.stop()
  }
}

/** Everything whose revocation ends a token: its own names, those of its delegators and fork parents, and the tokens it descends from. */
function keysOf(who: Subject, tenant: string | null): readonly string[] {
  const { user, issuer } = who
  const { delegators, forkedFrom } = ancestryOf(who)
  const sessions = [who, ...delegators, ...forkedFrom]
  const ancestors = [who.jti, who.parentJti, who.delegatorJti, ...who.delegationJtis]
  return [
    ...ancestors.filter((jti) => jti !== null).map((jti) => `jti ${jti}`),
    ...sessions.flatMap(({ namespace, agent, session }) => [
      `session ${namespace}/${agent}/${session}`,
      `agent ${namespace}/${agent}`,
      `namespace ${namespace}`,
    ]),
    ...(user === null ? [] : [`user ${user}`, `user ${issuer}#${user}`]),
    ...(tenant === null ? [] : [`tenant ${tenant}`]),
    'all ',
  ]
}

/** The format that the gateway reads too: `{version, revocations: [{id, target, mode, reason, createdAt, expiresAt}]}`. */
function readRevocations(bytes: Uint8Array): ReadonlyMap<string, readonly Entry[]> {
  const file = parseStrict(bytes)
  if (!isObject(file) || !Array.isArray(file.revocations)) throw new Error('"revocations" must be a list')
  if (file.revocations.length > MAX_REVOCATIONS) throw new Error(`more than ${MAX_REVOCATIONS} revocations`)
  const entries = new Map<string, Entry[]>()
  for (const [index, value] of file.revocations.entries()) {
    const { key, ...entry } = readEntry(value, `revocations[${index}]`)
    const same = entries.get(key)
    if (same === undefined) entries.set(key, [entry])
    else same.push(entry)
  }
  return entries
}

function readEntry(value: unknown, where: string): Entry & { readonly key: string } {
  if (!isObject(value)) throw new Error(`${where} must be an object`)
  const { mode, expiresAt = null } = value
  if (mode !== 'revoke' && mode !== 'suspend') throw new Error(`${where}.mode must be revoke or suspend`)
  const until =
    expiresAt === null ? Number.POSITIVE_INFINITY : typeof expiresAt === 'string' ? Date.parse(expiresAt) : Number.NaN
  if (Number.isNaN(until)) throw new Error(`${where}.expiresAt must be an RFC 3339 time`)
  return { mode, until, key: readTarget(value.target, `${where}.target`) }
}

function readTarget(target: unknown, where: string): string {
  const [pair, ...more] = isObject(target) ? Object.entries(target) : []
  if (pair === undefined || more.length > 0) throw new Error(`${where} must have exactly one member`)
  const [name, value] = pair
  const scope: Scope | undefined = SCOPES.find((each) => each === name)
  if (scope === undefined) throw new Error(`${where}.${name}: one of ${SCOPES.join(', ')}`)
  if (scope === 'all') {
    if (value === true) return 'all '
    throw new Error(`${where}.all must be true`)
  }
  if (typeof value !== 'string' || value === '') throw new Error(`${where}.${scope} must be a string`)
  return `${scope} ${value}`
}
