import type { Clock } from '@plat/core'
import { type LocalSigner, openSigner } from '@plat/keys'
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
}

/** Signed information about the caller for called agents (docs/spec/gateway.md, `txnTokens`). */
export interface TxnTokens {
  /** Mode `replace`: the token is sent instead of the `x-plat-*` headers. */
  readonly replaces: boolean
  /** Returns the value of header `Txn-Token` for this call. Each call gets a separate token, usable once (docs/spec/broker-api.md). */
  token(call: Pick<Call<'identity' | 'target'>, 'id' | 'facts'>): string | Denial
  /** Serves the public key as a JWK set, for the broker (`-txn-token-keys`) and for agents. */
  pages(app: FastifyInstance): void
}

/** Null if `txnTokens.mode` is off. Rejects if the key is unusable. */
export async function createTxnTokens(options: TxnTokensOptions): Promise<TxnTokens | null> {
  const { mode, signingKey } = options.config.txnTokens
  if (mode === 'off') return null
  const signer = await openSigner(signingKey)
  if (signer.alg === 'EdDSA') return new SignedTransactions(options, signer)
  throw new Error('txnTokens.signingKey: must be an Ed25519 key, such as `plat keys generate` writes')
}

class SignedTransactions implements TxnTokens {
  readonly replaces: boolean
  readonly #options: TxnTokensOptions
  readonly #signer: LocalSigner
  readonly #workloadID: string

  constructor(options: TxnTokensOptions, signer: LocalSigner) {
    const { mode, audience, workloadID } = options.config.txnTokens
    this.replaces = mode === 'replace'
    this.#options = options
    this.#signer = signer
    this.#workloadID = workloadID === '' ? `spiffe://${audience}/plat/gateway` : workloadID
  }

  token(call: Pick<Call<'identity' | 'target'>, 'id' | 'facts'>): string | Denial {
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
    const token = signJws(this.#signer, HEADER, claims)
    return token.length > MAX_TOKEN_CHARS ? deny('internal', 'the transaction token would be too long') : token
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

/** Never accepted as a session token (docs/spec/broker-api.md, "Session token"). */
const HEADER = { typ: 'txntoken+jwt' }
