import type { Clock } from '@plat/core'
import { type LocalSigner, openSigner } from '@plat/keys'
import { MAX_TOKEN_CHARS, signJws } from '@plat/tokens'
import type { FastifyInstance } from 'fastify'
import { type Call, type Denial, deny, type Identity } from '../../call/index.ts'
import { type Subject, transactionClaims } from './claims.ts'
import type { TxnTokensConfig } from './config.ts'

/** Where the public key is found, beside the address that agents use. */
const KEYS_PATH = '/.well-known/txn-token-jwks.json'
/** How long others may keep it, in seconds. */
const KEYS_MAX_AGE_SECONDS = 300

export interface TxnTokensOptions {
  readonly config: { readonly txnTokens: TxnTokensConfig }
  /** Who the caller is to the broker; null: the broker does not know it. */
  readonly subjectOf: (identity: Identity) => Subject | null
  /** The taint labels of a caller now. */
  readonly labelsOf: (identity: Identity) => readonly string[]
  readonly clock: Clock
}

/** Tells a called agent, under the gateway's signature, who calls it and for whom (docs/spec/gateway.md, `txnTokens`). */
export interface TxnTokens {
  /** Mode `replace`: the token stands instead of the `x-plat-*` headers, not beside them. */
  readonly replaces: boolean
  /** The value of header `Txn-Token` for this call. Each call has its own: a transaction is good once (docs/spec/broker-api.md). */
  token(call: Pick<Call<'identity' | 'target'>, 'id' | 'facts'>): string | Denial
  /** Serves the public key as a JWK set, for the broker (`-txn-token-keys`) and for agents. */
  pages(app: FastifyInstance): void
}

/** Null when `txnTokens.mode` is off. Rejects when the key cannot be used. */
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

/** No verifier takes it for a session token (docs/spec/broker-api.md, "Session token"). */
const HEADER = { typ: 'txntoken+jwt' }
