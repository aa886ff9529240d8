import { createPublicKey, hash } from 'node:crypto'
import type { JsonObject } from '@plat/core'
import type { Pkcs11Uri } from '@plat/keys'
import { KeyServiceError, type KeyUri, type PublicKey, publicKeyOf } from '@plat/keys'
import { TransientKeyError } from '../calls.ts'
import type { WrappingKey } from '../cipher.ts'
import type { SigningKey } from '../signer.ts'
import type { Helper } from './helper.ts'

type Uri = Extract<KeyUri, { kind: 'pkcs11' }>

/** Keys in PKCS#11 tokens, through the helper. */
export class Pkcs11Keys {
  readonly #helper: Pick<Helper, 'request'>

  constructor(helper: Pick<Helper, 'request'>) {
    this.#helper = helper
  }

  async signingKey({ pkcs11 }: Uri, name: string): Promise<SigningKey> {
    const described = await this.#helper.request({ operation: 'describe', purpose: 'sign', key: pkcs11 })
    const publicKey = publicKeyIn(textIn(described, 'publicKey'))
    if (publicKey === null) {
      throw new KeyServiceError('refused', `${name}: holds no Ed25519, P-256, RSA or ML-DSA key`)
    }
    const key = exactKey(pkcs11, described)
    const algorithm = publicKey.algorithm.name
    return {
      ...{ service: 'pkcs11', name, publicKey },
      sign: async (bytes) => {
        const data = Buffer.from(bytes).toString('base64')
        const signed = await this.#helper.request({ operation: 'sign', key, algorithm, data })
        return Buffer.from(textIn(signed, 'signature'), 'base64')
      },
    }
  }

  async wrappingKey({ pkcs11 }: Uri, name: string): Promise<WrappingKey> {
    const described = await this.#helper.request({ operation: 'describe', purpose: 'encrypt', key: pkcs11 })
    const key = exactKey(pkcs11, described)
    return {
      ...{ service: 'pkcs11', name, kid: hash('sha256', `pkcs11 ${key.serial} ${key.id}`, 'base64url') },
      wrap: async (dataKey) => {
        const data = Buffer.from(dataKey).toString('base64')
        return Buffer.from(textIn(await this.#helper.request({ operation: 'wrap', key, data }), 'data'), 'base64')
      },
      unwrap: async (wrapped) => {
        const data = Buffer.from(wrapped).toString('base64')
        const response = await this.#helper.request({ operation: 'unwrap', key, data })
        return response.data === null ? null : Buffer.from(textIn(response, 'data'), 'base64')
      },
    }
  }
}

/** The key by the serial number of its token and its id: a label that names another key later does not change it. */
function exactKey(uri: Pkcs11Uri, described: JsonObject): Pkcs11Uri {
  return { ...uri, serial: textIn(described, 'serial'), id: textIn(described, 'id') }
}

function publicKeyIn(pem: string): PublicKey | null {
  try {
    return publicKeyOf(createPublicKey(pem))
  } catch {
    return null
  }
}

function textIn(members: JsonObject, member: string): string {
  const value = members[member]
  if (typeof value === 'string' && value !== '') return value
  throw new TransientKeyError(`the PKCS#11 helper returned no ${member}`)
}
