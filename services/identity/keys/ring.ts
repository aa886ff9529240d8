import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import { ephemeralSigner, keyFilePath, type LocalSigner, type PublicKey, readPrivateKey, signerOf } from '@plat/keys'
import type { Log } from '@plat/process'
import { KeySet, type KeySource } from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'
import { KEYS_CACHED_SECONDS } from './jwks.ts'
import { readPreviousKeys } from './previous.ts'

/** Where the chart mounts the signing key. */
const DEFAULT_SIGNING_KEY = '/var/run/plat-identity/key.pem'
/** How often key files are looked at, in milliseconds. */
const RELOAD_EVERY_MS = 10_000

/** The broker's keys: the one that signs, those that are trusted, and the document that says so. */
export interface KeyRing {
  signer(): LocalSigner
  readonly trusted: KeySource
  /** The JWK set as JSON. */
  document(): Buffer
  close(): void
}

export interface KeyRingOptions {
  readonly settings: IdentitySettings
  readonly clock: Clock
  readonly log: Log
}

/** Opens the keys and follows their files. Rejects when a file that was named cannot be used. */
export async function createKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const { settings, log } = options
  const path = signingKeyPath(settings.signingKey)
  const previous = await readPreviousKeys(settings.previousKeys)
  if (path === null) {
    log.warn({ path: DEFAULT_SIGNING_KEY }, 'no signing key: signing with a key that dies with this process')
    return new FileKeyRing(ephemeralSigner(), previous, options)
  }
  const ring = new FileKeyRing(
    readSigner(await readFile(path, 'utf8').catch(unreadable(path)), path),
    previous,
    options,
  )
  await ring.follow(path)
  return ring
}

function signingKeyPath(given: string): string | null {
  if (given !== '') return keyFilePath(given)
  return existsSync(DEFAULT_SIGNING_KEY) ? DEFAULT_SIGNING_KEY : null
}

function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`-signing-key: ${path} cannot be read`, { cause: error })
  }
}

function readSigner(text: string, path: string): LocalSigner {
  const name = `-signing-key: ${path}`
  const signer = signerOf(readPrivateKey(text, name), name)
  if (signer.alg !== 'EdDSA') throw new Error(`${name} holds a key for ${signer.alg}; -sign-alg is EdDSA`)
  return signer
}

class FileKeyRing implements KeyRing {
  readonly trusted = new KeySet()
  readonly #options: KeyRingOptions
  readonly #undo: (() => void)[] = []
  #current: LocalSigner
  /** Published, but not signing yet: caches of the key document must know it first. */
  #next: LocalSigner | null = null
  #cancelNext: () => void = () => {}
  /** Signs no more; stays until the longest token that it signed has expired. */
  readonly #retired = new Map<string, PublicKey>()
  #previous: readonly PublicKey[]
  #document = Buffer.alloc(0)

  constructor(signer: LocalSigner, previous: readonly PublicKey[], options: KeyRingOptions) {
    this.#current = signer
    this.#previous = previous
    this.#options = options
    this.#publish()
    if (options.settings.previousKeys.length > 0) {
      this.#undo.push(options.clock.every(RELOAD_EVERY_MS, () => void this.#reloadPrevious()))
    }
  }

  signer(): LocalSigner {
    return this.#current
  }

  document(): Buffer {
    return this.#document
  }

  close(): void {
    this.#cancelNext()
    for (const undo of this.#undo) undo()
  }

  /** Looks at the signing key's file from now on. What cannot be read leaves the key as it is. */
  async follow(path: string): Promise<void> {
    const { clock, log } = this.#options
    const watch = watchFile({
      path,
      everyMs: RELOAD_EVERY_MS,
      clock,
      onBytes: (bytes) => {
        if (bytes === null) throw new Error(`-signing-key: ${path} is missing`)
        this.#adopt(readSigner(Buffer.from(bytes).toString('utf8'), path))
      },
      onError: (error) => log.warn({ error: String(error) }, 'signing key not read again, the old key stays'),
    })
    this.#undo.push(() => watch.stop())
    await watch.check()
  }

  /** The new key is published now and signs once every cache can know it. */
  #adopt(signer: LocalSigner): void {
    if (signer.kid === this.#next?.kid) return
    this.#cancelNext()
    this.#next = signer.kid === this.#current.kid ? null : signer
    if (this.#next !== null) {
      const { clock, log } = this.#options
      this.#cancelNext = clock.after(KEYS_CACHED_SECONDS * 1000, () => this.#promote())
      log.info({ kid: signer.kid, afterSeconds: KEYS_CACHED_SECONDS }, 'new signing key published')
    }
    this.#publish()
  }

  #promote(): void {
    if (this.#next === null) return
    const { settings, clock, log } = this.#options
    const retired = this.#current.publicKey
    this.#retired.set(retired.kid, retired)
    clock.after(settings.maxTtlMs, () => {
      this.#retired.delete(retired.kid)
      this.#publish()
    })
    this.#current = this.#next
    this.#next = null
    this.#publish()
    log.info({ kid: this.#current.kid, retired: retired.kid }, 'new signing key signs')
  }

  async #reloadPrevious(): Promise<void> {
    try {
      this.#previous = await readPreviousKeys(this.#options.settings.previousKeys)
      this.#publish()
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'previous keys not read again, the old ones stay')
    }
  }

  #publish(): void {
    const signing = this.#next === null ? [this.#current] : [this.#current, this.#next]
    const keys = new Map<string, PublicKey>()
    for (const key of [...signing.map((signer) => signer.publicKey), ...this.#retired.values(), ...this.#previous]) {
      if (!keys.has(key.kid)) keys.set(key.kid, key)
    }
    this.trusted.replace([...keys])
    const entries = [...keys.values()].map(({ jwk, kid, algorithm }) => ({
      ...jwk,
      kid,
      use: 'sig',
      alg: algorithm.name,
    }))
    this.#document = Buffer.from(JSON.stringify({ keys: entries }))
  }
}
