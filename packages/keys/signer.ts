import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { AlgorithmName } from './algorithms.ts'
import { readKeyFile, readPrivateKey } from './files.ts'
import { type PublicJwk, type PublicKey, publicKeyOf } from './jwk.ts'

/** Signs bytes. A key in a file is synchronous; a remote one returns promises. */
export interface Signer {
  readonly alg: AlgorithmName
  /** RFC 7638 thumbprint of the public half. */
  readonly kid: string
  readonly publicJwk: PublicJwk
  readonly publicKey: PublicKey
  /** `caller`: whose share of a key service's queue is used; absent: not counted. */
  sign(bytes: Uint8Array, caller?: string): Uint8Array | Promise<Uint8Array>
}

/** A synchronous signer. */
export interface LocalSigner extends Signer {
  sign(bytes: Uint8Array): Uint8Array
}

/** Opens the signing key that a URI or path names. Throws one line that names it; only files are supported. */
export async function openSigner(uriOrPath: string): Promise<LocalSigner> {
  const { file, text } = await readKeyFile(uriOrPath)
  return signerOf(readPrivateKey(text, file), file)
}

/** Creates a signer for a private key. `name` is for messages when the type of the key is not supported. */
export function signerOf(key: KeyObject, name: string): LocalSigner {
  const publicKey = publicKeyOf(key)
  if (publicKey === null) {
    throw new Error(
      `${name}: keys of type ${key.asymmetricKeyType}: not built yet in this version; use Ed25519, P-256, RSA or ML-DSA`,
    )
  }
  const { algorithm, kid, jwk } = publicKey
  return { alg: algorithm.name, kid, publicJwk: jwk, publicKey, sign: (bytes) => algorithm.sign(bytes, key) }
}

/** Creates a key that lives as long as the process, for development and tests. */
export function ephemeralSigner(algorithm: AlgorithmName = 'EdDSA'): LocalSigner {
  return signerOf(newPrivateKey(algorithm), 'ephemeral key')
}

const RSA_BITS = 2048

function newPrivateKey(algorithm: AlgorithmName): KeyObject {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519').privateKey
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: RSA_BITS }).privateKey
  if (algorithm === 'ML-DSA-44') return generateKeyPairSync('ml-dsa-44').privateKey
  if (algorithm === 'ML-DSA-65') return generateKeyPairSync('ml-dsa-65').privateKey
  return generateKeyPairSync('ml-dsa-87').privateKey
}
