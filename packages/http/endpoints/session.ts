import { isSpiffeSegment } from '@plat/core'
import { isPrincipalVerified, isThumbprint, MAX_GROUPS, type PrincipalVerified } from '@plat/tokens'
import type { Body } from './body.ts'
import { RefusalError } from './refusal.ts'

/** Session members of a request (docs/spec/broker-api.md, `POST /v1/token`), decoded: identity and permissions of the session. */
export interface SessionRequest {
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string | null
  readonly scopes: readonly string[]
  readonly tier: string | null
  /** 0 for the default lifetime. */
  readonly ttlSeconds: number
  /** Null for the default audience. */
  readonly audience: string | null
  readonly groups: readonly string[]
  readonly principalVerified: PrincipalVerified | null
  readonly parentSession: string | null
  readonly forkRoot: string | null
  readonly inheritedTaints: readonly string[]
  /** Ancestor sessions in the namespace, as `<agent>/<session>`, nearest first. */
  readonly forkedFrom: readonly string[]
}

/** Names of the session members. */
export const SESSION_FIELDS: ReadonlySet<string> = new Set([
  'namespace',
  'agent',
  'session',
  'user',
  'scopes',
  'tier',
  'ttlSeconds',
  'audience',
  'groups',
  'principalVerified',
  'parentSession',
  'forkRoot',
  'inheritedTaints',
  'forkedFrom',
])

/** Maximum length of user, audience, group and taint label, in characters. */
const MAX_TEXT = 256
/** Maximum number of taint labels per session. */
const MAX_TAINTS = 64
/** Maximum number of ancestor sessions (nested forks). */
const MAX_FORKS = 16

/** A claim joins its entries with spaces: an entry containing white space would split in two. */
const WORD = /^[^\s\p{Cc}]+$/u
const LINE = /^[^\p{Cc}]+$/u
/** Printable ASCII without the space, at most 256 bytes; scopes have no further syntax. */
const SCOPE = /^[\x21-\x7e]{1,256}$/
/** Name of a TrustTier. */
const TIER = /^(?=.{1,63}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/

/** Decodes and checks the session members of a body. Throws RefusalError with the message of the contract. */
export function decodeSession(body: Body): SessionRequest {
  return {
    namespace: segment(body, 'namespace'),
    agent: segment(body, 'agent'),
    session: segment(body, 'session'),
    user: matching(body, 'user', LINE),
    scopes: scopes(body),
    tier: matching(body, 'tier', TIER),
    ttlSeconds: ttlSeconds(body),
    // Empty means the default, as at `/v1/token/verify`.
    audience: body.text('audience') === '' ? null : matching(body, 'audience', WORD),
    groups: words(body, 'groups', MAX_GROUPS),
    principalVerified: principalVerified(body),
    parentSession: matching(body, 'parentSession', WORD),
    forkRoot: matching(body, 'forkRoot', WORD),
    inheritedTaints: words(body, 'inheritedTaints', MAX_TAINTS),
    forkedFrom: forkedFrom(body),
  }
}

function segment(body: Body, name: string): string {
  const value = body.text(name)
  if (value === null || value === '') throw new RefusalError(400, `${name} is required`)
  if (!isSpiffeSegment(value)) throw new RefusalError(400, `invalid ${name}: use letters, digits, ".", "_" and "-"`)
  return value
}

function matching(body: Body, name: string, pattern: RegExp): string | null {
  const value = body.text(name)
  if (value === null || (value.length <= MAX_TEXT && pattern.test(value))) return value
  throw new RefusalError(400, `invalid ${name}`)
}

function words(body: Body, name: string, most: number): readonly string[] {
  const list = body.texts(name)
  if (list.length > most) throw new RefusalError(400, `${name}: at most ${most} entries`)
  for (const entry of list) {
    if (entry.length > MAX_TEXT || !WORD.test(entry) || !entry.isWellFormed()) {
      throw new RefusalError(
        400,
        `invalid ${name}: an entry is empty, too long, or holds white space or control characters`,
      )
    }
  }
  return list
}

function forkedFrom(body: Body): readonly string[] {
  const list = body.texts('forkedFrom')
  if (list.length > MAX_FORKS) throw new RefusalError(400, `forkedFrom: at most ${MAX_FORKS} entries`)
  for (const entry of list) {
    const parts = entry.split('/')
    if (entry.length > MAX_TEXT || parts.length !== 2 || !parts.every(isSpiffeSegment)) {
      throw new RefusalError(400, 'invalid forkedFrom: write each entry as <agent>/<session>')
    }
  }
  return list
}

function scopes(body: Body): readonly string[] {
  const list = body.texts('scopes')
  if (!list.every((scope) => SCOPE.test(scope))) throw new RefusalError(400, 'invalid scope')
  return list
}

function ttlSeconds(body: Body): number {
  const value = body.has('ttlSeconds') ? body.value('ttlSeconds') : 0
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new RefusalError(400, 'invalid JSON: ttlSeconds must be an integer')
  }
  if (value < 0) throw new RefusalError(400, 'ttlSeconds must be >= 0')
  return value
}

function principalVerified(body: Body): PrincipalVerified | null {
  const value = body.text('principalVerified')
  if (value === null || isPrincipalVerified(value)) return value
  throw new RefusalError(400, 'invalid principalVerified')
}

/** Member `dpopJkt`: RFC 7638 thumbprint of the key to bind a token to. Returns null when it is absent. */
export function dpopJkt(body: Body): string | null {
  const value = body.text('dpopJkt')
  if (value === null || isThumbprint(value)) return value
  throw new RefusalError(400, 'bad dpopJkt')
}
