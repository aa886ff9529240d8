import { type Clock, isPromise, reasonOf } from '@plat/core'
import { fileKeys, KeyServiceError, type KeyStore, type Signer } from '@plat/keys'
import type { Log } from '@plat/process'
import { MAX_TOKEN_CHARS, signJws } from '@plat/tokens'
import type { FastifyInstance } from 'fastify'
import { type Call, type Denial, deny, type Identity } from '../../call/index.ts'
import { type Subject, transactionClaims } from './claims.ts'
import type { TxnTokensConfig } from './config.ts'

/** Path of the public keys at the address that agents use. */
const KEYS_PATH = '/.well-known/txn-token-jwks.json'
/** Cache lifetime of the keys for clients, in seconds. */
const KEYS_MAX_AGE_SECONDS = 300

export interface TxnTokensOptions {
  readonly config: { readonly txnTokens: TxnTokensConfig }
  /** Returns the caller as known to the broker, or null. */
  readonly subjectOf: (identity: Identity) => Subject | null
  /** Returns the current taint labels of a caller. */
  readonly labelsOf: (identity: Identity) => readonly string[]
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  /** Default: keys in files only. */
  readonly keys?: KeyStore
}

/** Signed information about the caller for called agents (docs/spec/gateway.md, `txnTokens`). */
export interface TxnTokens {
  /** Mode `replace`: the token is sent instead of the `x-plat-*` headers. */
  readonly replaces: boolean
  /**
   * Returns the value of header `Txn-Token` for this call; with a key of a key service, a promise of it. Each call gets a separate token, usable once
   * (docs/spec/broker-api.md).
   */
  token(call: Pick<Call<'identity' | 'target'>, 'id' | 'facts'>): string | Denial | Promise<string | Denial>
  /** Serves the public key as a JWK set, for the broker (`-txn-token-keys`) and for agents. */
  pages(app: FastifyInstance): void
}

/** Null if `txnTokens.mode` is off. Rejects if the key is unusable. */
export async function createTxnTokens(options: TxnTokensOptions): Promise<TxnTokens | null> {
  const { mode, signingKey } = options.config.txnTokens
  if (mode === 'off') return null
  const signer = await (options.keys ?? fileKeys).openSigner(signingKey).catch((error: unknown) => {
    throw new Error(`txnTokens.signingKey: ${reasonOf(error)}`, { cause: error })
  })
  if (signer.alg === 'EdDSA') return new SignedTransactions(options, signer)
  throw new Error('txnTokens.signingKey: must be an Ed25519 key, such as `plat keys generate` writes')
}

class SignedTransactions implements TxnTokens {
  readonly replaces: boolean
  readonly #options: TxnTokensOptions
  readonly #signer: Signer
  readonly #workloadID: string

  constructor(options: TxnTokensOptions, signer: Signer) {
    const { mode, audience, workloadID } = options.config.txnTokens
    this.replaces = mode === 'replace'
    this.#options = options
    this.#signer = signer
    this.#workloadID = workloadID === '' ? `spiffe://${audience}/plat/gateway` : workloadID
  }

  token(call: Pick<Call<'identity' | 'target'>, 'id' | 'facts'>): string | Denial | Promise<string | Denial> {
    const { config, subjectOf, labelsOf, clock } = this.#options
    const { identity } = call.facts
    const subject = subjectOf(identity)
    if (subject === null) return deny('internal', 'the caller has no session that a transaction token could name')
    const { issuer, audience, ttlSeconds } = config.txnTokens
    const claims = transactionClaims(call, subject, labelsOf(identity), {
      issuer,
      audience,
      workloadID: this.#workloadID,
      issuedAt: Math.floor(clock.now() / 1000),
      lifetimeSeconds: ttlSeconds,
    })
    const { namespace, agent } = identity
    const token = signJws(this.#signer, HEADER, claims, `${namespace}/${agent}`)
    return isPromise(token) ? token.then(checkLength, (error) => this.#unsigned(error)) : checkLength(token)
  }

  #unsigned(error: unknown): Denial {
    const { log } = this.#options
    if (error instanceof KeyServiceError && error.kind === 'overloaded')
      return deny('overloaded', 'too many transaction tokens wait for the key service')
    log.error({ key: 'txnTokens.signingKey', error: reasonOf(error) }, 'a transaction token could not be signed')
    return deny('state_unavailable', 'the transaction token cannot be signed now')
  }

  pages(app: FastifyInstance): void {
    const { publicJwk, kid, alg } = this.#signer
    const keys = JSON.stringify({ keys: [{ ...publicJwk, kid, use: 'sig', alg }] })
    app.get(KEYS_PATH, (_, reply) =>
      reply
        .type('application/jwk-set+json')
        .header('cache-control', `public, max-age=${KEYS_MAX_AGE_SECONDS}`)
        .send(keys),
    )
  }
}

function checkLength(token: string): string | Denial {
  return token.length > MAX_TOKEN_CHARS ? deny('internal', 'the transaction token would be too long') : token
}

/** Never accepted as a session token (docs/spec/broker-api.md, "Session token"). */
const HEADER = { typ: 'txntoken+jwt' }
