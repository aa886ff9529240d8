import { hash } from 'node:crypto'
import type { CloudCredentials } from '@plat/cloud'
import { decodeBase64url, encodeBase64url, isObject, type JsonObject, readJsonObject, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import { KeyServiceError, type KeyUri, type PublicKey, readPublicJwk } from '@plat/keys'
import { TransientKeyError } from './calls.ts'
import type { WrappingKey } from './cipher.ts'
import type { SigningKey } from './signer.ts'

/** Time limit of one request, in milliseconds. */
const REQUEST_MS = 5_000
const MAX_RESPONSE_BYTES = 64 * 1024
const API_VERSION = '7.4'

type AzureUri = Extract<KeyUri, { kind: 'azurekv' }>

export interface AzureKeysOptions {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clouds: Pick<CloudCredentials, 'azure'>
  /** `PLAT_AZUREKV_ENDPOINT`: origin of an emulator, which has all vaults. */
  readonly env: NodeJS.ProcessEnv
}

interface FetchedKey {
  /** `https://<host>/keys/<key>/<version>` */
  readonly id: string
  readonly version: string
  readonly jwk: JsonObject
}

/** Keys in Azure Key Vault and Managed HSM. */
export class AzureKeys {
  readonly #options: AzureKeysOptions

  constructor(options: AzureKeysOptions) {
    this.#options = options
  }

  /** Fetches the public half of the current or the named version; signatures are by this version. */
  async signingKey(uri: AzureUri, name: string): Promise<SigningKey> {
    const { id, version, jwk } = await this.#fetch(uri, name)
    const publicKey = publicKeyIn(jwk)
    if (publicKey === null || !(publicKey.algorithm.name === 'ES256' || publicKey.algorithm.name === 'RS256')) {
      throw refused(name, `holds a key of type ${String(jwk.kty)} ${String(jwk.crv ?? '')}; use P-256 or RSA`)
    }
    return {
      ...{ service: 'azurekv', name, publicKey },
      sign: async (bytes) => {
        const members = { alg: publicKey.algorithm.name, value: encodeBase64url(hash('sha256', bytes, 'buffer')) }
        return valueIn(await this.#send({ uri, name, path: `/${version}/sign`, body: members }), id, name)
      },
    }
  }

  /** RSA keys of vaults wrap with OAEP, AES keys of Managed HSM with AES key wrap. A wrapped key names the version that unwraps it. */
  async wrappingKey(uri: AzureUri, name: string): Promise<WrappingKey> {
    const { id, version, jwk } = await this.#fetch(uri, name)
    const alg = wrapAlgorithm(jwk)
    if (alg === null)
      throw refused(name, `holds a key of type ${String(jwk.kty)}; use RSA, or AES-256 in a Managed HSM`)
    return {
      ...{ service: 'azurekv', name, kid: hash('sha256', `azurekv ${uri.host}/keys/${uri.key}`, 'base64url') },
      wrap: async (dataKey) => {
        const body = { alg, value: encodeBase64url(dataKey) }
        const value = valueIn(await this.#send({ uri, name, path: `/${version}/wrapkey`, body }), id, name)
        return Buffer.concat([Buffer.from(version.padEnd(VERSION_CHARS), 'latin1'), value])
      },
      unwrap: async (wrapped) => {
        const by = Buffer.from(wrapped.subarray(0, VERSION_CHARS)).toString('latin1').trimEnd()
        if (!VERSION.test(by)) return null
        const body = { alg, value: encodeBase64url(wrapped.subarray(VERSION_CHARS)) }
        const response = await this.#send({ uri, name, path: `/${by}/unwrapkey`, body, mayBeInvalid: true })
        return response === INVALID ? null : valueIn(response, id.slice(0, id.lastIndexOf('/') + 1) + by, name)
      },
    }
  }

  async #fetch(uri: AzureUri, name: string): Promise<FetchedKey> {
    const response = await this.#send({ uri, name, path: uri.version === null ? '' : `/${uri.version}`, body: null })
    const { key: jwk, attributes } = response
    if (!isObject(jwk) || typeof jwk.kid !== 'string') throw new TransientKeyError(`${name}: the response has no key`)
    const version = jwk.kid.slice(jwk.kid.lastIndexOf('/') + 1)
    if (!VERSION.test(version) || (uri.version !== null && version !== uri.version)) {
      throw refused(name, 'Azure answered for another key')
    }
    if (isObject(attributes) && attributes.enabled === false) throw refused(name, 'the key is disabled')
    return { id: jwk.kid, version, jwk }
  }

  async #send({ uri, name, path, body, mayBeInvalid = false }: AzureRequest): Promise<JsonObject> {
    const { dialer, clouds, env } = this.#options
    const origin = env.PLAT_AZUREKV_ENDPOINT || `https://${uri.host}`
    const url = new URL(`/keys/${uri.key}${path}?api-version=${API_VERSION}`, origin)
    const token = await clouds.azure(uri.host.includes('.managedhsm.') ? 'managedhsm' : 'vault')
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body === null ? { method: 'GET' as const } : { method: 'POST' as const, body: JSON.stringify(body) }
    const limits = { maxBytes: MAX_RESPONSE_BYTES, timeoutMs: REQUEST_MS }
    const response = await dialer.fetchBytes(url, 'cloud', { headers, ...sent, ...limits }).catch((error: unknown) => {
      throw new TransientKeyError(`Azure Key Vault is not reachable: ${reasonOf(error)}`)
    })
    const members = readJsonObject(response.bytes)
    if (response.status === 200 && members !== null) return members
    const code = codeOf(members)
    if (mayBeInvalid && (code === 'BadParameter' || code === 'KeyNotFound')) return INVALID
    const message = `${name}: Azure answered ${response.status}${code === '' ? '' : ` ${code}`}`
    if (response.status !== 429 && response.status < 500) throw new KeyServiceError('refused', message)
    throw new TransientKeyError(message, 1000 * (Number(response.headers['retry-after']) || 0))
  }
}

interface AzureRequest {
  readonly uri: AzureUri
  readonly name: string
  /** Below the key. */
  readonly path: string
  /** Null: a GET. */
  readonly body: object | null
  readonly mayBeInvalid?: boolean
}

/** Returned for a wrapped key that is not one of this key. */
const INVALID: JsonObject = {}
const VERSION_CHARS = 32
const VERSION = /^[0-9a-f]{1,32}$/

/** The members that a public key has; those of Key Vault have more, and types of keys in hardware. */
function publicKeyIn(jwk: JsonObject): PublicKey | null {
  const kty = String(jwk.kty).replace(/-HSM$/, '')
  const { crv, x, y, n, e } = jwk
  return readPublicJwk(kty === 'EC' ? { kty, crv, x, y } : { kty, n, e })
}

function wrapAlgorithm({ kty }: JsonObject): string | null {
  if (kty === 'RSA' || kty === 'RSA-HSM') return 'RSA-OAEP-256'
  return kty === 'oct-HSM' ? 'A256KW' : null
}

function valueIn({ kid, value }: JsonObject, id: string, name: string): Uint8Array {
  if (kid !== id) throw refused(name, 'Azure answered for another key')
  const bytes = typeof value === 'string' ? decodeBase64url(value) : null
  if (bytes === null) throw new TransientKeyError(`${name}: the response of Azure has no value`)
  return bytes
}

/** Code of an error; nothing else of the response is repeated. */
function codeOf(response: JsonObject | null): string {
  const code = isObject(response?.error) ? response.error.code : undefined
  return typeof code === 'string' && /^[A-Za-z]{1,60}$/.test(code) ? code : ''
}

function refused(name: string, why: string): KeyServiceError {
  return new KeyServiceError('refused', `${name}: ${why}`)
}
