import { createCipheriv, createDecipheriv } from 'node:crypto'
import { decodeBase64url, encodeBase64url, type Ids } from '@plat/core'
import { CIPHER_KEY_BYTES, type Cipher, openCipher } from '@plat/keys'
import { isTokens, type Owner, ownerKey, type Sealed, type Tokens } from './account.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals tokens: each account has a key of its own, which `keyURI` wraps. What is sealed for one account opens for no other. */
export class Envelope {
  readonly #current: Cipher
  readonly #ciphers: ReadonlyMap<string, Cipher>
  readonly #ids: Ids

  constructor(current: Cipher, retired: readonly Cipher[], ids: Ids) {
    this.#current = current
    this.#ciphers = new Map([...retired, current].map((cipher) => [cipher.kid, cipher]))
    this.#ids = ids
  }

  /** Whether it has the key that wraps this. */
  opens({ kid }: Sealed): boolean {
    return this.#ciphers.has(kid)
  }

  /** Whether it is wrapped by the key that wraps everything new. */
  isCurrent({ kid }: Sealed): boolean {
    return kid === this.#current.kid
  }

  async seal(owner: Owner, tokens: Tokens): Promise<Sealed> {
    const key = this.#ids.random(CIPHER_KEY_BYTES)
    const nonce = this.#ids.random(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(additional(owner))
    const data = Buffer.concat([cipher.update(JSON.stringify(tokens), 'utf8'), cipher.final(), cipher.getAuthTag()])
    return {
      kid: this.#current.kid,
      key: encodeBase64url(await this.#current.wrap(key)),
      nonce: encodeBase64url(nonce),
      data: encodeBase64url(data),
    }
  }

  /** Null for what was changed, what was sealed for another account, and what no key opens. */
  async open(owner: Owner, sealed: Sealed): Promise<Tokens | null> {
    const [wrapped, nonce, data] = [sealed.key, sealed.nonce, sealed.data].map(decodeBase64url)
    if (!wrapped || !data || nonce?.length !== NONCE_BYTES || data.length < TAG_BYTES) return null
    const key = (await this.#ciphers.get(sealed.kid)?.unwrap(wrapped)) ?? null
    if (key === null) return null
    const end = data.length - TAG_BYTES
    const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(additional(owner)).setAuthTag(data.subarray(end))
    try {
      const text = Buffer.concat([decipher.update(data.subarray(0, end)), decipher.final()]).toString('utf8')
      const tokens: unknown = JSON.parse(text)
      return isTokens(tokens) ? tokens : null
    } catch {
      return null
    }
  }
}

function additional(owner: Owner): Buffer {
  return Buffer.from(`plat/vault/v1 ${ownerKey(owner)}`)
}

/** Opens the keys. Rejects with one line for each that cannot be used, each naming its field. */
export async function openEnvelope(
  { keyURI, retiredKeyURIs }: { readonly keyURI: string; readonly retiredKeyURIs: readonly string[] },
  ids: Ids,
): Promise<Envelope> {
  const problems: string[] = []
  const opened = async (field: string, uri: string) => {
    try {
      return [await openCipher(uri)]
    } catch (error) {
      problems.push(`${field}: ${error instanceof Error ? error.message : 'cannot be opened'}`)
      return []
    }
  }
  const [current] = await opened('tokenVault.keyURI', keyURI)
  const retired = await Promise.all(
    retiredKeyURIs.map((uri, index) => opened(`tokenVault.retiredKeyURIs[${index}]`, uri)),
  )
  if (current === undefined || problems.length > 0) throw new Error(problems.join('\n'))
  return new Envelope(current, retired.flat(), ids)
}
