import { createPrivateKey, hash } from 'node:crypto'
import { type Clock, systemIds } from '@plat/core'
import { ephemeralSigner, type LocalSigner, signerOf } from '@plat/keys'
import { DPOP_ALGORITHMS, signJws } from '@plat/tokens'
import { PlatError } from '../error.ts'

/** The request of a proof. */
export interface Proven {
  readonly method: string
  readonly url: string
  /** Its hash is part of the proof. Null if the token is in the body. */
  readonly token: string | null
  /** Nonce of the server (RFC 9449, section 8), or null. */
  readonly nonce?: string | null
}

/** The key that the tokens of a session are bound to; creates proofs (RFC 9449). */
export class Prover {
  readonly #signer: LocalSigner
  readonly #clock: Clock
  readonly #id: () => string

  /** `privateKey`: PKCS8 in PEM, Ed25519 or P-256; default: a new Ed25519 key for the lifetime of the process. */
  constructor(clock: Clock, privateKey?: string) {
    this.#signer = privateKey === undefined ? ephemeralSigner() : signerOf(keyIn(privateKey), 'dpop.privateKey')
    const { alg } = this.#signer
    if (!DPOP_ALGORITHMS.some((name) => name === alg))
      throw new PlatError(`dpop.privateKey: proofs are made with Ed25519 or P-256, not with a key for ${alg}`)
    this.#clock = clock
    const ids = systemIds(clock)
    this.#id = () => ids.uuid()
  }

  /** RFC 7638 thumbprint: `cnf.jkt` of the tokens that are bound to this key. */
  get jkt(): string {
    return this.#signer.kid
  }

  proof({ method, url, token, nonce }: Proven): string {
    const { origin, pathname } = new URL(url)
    const header = { typ: 'dpop+jwt', kid: undefined, jwk: this.#signer.publicJwk }
    return signJws(this.#signer, header, {
      jti: this.#id(),
      htm: method.toUpperCase(),
      htu: origin + pathname,
      iat: Math.floor(this.#clock.now() / 1000),
      ath: token === null ? undefined : hash('sha256', token, 'base64url'),
      nonce: nonce ?? undefined,
    })
  }
}

function keyIn(pem: string) {
  try {
    return createPrivateKey(pem)
  } catch {
    // The message of OpenSSL may quote the input.
    throw new PlatError('dpop.privateKey is not a private key in PEM (PKCS8)')
  }
}
