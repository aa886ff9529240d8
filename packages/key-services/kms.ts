import { createPublicKey, hash } from 'node:crypto'
import type { CloudCredentials } from '@plat/cloud'
import { type Clock, type JsonObject, readJsonObject, reasonOf } from '@plat/core'
import { awsDomain, type Dialer, signAws } from '@plat/http'
import { type AlgorithmName, KeyServiceError, type KeyUri, type PublicKey, publicKeyOf } from '@plat/keys'
import { TransientKeyError } from './calls.ts'
import type { WrappingKey } from './cipher.ts'
import { joseSignature } from './ecdsa.ts'
import type { SigningKey } from './signer.ts'

/** Time limit of one request, in milliseconds. */
const REQUEST_MS = 5_000
const MAX_RESPONSE_BYTES = 64 * 1024
/** Longest message that KMS signs without its digest, in bytes. */
const MAX_RAW_BYTES = 4096

type KmsUri = Extract<KeyUri, { kind: 'kms' }>

export interface KmsOptions {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clouds: Pick<CloudCredentials, 'aws'>
  readonly clock: Clock
  /** `AWS_ENDPOINT_URL_KMS` and `AWS_ENDPOINT_URL`, as for the SDKs of AWS. */
  readonly env: NodeJS.ProcessEnv
  /** `cloudCredentials.aws.partitionDNSSuffix` */
  readonly domain: string
}

/** Parameters of `Sign` for an algorithm. KMS signs a digest, or with `RAW` the message itself. */
const SIGNING: Readonly<Record<AlgorithmName, { readonly name: string; readonly type: 'RAW' | 'DIGEST' }>> = {
  EdDSA: { name: 'ED25519_SHA_512', type: 'RAW' },
  ES256: { name: 'ECDSA_SHA_256', type: 'DIGEST' },
  RS256: { name: 'RSASSA_PKCS1_V1_5_SHA_256', type: 'DIGEST' },
  'ML-DSA-44': { name: 'ML_DSA_SHAKE_256', type: 'RAW' },
  'ML-DSA-65': { name: 'ML_DSA_SHAKE_256', type: 'RAW' },
  'ML-DSA-87': { name: 'ML_DSA_SHAKE_256', type: 'RAW' },
}

/** Bound into each data key: it opens in no other use of the same key. */
const CONTEXT = { plat: 'data-key' }

export class Kms {
  readonly #options: KmsOptions

  constructor(options: KmsOptions) {
    this.#options = options
  }

  /** Fetches the public half. Signatures are by this key, also when an alias names another one later. */
  async signingKey(uri: KmsUri, name: string): Promise<SigningKey> {
    const request = this.#sender(uri, name)
    const described = await request('GetPublicKey', { KeyId: uri.key })
    const id = textIn(described, 'KeyId', name)
    const publicKey = publicKeyIn(bytesIn(described, 'PublicKey', name))
    const { SigningAlgorithms: offered } = described
    const signing = publicKey === null ? undefined : SIGNING[publicKey.algorithm.name]
    if (publicKey === null || signing === undefined || !(Array.isArray(offered) && offered.includes(signing.name))) {
      throw refused(
        name,
        `holds a key of spec ${String(described.KeySpec)}; use Ed25519, P-256, RSA or ML-DSA for SIGN_VERIFY`,
      )
    }
    return {
      ...{ service: 'kms', name, publicKey },
      async sign(bytes) {
        if (signing.type === 'RAW' && bytes.length > MAX_RAW_BYTES) {
          throw refused(name, `KMS signs at most ${MAX_RAW_BYTES} bytes with this type of key; use P-256 or RSA`)
        }
        const message = signing.type === 'RAW' ? Buffer.from(bytes) : hash('sha256', bytes, 'buffer')
        const signed = await request('Sign', {
          KeyId: id,
          Message: message.toString('base64'),
          MessageType: signing.type,
          SigningAlgorithm: signing.name,
        })
        expectKey(signed, id, name)
        return joseSignature(publicKey.algorithm.name, bytesIn(signed, 'Signature', name))
      },
    }
  }

