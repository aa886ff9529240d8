import type { Log } from '@plat/process'
import { OAuthRefusal, type Refusal } from './refusal.ts'

/** What is issued, and refused. */
export type IssuanceEvent = 'mint' | 'bind' | 'exchange' | 'delegation' | 'bootstrap'

/** What an issued token is recorded with; never the token itself. */
export interface IssuedFacts {
  /** Absent when a session was given without a token. */
  readonly jti?: string
  /** SPIFFE ID. */
  readonly sub: string
  readonly user: string | null
  readonly scope: string
  /** RFC 3339; absent when nothing ends it. */
  readonly expiresAt?: string
  /** The `jti` of the token that it was made from. */
  readonly parent?: string
  /** SPIFFE IDs of the delegating agents, nearest first. */
  readonly chain?: readonly string[]
  readonly audience?: string
  readonly provider?: string
}

/** Issuance is audited: one line per token and per refusal. */
export function recordIssued(log: Log, event: IssuanceEvent, facts: IssuedFacts): void {
  log.info({ event, outcome: 'issued', ...facts }, 'issued')
}

/** `who`: the SPIFFE ID and `jti` of the token that asked, once they were verified. */
export function recordRefused(log: Log, event: IssuanceEvent, refusal: Refusal, who: object = {}): void {
  const { status, message: reason } = refusal
  const code = refusal instanceof OAuthRefusal ? { code: refusal.code } : {}
  log.warn({ event, outcome: 'refused', status, ...code, reason, ...who }, 'refused')
}
