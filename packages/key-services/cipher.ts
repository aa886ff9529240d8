import { type Clock, encodeBase64url, type Ids, LruCache } from '@plat/core'
import { CIPHER_KEY_BYTES, type Cipher, cipherOf, KeyServiceError } from '@plat/keys'
import type { KeyCalls, KeyServiceName } from './calls.ts'

export interface WrappingKey {
  readonly service: KeyServiceName
  /** Its URI, for messages. */
  readonly name: string
  /** Identifies the key among all keys; the same for all its versions. */
  readonly kid: string
  wrap(dataKey: Uint8Array): Promise<Uint8Array>
  /** Resolves to null for bytes that this key has not wrapped, or that were modified. */
  unwrap(wrapped: Uint8Array): Promise<Uint8Array | null>
}

/** A data key wraps at most this many keys, and for this long, in milliseconds; then the service wraps a new one. */
export const DATA_KEY_USES = 10_000
export const DATA_KEY_MS = 3_600_000
/** Unwrapped data keys in memory, each for at most `DATA_KEY_MS`. */
const MAX_OPENED = 64

/** First byte of what is wrapped: the format. */
const FORMAT = 1
/** Format, and length of the wrapped data key. */
const HEAD_BYTES = 3

interface DataKey {
  readonly cipher: Cipher
  readonly wrapped: Uint8Array
  readonly until: number
  uses: number
}

interface OpenedKey {
  readonly until: number
  readonly cipher: Promise<Cipher | null>
}

export interface ServiceCipherOptions {
  readonly calls: KeyCalls
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
}

/**
 * Envelope encryption: keys are wrapped by a data key in memory, which the service wraps. So the service is called once for thousands of keys, and
 * no plain data key is stored.
 */
export class ServiceCipher implements Cipher {
  readonly kid: string
  readonly #key: WrappingKey
  readonly #options: ServiceCipherOptions
  readonly #opened = new LruCache<string, OpenedKey>({ maxEntries: MAX_OPENED })
  #current: DataKey | null = null
  #next: Promise<DataKey> | null = null

  constructor(key: WrappingKey, options: ServiceCipherOptions) {
    this.kid = key.kid
    this.#key = key
    this.#options = options
  }

  async wrap(plain: Uint8Array): Promise<Uint8Array> {
    const dataKey = this.#usable() ?? (await this.#renew())
    dataKey.uses++
    const { wrapped, cipher } = dataKey
    return Buffer.concat([
      Buffer.from([FORMAT, wrapped.length >> 8, wrapped.length & 255]),
      wrapped,
      await cipher.wrap(plain),
    ])
  }

  /** Rejects with `KeyServiceError` if the service does not respond: only it knows whether the bytes are valid. */
  async unwrap(bytes: Uint8Array): Promise<Uint8Array | null> {
    const [format, high = 0, low = 0] = bytes
    const end = HEAD_BYTES + high * 256 + low
    if (format !== FORMAT || end >= bytes.length) return null
    const cipher = await this.#open(bytes.subarray(HEAD_BYTES, end))
    return cipher === null ? null : await cipher.unwrap(bytes.subarray(end))
  }

  #usable(): DataKey | null {
    const current = this.#current
    if (current === null || current.uses >= DATA_KEY_USES || this.#options.clock.now() >= current.until) return null
    return current
  }

  #renew(): Promise<DataKey> {
    this.#next ??= this.#create().finally(() => {
      this.#next = null
    })
    return this.#next
  }

  /** Unwraps what was wrapped, once per data key: what cannot be decrypted later is not used. */
  async #create(): Promise<DataKey> {
    const { calls, clock, ids } = this.#options
    const { service, name } = this.#key
    const plain = Buffer.from(ids.random(CIPHER_KEY_BYTES))
    const wrapped = await calls.run({ service, operation: 'wrap', key: name }, () => this.#key.wrap(plain))
    const back = await this.#unwrapped(wrapped)
    if (back === null || !plain.equals(back)) {
      throw new KeyServiceError('refused', `${name}: the key service does not decrypt what it encrypted`)
    }
    this.#current = { cipher: cipherOf(plain), wrapped, until: clock.now() + DATA_KEY_MS, uses: 0 }
    return this.#current
  }

  #open(wrapped: Uint8Array): Promise<Cipher | null> {
    const current = this.#current
    if (current !== null && Buffer.from(current.wrapped).equals(wrapped)) return Promise.resolve(current.cipher)
    const id = encodeBase64url(wrapped)
    const known = this.#opened.get(id)
    if (known !== undefined && this.#options.clock.now() < known.until) return known.cipher
    const cipher = this.#unwrapped(wrapped).then((plain) =>
      plain?.length === CIPHER_KEY_BYTES ? cipherOf(Buffer.from(plain)) : null,
    )
    this.#opened.set(id, { until: this.#options.clock.now() + DATA_KEY_MS, cipher })
    cipher.catch(() => this.#opened.delete(id))
    return cipher
  }

  #unwrapped(wrapped: Uint8Array): Promise<Uint8Array | null> {
    const { service, name } = this.#key
    return this.#options.calls.run({ service, operation: 'unwrap', key: name }, () => this.#key.unwrap(wrapped))
  }
}
