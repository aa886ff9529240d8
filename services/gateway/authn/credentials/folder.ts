import { join } from 'node:path'
import { readText } from '@plat/config'
import type { Log } from '@plat/process'
import type { Credential } from '../../call/index.ts'
import { type FiledAuth, type OAuthClient, type Secret, SUFFIXES, secretOf } from './secret.ts'

/** Largest credential file, in bytes; chains of certificates are the longest ones. */
const MAX_FILE_BYTES = 256 * 1024

interface Held {
  /** For which `auth` it was made, as JSON. */
  readonly of: string
  /** The texts of its files, as JSON. */
  readonly from: string
  readonly secret: Secret
}

/**
 * The credential files of `upstreamCredentialsDir`, held in memory. A file that is gone takes its secret with it; content that cannot
 * be used, such as a file half written or a certificate without its key, leaves the secret before it in force.
 */
export class CredentialFolder {
  readonly #dir: string
  readonly #log: Log
  readonly #held = new Map<string, Held>()
  /** Complaints that were told. */
  readonly #told = new Map<string, string>()
  #auths: ReadonlyMap<string, FiledAuth> = new Map()
  /** Reads come one after the other, so that none brings back what a later one has replaced. */
  #reading: Promise<void> = Promise.resolve()
  /** Reads that have not begun, by key: whoever asks meanwhile waits for the same. */
  readonly #waiting = new Map<string, Promise<void>>()

  /** An empty `dir` holds nothing. */
  constructor(dir: string, log: Log) {
    this.#dir = dir
    this.#log = log
  }

  /** Null: there is none that can be used. */
  credential(key: string): Credential | null {
    const secret = this.#held.get(key)?.secret
    return secret !== undefined && 'headers' in secret ? secret : null
  }

  /** Null: there is none that can be used. */
  client(key: string): OAuthClient | null {
    const secret = this.#held.get(key)?.secret
    return secret !== undefined && 'secret' in secret ? secret : null
  }

  /** Reads what these servers need, and forgets everything else. */
  async follow(auths: readonly FiledAuth[]): Promise<void> {
    this.#auths = new Map(auths.map((auth) => [auth.credentialKey, auth]))
    for (const key of this.#held.keys()) if (!this.#auths.has(key)) this.#held.delete(key)
    for (const key of this.#told.keys()) if (!this.#auths.has(key)) this.#told.delete(key)
    await this.refresh()
  }

  /** Reads the same files again. */
  async refresh(): Promise<void> {
    for (const key of this.#auths.keys()) await this.read(key)
  }

  /** Reads the files of one server again, from now on: a read that has begun may have seen what stood there before. */
  read(key: string): Promise<void> {
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) return waiting
    const turn = this.#reading.then(() => {
      this.#waiting.delete(key)
      return this.#read(key)
    })
    this.#waiting.set(key, turn)
    this.#reading = turn
    return turn
  }

  async #read(key: string): Promise<void> {
    const auth = this.#auths.get(key)
    if (auth === undefined) return
    const texts = await this.#texts(auth)
    // Other servers were published meanwhile: what was read is not what is wanted.
    if (this.#auths.get(key) !== auth) return
    if (typeof texts === 'string') {
      this.#held.delete(key)
      return this.#tell(key, texts)
    }
    const [of, from] = [JSON.stringify(auth), JSON.stringify(texts)]
    const held = this.#held.get(key)
    const isSame = held?.of === of && held.from === from
    const secret = isSame ? held.secret : secretOf(auth, texts)
    if (typeof secret === 'string') {
      // What was made for another `auth` is not what this server shall see.
      if (held?.of !== of) this.#held.delete(key)
      return this.#tell(key, secret)
    }
    this.#told.delete(key)
    if (isSame) return
    this.#held.set(key, { of, from, secret })
    this.#log.info({ credential: key }, 'upstream credential read')
  }

  /** A string says which file is missing. */
  async #texts({ type, credentialKey }: FiledAuth): Promise<readonly string[] | string> {
    if (this.#dir === '') return 'upstreamCredentialsDir is not set'
    const texts: string[] = []
    for (const suffix of SUFFIXES[type]) {
      const text = await readText(join(this.#dir, credentialKey + suffix), MAX_FILE_BYTES)
      if (text === null)
        return `${credentialKey}${suffix} is missing, unreadable or larger than ${MAX_FILE_BYTES} bytes`
      texts.push(text.trim())
    }
    return texts
  }

  #tell(key: string, problem: string): void {
    if (this.#told.get(key) === problem) return
    this.#told.set(key, problem)
    const consequence = this.#held.has(key) ? 'the credential before it stays' : 'calls of its server are refused'
    this.#log.error({ credential: key, problem }, `no usable upstream credential: ${consequence}`)
  }
}
