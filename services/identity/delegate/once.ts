import { hash } from 'node:crypto'
import { type Clock, ExpiringMap } from '@plat/core'
import type { ExchangeAnswer } from '../exchange/parts.ts'
import type { DelegationRequest } from './delegate.ts'

/** A used transaction is remembered at least this long, in milliseconds, and always until its token has expired. */
const REMEMBER_MS = 60_000
/** An identical request gets the same token for this long, in milliseconds: its first answer may have been lost. */
const REPEAT_MS = 10_000
/** Transactions that are remembered at most, about 2 KB each with their answer. */
const MAX_TRANSACTIONS = 20_000

/** One use of a transaction token. */
export interface TransactionUse {
  readonly txn: string
  /** SPIFFE ID of the actor. */
  readonly actor: string
  /** The key that the actor proved to hold; null for an unbound one. */
  readonly jkt: string | null
  /** Unix seconds. */
  readonly expiresAt: number
  readonly request: DelegationRequest
}

export type OnceVerdict = 'used' | 'full' | ExchangeAnswer

/** Transaction tokens are good once per actor and proof key. */
export interface Once {
  /** Runs `make` for the first use; answers its answer again to the identical request that comes soon after. */
  run(use: TransactionUse, make: () => ExchangeAnswer): OnceVerdict | Promise<OnceVerdict>
}

interface Used {
  readonly digest: string
  readonly answer: ExchangeAnswer
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Uses in the memory of one process. `make` answers at once, so that asking and remembering are one step. */
export function memoryOnce(clock: Clock): Once {
  const used = new ExpiringMap<Used>({ clock, cap: MAX_TRANSACTIONS })
  return {
    run(use, make) {
      const key = digestOf([use.txn, use.actor, use.jkt])
      const { request } = use
      const digest = digestOf([request.subjectToken, request.actorToken, request.scopes, request.ttlSeconds])
      const now = clock.now()
      const before = used.get(key)
      if (before !== null) {
        const repeated = before.digest === digest && now < before.at + REPEAT_MS
        return repeated ? aged(before, now) : 'used'
      }
      if (used.isFull()) return 'full'
      const answer = make()
      used.insert(key, { digest, answer, at: now }, Math.max(now + REMEMBER_MS, use.expiresAt * 1000))
      return answer
    },
  }
}

/** The same token has less to live by now. */
function aged({ answer, at }: Used, now: number): ExchangeAnswer {
  return { ...answer, expires_in: Math.max(0, answer.expires_in - Math.floor((now - at) / 1000)) }
}

function digestOf(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64')
}