  async wrappingKey(uri: KmsUri, name: string): Promise<WrappingKey> {
    const request = this.#sender(uri, name)
    const { KeyMetadata: metadata } = await request('DescribeKey', { KeyId: uri.key })
    const members: JsonObject = typeof metadata === 'object' && metadata !== null ? { ...metadata } : {}
    const { KeySpec: spec, KeyUsage: usage, KeyState: state } = members
    if (spec !== 'SYMMETRIC_DEFAULT' || usage !== 'ENCRYPT_DECRYPT') {
      throw refused(
        name,
        `holds a key of spec ${String(spec)} for ${String(usage)}; use a symmetric key for ENCRYPT_DECRYPT`,
      )
    }
    if (state !== 'Enabled') throw refused(name, `the key is in state ${String(state)}`)
    const id = textIn(members, 'Arn', name)
    return {
      ...{ service: 'kms', name, kid: hash('sha256', `kms ${id}`, 'base64url') },
      async wrap(dataKey) {
        const plain = Buffer.from(dataKey).toString('base64')
        const response = await request('Encrypt', { KeyId: id, Plaintext: plain, EncryptionContext: CONTEXT })
        expectKey(response, id, name)
        return bytesIn(response, 'CiphertextBlob', name)
      },
      async unwrap(wrapped) {
        const blob = Buffer.from(wrapped).toString('base64')
        const response = await request('Decrypt', { KeyId: id, CiphertextBlob: blob, EncryptionContext: CONTEXT })
        if (response === INVALID) return null
        expectKey(response, id, name)
        return bytesIn(response, 'Plaintext', name)
      },
    }
  }

  #sender({ region }: KmsUri, name: string): (action: string, body: object) => Promise<JsonObject> {
    const { dialer, clouds, clock, env, domain } = this.#options
    const given = env.AWS_ENDPOINT_URL_KMS || env.AWS_ENDPOINT_URL
    const url = new URL(given || `https://kms.${region}.${awsDomain(region, domain)}/`)
    return async (action, members) => {
      const credentials = await clouds.aws()
      const body = JSON.stringify(members)
      const plain = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${action}` }
      const headers = signAws(
        { method: 'POST', url, headers: plain, body, region, service: 'kms', at: clock.now() },
        credentials,
      )
      const options = { method: 'POST', headers, body, maxBytes: MAX_RESPONSE_BYTES, timeoutMs: REQUEST_MS } as const
      const { status, bytes } = await dialer.fetchBytes(url, 'cloud', options).catch((error: unknown) => {
        throw new TransientKeyError(`KMS is not reachable: ${reasonOf(error)}`)
      })
      const response = readJsonObject(bytes)
      if (status === 200 && response !== null) return response
      return failure(status, codeOf(response), `${name}: ${action}`)
    }
  }
}

/** Returned for a ciphertext that is not one of this key. */
const INVALID: JsonObject = {}

/** Codes of failures that may pass (AWS, "Common errors" of KMS); each 5xx may. */
const TRANSIENT =
  /^(?:Throttling|LimitExceeded|DependencyTimeout|KMSInternal|RequestLimitExceeded|TooManyRequests|KeyUnavailable)/
const TAMPERED = /^(?:InvalidCiphertext|IncorrectKey)Exception$/

function failure(status: number, code: string, what: string): JsonObject {
  if (TAMPERED.test(code)) return INVALID
  const message = `${what}: KMS answered ${status}${code === '' ? '' : ` ${code}`}`
  if (status >= 500 || status === 429 || TRANSIENT.test(code)) throw new TransientKeyError(message)
  throw new KeyServiceError('refused', message)
}

/** `__type` of an error, which may have a prefix. Nothing else of the response is repeated. */
function codeOf(response: JsonObject | null): string {
  const type = response?.__type
  const [code = ''] = (typeof type === 'string' && /[A-Za-z]{1,80}$/.exec(type)) || []
  return code
}

/** Services by others than AWS return the id instead of the ARN. */
function expectKey(response: JsonObject, id: string, name: string): void {
  if (lastPart(String(response.KeyId)) !== lastPart(id)) throw refused(name, 'KMS answered for another key')
}

function lastPart(arn: string): string {
  return arn.slice(arn.indexOf(':key/') === -1 ? 0 : arn.indexOf(':key/') + ':key/'.length)
}

function publicKeyIn(der: Uint8Array): PublicKey | null {
  try {
    return publicKeyOf(createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' }))
  } catch {
    return null
  }
}

function textIn(members: JsonObject, member: string, name: string): string {
  const value = members[member]
  if (typeof value === 'string' && value !== '') return value
  throw new TransientKeyError(`${name}: the response of KMS has no ${member}`)
}

function bytesIn(members: JsonObject, member: string, name: string): Uint8Array {
  return Buffer.from(textIn(members, member, name), 'base64')
}

function refused(name: string, why: string): KeyServiceError {
  return new KeyServiceError('refused', `${name}: ${why}`)
}
