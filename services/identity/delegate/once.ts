import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { type Clock, decodeBase64url, encodeBase64url, type Ids, type PoolObserver, watchedPool } from '@plat/core'
import type { OnceSets } from '@plat/state'
import type { DelegationRequest } from '../exchange/request.ts'

/** A used transaction is remembered at least this long, in milliseconds, and always until its token has expired. */
const REMEMBER_MS = 60_000
/** An identical request gets the same token for this long, in milliseconds: its first answer may have been lost. */
const REPEAT_MS = 10_000
/** AES-GCM: bytes of the nonce and of the tag. */
const IV_BYTES = 12
const TAG_BYTES = 16

/** One use of a transaction token. */
export interface TransactionUse {
  readonly txn: string
  /** SPIFFE ID of the actor. */
  readonly actor: string
  /** `<namespace>/<agent>` of the actor. */
  readonly agent: string
  /** The key that the actor proved to hold; null for an unbound one. */
  readonly jkt: string | null
  /** Unix seconds. */
  readonly expiresAt: number
  readonly request: DelegationRequest
}

/** `first`: the offered result is stored. `repeated`: an identical request was answered with `text`, that many ms ago. */
export type OnceVerdict =
  | { readonly kind: 'first' | 'used' | 'full' }
  | { readonly kind: 'repeated'; readonly text: string; readonly agoMs: number }

/** Transaction tokens are good once per actor and proof key. */
export interface Once {
  /** Returns the stored result of this use; null when there is none. */
  find(use: TransactionUse): Promise<OnceVerdict | null>
  /** Of several that offer an answer at the same time one is `first`. */
  claim(use: TransactionUse, text: string): Promise<OnceVerdict>
}

export interface OnceOptions {
  readonly sets: OnceSets
  readonly clock: Clock
  readonly ids: Ids
  readonly observer?: PoolObserver | undefined
}

/**
 * Uses, each with its result encrypted by a key derived from the request: a reader of the store learns no token, and only the identical request
 * decrypts it.
 */
export function createOnce({ sets, clock, ids, observer }: OnceOptions): Once {
  const used = sets.set('transaction', watchedPool({ name: 'transactions', observer }))
  const find: Once['find'] = async (use) => {
    const before = await used.get(keyOf(use))
    if (before === null) return null
    const [at = '', sealed = ''] = before.split(' ')
    const agoMs = clock.now() - Number(at)
    const text = agoMs < REPEAT_MS ? unseal(sealed, use) : null
    return text === null ? { kind: 'used' } : { kind: 'repeated', text, agoMs: Math.max(0, agoMs) }
  }
  return {
    find,
    async claim(use, text) {
      const now = clock.now()
      const until = Math.max(now + REMEMBER_MS, use.expiresAt * 1000)
      const value = `${now} ${seal(text, use, ids.random(IV_BYTES))}`
      const verdict = await used.insert(keyOf(use), value, until, use.agent)
      if (verdict === 'taken') return (await find(use)) ?? { kind: 'used' }
      return { kind: verdict === 'full' ? 'full' : 'first' }
    },
  }
}

function keyOf({ txn, actor, jkt }: TransactionUse): string {
  return hash('sha256', JSON.stringify([txn, actor, jkt]), 'base64')
}

/** 32 bytes that only a holder of both tokens can compute. */
function secretOf({ request }: TransactionUse): Buffer {
  const { subjectToken, actorToken, scopes, ttlSeconds } = request
  return hash('sha256', JSON.stringify(['plat-once-v1', subjectToken, actorToken, scopes, ttlSeconds]), 'buffer')
}

function seal(text: string, use: TransactionUse, iv: Uint8Array): string {
  const cipher = createCipheriv('aes-256-gcm', secretOf(use), iv)
  return encodeBase64url(Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]))
}

/** Null when another request sealed it. */
function unseal(sealed: string, use: TransactionUse): string | null {
  const bytes = decodeBase64url(sealed)
  if (bytes === null || bytes.length < IV_BYTES + TAG_BYTES) return null
  const decipher = createDecipheriv('aes-256-gcm', secretOf(use), bytes.subarray(0, IV_BYTES))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]).toString()
  } catch {
    return null
  }
}
