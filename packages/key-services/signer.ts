import { type AlgorithmName, KeyServiceError, type PublicJwk, type PublicKey, type Signer } from '@plat/keys'
import type { KeyCalls, KeyServiceName } from './calls.ts'

export interface SigningKey {
  readonly service: KeyServiceName
  /** Its URI, for messages. */
  readonly name: string
  /** The public half, as fetched from the service. */
  readonly publicKey: PublicKey
  /** Signs once, in the form of JOSE. */
  sign(bytes: Uint8Array): Promise<Uint8Array>
}

/** Signs with a key of a service. Verifies each signature: one by another key, or a damaged one, is refused here and not at its reader. */
export class ServiceSigner implements Signer {
  readonly alg: AlgorithmName
  readonly kid: string
  readonly publicJwk: PublicJwk
  readonly publicKey: PublicKey
  readonly #key: SigningKey
  readonly #calls: KeyCalls

  constructor(key: SigningKey, calls: KeyCalls) {
    this.#key = key
    this.#calls = calls
    const { publicKey } = key
    this.alg = publicKey.algorithm.name
    this.kid = publicKey.kid
    this.publicJwk = publicKey.jwk
    this.publicKey = publicKey
  }

  sign(bytes: Uint8Array, caller?: string): Promise<Uint8Array> {
    const { service, name } = this.#key
    return this.#calls.run({ service, operation: 'sign', key: name, caller }, async () => {
      const signature = await this.#key.sign(bytes)
      const { algorithm, key } = this.publicKey
      if (!isValid(() => algorithm.verify(bytes, key, signature))) {
        throw new KeyServiceError(
          'refused',
          `${name}: the signature does not verify with the public key of the service`,
        )
      }
      return signature
    })
  }
}

/** A signature of another length throws. */
function isValid(verify: () => boolean): boolean {
  try {
    return verify()
  } catch {
    return false
  }
}
