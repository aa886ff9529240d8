import { readFile } from 'node:fs/promises'
import { type FileWatch, watchFile } from '@plat/config'
import { type Clock, PeriodicTask } from '@plat/core'
import { type PublicKey, readPrivateKey, type Signer, signerOf } from '@plat/keys'
import type { Log } from '@plat/process'
import { KEYS_CACHED_SECONDS } from './jwks.ts'

/** A token counts this much longer than it says at those who grant it: the retired key stays as long. Milliseconds. */
const LEEWAY_MS = 60_000

/** Purpose of a key: `-signing-key`, and its allowed algorithms. */
export interface KeyUse {
  /** Prefix of every message, before the path. */
  readonly flag: string
  /** Flag and value that say so, for the message: `-sign-alg is EdDSA`. */
  readonly algorithms: { readonly names: readonly string[]; readonly because: string }
}

export interface RollingKeyOptions {
  /** Path of the file, or URI of a key in a key service. */
  readonly path: string
  /** Opens the key in a key service; absent: it is a file. */
  readonly open?: () => Promise<Signer>
  readonly use: KeyUse
  /** How often the file is looked at, in milliseconds. */
  readonly everyMs: number
  /** Lifetime of the longest token that the key signs, in milliseconds. */
  readonly lifetimeMs: number
  /** `keep`: a key that is lost goes on signing. `stop`: without its file nothing is signed or trusted. */
  readonly whenLost: 'keep' | 'stop'
  readonly clock: Clock
  readonly log: Log
  /** The keys are others now. */
  readonly onChange: () => void
}

/** Reads a private key of the right algorithm. Throws one line that names the flag and the file. */
export function readSigner(text: string, path: string, { flag, algorithms }: KeyUse): Signer {
  const name = `${flag}: ${path}`
  const signer = signerOf(readPrivateKey(text, name), name)
  if (!algorithms.names.includes(signer.alg)) {
    throw new Error(`${name} holds a key for ${signer.alg}; ${algorithms.because}`)
  }
  return signer
}

/** The key of a file that must be there. Rejects with one line that names the flag and the file. */
export async function openKeyFile(path: string, use: KeyUse): Promise<Signer> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new Error(`${use.flag}: ${path} cannot be read`, { cause: error })
  })
  return readSigner(text, path, use)
}

/**
 * One signing key in a file or a key service, which is followed. A new key is published at once and signs when every cache of the key
 * document can know it; the old one stays trusted until the last token that it signed has expired. So no token is
 * refused because keys changed.
 */
export class RollingKey {
  readonly #options: RollingKeyOptions
  readonly #watch: Pick<FileWatch, 'check' | 'stop'>
  #current: Signer | null
  /** Published, but not signing yet. */
  #next: Signer | null = null
  #cancelNext: () => void = () => {}
  /** Sign no more; each with what ends its stay. */
  readonly #retired = new Map<string, { readonly key: PublicKey; readonly cancel: () => void }>()

  constructor(current: Signer | null, options: RollingKeyOptions) {
    this.#options = options
    this.#current = current
    const { path, everyMs, clock, open } = options
    const onError = (error: unknown) => this.#lost(error)
    this.#watch =
      open === undefined
        ? watchFile({ path, everyMs, clock, onBytes: (bytes) => this.#read(bytes), onError })
        : this.#poll(open, onError)
  }

  /** Returns null while there is no key to sign with. */
  signer(): Signer | null {
    return this.#current
  }

  /** Returns the keys to publish and trust, the signing key first. */
  keys(): readonly PublicKey[] {
    if (this.#current === null) return []
    const keys = [this.#current.publicKey]
    if (this.#next !== null) keys.push(this.#next.publicKey)
    return [...keys, ...Array.from(this.#retired.values(), ({ key }) => key)]
  }

  /** Looks at the file now. */
  check(): Promise<void> {
    return this.#watch.check()
  }

  close(): void {
    this.#watch.stop()
    this.#cancelNext()
    for (const { cancel } of this.#retired.values()) cancel()
  }

  #poll(open: () => Promise<Signer>, onFault: (error: unknown) => void): Pick<FileWatch, 'check' | 'stop'> {
    const { everyMs, clock } = this.#options
    const task = new PeriodicTask({ clock, everyMs, job: async () => this.#adopt(await open()), onFault })
    return { check: () => task.now(), stop: () => void task.close() }
  }

  #read(bytes: Uint8Array | null): void {
    const { path, use } = this.#options
    if (bytes === null) throw new Error(`${use.flag}: ${path} is missing`)
    this.#adopt(readSigner(Buffer.from(bytes).toString('utf8'), path, use))
  }

  #lost(error: unknown): void {
    const { path, whenLost, log } = this.#options
    if (whenLost === 'keep') {
      log.warn({ path, error: String(error) }, 'signing key could not be reloaded, the old key stays in use')
      return
    }
    log.error({ path, error: String(error) }, 'signing key is not available: nothing is signed or trusted with it')
    this.#drop()
    this.#options.onChange()
  }

  #drop(): void {
    this.#cancelNext()
    this.#next = null
    this.#current = null
  }

  #adopt(signer: Signer): void {
    if (signer.kid === this.#next?.kid) return
    this.#cancelNext()
    this.#next = null
    if (this.#current === null) {
      // No need to wait: a token by the new key makes verifiers refresh.
      this.#current = signer
      this.#options.log.info({ kid: signer.kid }, 'signing key is in use')
    } else if (signer.kid !== this.#current.kid) this.#announce(signer)
    this.#options.onChange()
  }

  #announce(signer: Signer): void {
    const { clock, log } = this.#options
    this.#next = signer
    this.#cancelNext = clock.after(KEYS_CACHED_SECONDS * 1000, () => this.#promote(signer))
    log.info({ kid: signer.kid, afterSeconds: KEYS_CACHED_SECONDS }, 'new signing key published')
  }

  #promote(signer: Signer): void {
    const retired = this.#current
    this.#current = signer
    this.#next = null
    if (retired !== null) this.#retire(retired.publicKey)
    this.#options.log.info({ kid: signer.kid, retired: retired?.kid ?? null }, 'new signing key is in use')
    this.#options.onChange()
  }

  #retire(key: PublicKey): void {
    const { clock, lifetimeMs, onChange } = this.#options
    this.#retired.get(key.kid)?.cancel()
    const cancel = clock.after(lifetimeMs + LEEWAY_MS, () => {
      this.#retired.delete(key.kid)
      onChange()
    })
    this.#retired.set(key.kid, { key, cancel })
  }
}
