import type { Ids } from '@plat/core'
import { type Cipher, fileKeys, type KeyStore, openBytes, sealBytes } from '@plat/keys'
import { isTokens, type Owner, ownerKey, type Sealed, type Tokens } from './account.ts'

/** Encrypts tokens. Each account has a data key, which `keyURI` wraps. Tokens sealed for one account cannot be opened for another. */
export class Envelope {
  readonly #current: Cipher
  readonly #ciphers: ReadonlyMap<string, Cipher>
  readonly #ids: Ids

  constructor(current: Cipher, retired: readonly Cipher[], ids: Ids) {
    this.#current = current
    this.#ciphers = new Map([...retired, current].map((cipher) => [cipher.kid, cipher]))
    this.#ids = ids
  }

  /** Whether it holds the wrapping key. */
  opens({ kid }: Sealed): boolean {
    return this.#ciphers.has(kid)
  }

  /** Whether the wrapping key is the current one. */
  isCurrent({ kid }: Sealed): boolean {
    return kid === this.#current.kid
  }

  seal(owner: Owner, tokens: Tokens): Promise<Sealed> {
    const random = (bytes: number) => this.#ids.random(bytes)
    return sealBytes(Buffer.from(JSON.stringify(tokens)), { cipher: this.#current, context: contextOf(owner), random })
  }

  /** Returns null for modified data, data of another account, and unknown keys. */
  async open(owner: Owner, sealed: Sealed): Promise<Tokens | null> {
    const cipher = this.#ciphers.get(sealed.kid)
    const plain = cipher === undefined ? null : await openBytes(sealed, cipher, contextOf(owner))
    if (plain === null) return null
    const tokens: unknown = JSON.parse(Buffer.from(plain).toString('utf8'))
    return isTokens(tokens) ? tokens : null
  }
}

function contextOf(owner: Owner): string {
  return `plat/vault/v1 ${ownerKey(owner)}`
}

/** Opens the keys that URIs name. */
export type EnvelopeKeys = Pick<KeyStore, 'openCipher'>

/** Opens the keys. Rejects with one line per unusable key that names its field. */
export async function openEnvelope(
  { keyURI, retiredKeyURIs }: { readonly keyURI: string; readonly retiredKeyURIs: readonly string[] },
  ids: Ids,
  keys: EnvelopeKeys = fileKeys,
): Promise<Envelope> {
  const problems: string[] = []
  const opened = async (field: string, uri: string) => {
    try {
      return [await keys.openCipher(uri)]
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
