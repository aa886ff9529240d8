import type { KeyObject } from 'node:crypto'
import { type PublicKey, readPublicKeys } from '@plat/keys'
import { asyncFiles, type SourceFiles } from '../sequence/files.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { ArchivedError, LedgerSequence } from '../sequence/sequence.ts'
import type { Claim } from './claim-table.ts'
import type { VerifyKeys } from './claims.ts'
import { type PartClaims, type PartResult, type PartStart, PartVerifier } from './part.ts'

/** Text of a file of public keys. Keys themselves cannot be sent to a thread. */
export interface KeyText {
  readonly path: string
  readonly text: string
}

/** Inputs that all parts of a verification have in common. */
export interface VerifyJob {
  readonly ledgerPath: string
  readonly strict: boolean
  readonly key: KeyText | null
  readonly logKey: KeyText | null
  readonly hmacKey: KeyObject | null
}

/** Verifies the parts of a ledger, one at a time. */
export interface PartRunner {
  /** Searches the part that begins with record `first`. Returns null when its segment left. */
  collect(first: number, start: PartStart): Promise<PartClaims | null>
  /** Verifies the part that was searched last. Returns null when its segment left. */
  verify(claims: readonly Claim[]): Promise<PartResult | null>
  close(): Promise<unknown>
}

/** Runs in the thread of the caller. */
export class LocalRunner implements PartRunner {
  readonly #job: VerifyJob
  readonly #files: SourceFiles
  readonly #keys: VerifyKeys
  readonly #onProgress: (bytes: number) => void
  #sequence: LedgerSequence | null = null
  #part: { readonly first: number; readonly start: PartStart; readonly verifier: PartVerifier } | null = null

  constructor(job: VerifyJob, onProgress: (bytes: number) => void, files: SourceFiles = asyncFiles) {
    this.#job = job
    this.#files = files
    this.#keys = keysOf(job)
    this.#onProgress = onProgress
  }

  collect(first: number, start: PartStart): Promise<PartClaims | null> {
    return this.#again(async () => await (await this.#open(first, start)).collect())
  }

  verify(claims: readonly Claim[]): Promise<PartResult | null> {
    const { first, start } = this.#part ?? { first: 0, start: NOTHING }
    let verifier = this.#part?.verifier ?? null
    return this.#again(async () => {
      if (verifier === null) {
        verifier = await this.#open(first, start)
        await verifier.collect()
      }
      const known = verifier
      // After a failure the counts of this one are of no use.
      verifier = null
      return await known.verify(claims)
    })
  }

  async close(): Promise<void> {
    await this.#sequence?.close()
    this.#sequence = null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Repeats the work once when a file was compressed or left meanwhile. */
  async #again<T>(work: () => Promise<T>): Promise<T | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        if (error instanceof ArchivedError && attempt > 1) return null
        if (!(error instanceof SegmentListError || error instanceof ArchivedError) || attempt > 1) throw error
        await this.close()
      }
    }
  }

  async #open(first: number, start: PartStart): Promise<PartVerifier> {
    this.#sequence ??= await LedgerSequence.open(this.#job.ledgerPath, this.#files)
    const sequence = this.#sequence
    const part = sequence.parts.find((one) => one.first === first)
    if (part === undefined)
      throw new SegmentListError(`${this.#job.ledgerPath} has no file that begins with record ${first}`)
    const source = sequence.sourceOf(part)
    const { strict } = this.#job
    const verifier = new PartVerifier({ source, first, start, strict, keys: this.#keys, onProgress: this.#onProgress })
    this.#part = { first, start, verifier }
    return verifier
  }
}

export const NOTHING: PartStart = { head: null, previous: null, tree: null, ledgerId: null }

export function keysOf({ key, logKey, hmacKey }: Pick<VerifyJob, 'key' | 'logKey' | 'hmacKey'>): VerifyKeys {
  const keys = key === null ? [] : publicKeys(key)
  return {
    trust: key === null && hmacKey === null ? null : { keys, hmacKey },
    logKeys: logKey === null ? null : publicKeys(logKey),
  }
}

function publicKeys({ text, path }: KeyText): readonly PublicKey[] {
  return readPublicKeys(text, path)
}
