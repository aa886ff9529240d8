import { generateKeyPairSync, hash } from 'node:crypto'
import { type Clock, systemClock } from '@plat/core'
import { type LocalSigner, signerOf } from '@plat/keys'
import { signJws } from '@plat/tokens'

/** Members of a proof that override its defaults; `undefined` removes one. */
export interface ProofChange {
  readonly header?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
}

/** An agent's DPoP key, and proofs by it. */
export interface TestProver {
  readonly signer: LocalSigner
  readonly jkt: string
  /** A proof for a POST of `url`; with `ath` when a token is given. A change makes it a wrong one. */
  proof(url: string, token?: string | null, change?: ProofChange): string
}

/** A key pair made at run time. */
export function testProver({
  clock = systemClock,
  alg = 'EdDSA',
}: {
  clock?: Clock
  alg?: 'EdDSA' | 'ES256'
} = {}): TestProver {
  const pair = alg === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signer = signerOf(pair.privateKey, 'test key')
  let count = 0
  return {
    signer,
    jkt: signer.kid,
    proof(url, token = null, { header = {}, claims = {} } = {}) {
      count++
      return signJws(
        signer,
        { typ: 'dpop+jwt', kid: undefined, jwk: signer.publicJwk, ...header },
        {
          jti: `proof-${count}`,
          htm: 'POST',
          htu: url,
          iat: Math.floor(clock.now() / 1000),
          ath: token === null ? undefined : hash('sha256', token, 'base64url'),
          ...claims,
        },
      )
    },
  }
}
