import { join } from 'node:path'
import { readText } from '@plat/config'
import type { Log } from '@plat/process'
import type { Credential } from '../../call/index.ts'
import { type FiledAuth, type OAuthClient, type Secret, SUFFIXES, secretOf } from './secret.ts'

/** Maximum size of a credential file, in bytes; certificate chains are the largest. */
const MAX_FILE_BYTES = 256 * 1024

interface Held {
  /** The `auth` that it was made for, as JSON. */
  readonly of: string
  /** The contents of its files, as JSON. */
  readonly from: string
  readonly secret: Secret
}

/**
 * The credential files of `upstreamCredentialsDir`, cached in memory. A missing file removes its secret; unusable content, such as a
 * partly written file or a certificate without its key, leaves the previous secret in force.
 */
export class CredentialFolder {
  readonly #dir: string
  readonly #log: Log
  readonly #held = new Map<string, Held>()
  /** Reported problems by key. */
  readonly #reported = new Map<string, string>()
  #auths: ReadonlyMap<string, FiledAuth> = new Map()
  /** Reads are serialized, so that none restores what a later one has replaced. */
  #reading: Promise<void> = Promise.resolve()
  /** Queued reads by key, shared by concurrent callers. */
  readonly #waiting = new Map<string, Promise<void>>()

  /** An empty `dir` disables credentials. */
  constructor(dir: string, log: Log) {
    this.#dir = dir
    this.#log = log
  }

  /** Returns null if there is no usable one. */
  credential(key: string): Credential | null {
    const secret = this.#held.get(key)?.secret
    return secret !== undefined && 'headers' in secret ? secret : null
  }

  /** Returns null if there is no usable one. */
  client(key: string): OAuthClient | null {
    const secret = this.#held.get(key)?.secret
    return secret !== undefined && 'secret' in secret ? secret : null
  }

  /** Reads the credentials of these servers and drops all others. */
  async follow(auths: readonly FiledAuth[]): Promise<void> {
    this.#auths = new Map(auths.map((auth) => [auth.credentialKey, auth]))
    for (const key of this.#held.keys()) if (!this.#auths.has(key)) this.#held.delete(key)
    for (const key of this.#reported.keys()) if (!this.#auths.has(key)) this.#reported.delete(key)
    await this.refresh()
  }

  /** Reads the same files again. */
  async refresh(): Promise<void> {
    for (const key of this.#auths.keys()) await this.read(key)
  }

  /** Starts a new read of the files of one server: a read in progress may have seen the old content. */
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
    // The server's `auth` has changed during the read.
    if (this.#auths.get(key) !== auth) return
    if (typeof texts === 'string') {
      this.#held.delete(key)
      return this.#report(key, texts)
    }
    const [of, from] = [JSON.stringify(auth), JSON.stringify(texts)]
    const held = this.#held.get(key)
    const isSame = held?.of === of && held.from === from
    const secret = isSame ? held.secret : secretOf(auth, texts)
    if (typeof secret === 'string') {
      // A secret made for another `auth` must not be sent.
      if (held?.of !== of) this.#held.delete(key)
      return this.#report(key, secret)
    }
    this.#reported.delete(key)
    if (isSame) return
    this.#held.set(key, { of, from, secret })
    this.#log.info({ credential: key }, 'upstream credential read')
  }

  /** Returns a text that names a missing file. */
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

  #report(key: string, problem: string): void {
    if (this.#reported.get(key) === problem) return
    this.#reported.set(key, problem)
    const consequence = this.#held.has(key)
      ? 'the previous credential remains in force'
      : 'calls of its server are refused'
    this.#log.error({ credential: key, problem }, `no usable upstream credential: ${consequence}`)
  }
}
