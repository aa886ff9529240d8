import { type Clock, systemClock } from '@plat/core'
import {
  createJwtVerifier,
  decodeTransaction,
  fault,
  isFault,
  type KeySource,
  type SessionClaims,
  TRANSACTION_TYPE,
  type Verifier,
} from '@plat/tokens'
import { keysOf, TokenRefusedError, type Trust } from './keys.ts'

/** How far the gateway's clock may differ, in seconds. */
const LEEWAY_SECONDS = 5

export interface TransactionVerifierOptions {
  /** The gateway's keys: `{ jwksURL: 'https://gateway.example.com/.well-known/txn-token-jwks.json' }` */
  readonly trust: Trust
  /** `txnTokens.audience` of the gateway: the trust domain, unless it says otherwise. */
  readonly audience: string
  /** This agent: a transaction is for one agent alone. */
  readonly namespace: string
  readonly agent: string
  readonly fetch?: typeof globalThis.fetch
  readonly clock?: Clock
}

/** The call that another agent makes, as the gateway vouches for it. */
export interface Transaction {
  /** Id of the call in the ledger. */
  readonly txn: string
  /** The calling session: agent, user, groups, taints, the agents that delegated to it. */
  readonly caller: SessionClaims
}

/** Verifies the header `Txn-Token` of calls that come through the gateway. */
export interface TransactionVerifier {
  /** @throws TokenRefusedError with the reason; answer 401. */
  verify(token: string | undefined): Promise<Transaction>
  /** Stops following the keys. */
  close(): void
}

/**
 * A verifier for agents that are called by others. Make one and keep it.
 *
 * @example
 * const transactions = createTransactionVerifier({
 *   trust: { jwksURL: `${gatewayURL}/.well-known/txn-token-jwks.json` },
 *   audience: 'plat.local', namespace: 'default', agent: 'researcher',
 * })
 * const { caller } = await transactions.verify(request.headers['txn-token'])
 */
export function createTransactionVerifier(options: TransactionVerifierOptions): TransactionVerifier {
  return new TxnVerifier(options)
}

/** As the verifier of tokens takes it: with the times of the caller's claims. */
interface Timed extends Transaction {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly issuedAt: number
  readonly notBefore: null
  readonly expiresAt: number
}

class TxnVerifier implements TransactionVerifier {
  readonly #keys: KeySource
  readonly #tokens: Verifier<Timed>
  #started: Promise<void> | null = null

  constructor({
    trust,
    audience,
    namespace,
    agent,
    fetch = globalThis.fetch,
    clock = systemClock,
  }: TransactionVerifierOptions) {
    this.#keys = keysOf(trust, fetch, clock)
    const scope = `agents:${namespace}/${agent}`
    this.#tokens = createJwtVerifier<Timed>({
      keys: this.#keys,
      audience,
      leewaySeconds: LEEWAY_SECONDS,
      clock,
      takesType: (typ) => typ === TRANSACTION_TYPE,
      decode({ payload }, keyThumbprint) {
        const read = decodeTransaction(payload, keyThumbprint)
        if (isFault(read)) return read
        const { issuer, audiences, issuedAt, expiresAt, scopes } = read.caller
        if (scopes.length !== 1 || scopes[0] !== scope) return fault('audience', 'the transaction is for another agent')
        return { ...read, issuer, audiences, issuedAt, notBefore: null, expiresAt }
      },
    })
  }

  async verify(token: string | undefined): Promise<Transaction> {
    if (token === undefined || token === '') throw new TokenRefusedError('missing', 'a transaction token is required')
    this.#started ??= this.#keys.start()
    await this.#started
    const answer = await this.#tokens.verify(token)
    if (isFault(answer)) throw new TokenRefusedError(answer.reason, answer.message)
    return { txn: answer.txn, caller: answer.caller }
  }

  close(): void {
    this.#keys.close()
  }
}
