import { readFile } from 'node:fs/promises'
import { type Clock, isObject, reasonOf } from '@plat/core'
import type { Signer } from '@plat/keys'
import { isMissing } from '@plat/state'
import { isFault, type Jws, parseJws, signJws } from '@plat/tokens'
import { type Head, readRawLine } from '../format.ts'
import { isPostQuantum } from '../proof/checkpoint.ts'
import { LedgerRolledBackError } from '../proof/stored-checkpoint.ts'
import { isJwsSigned, type Trust } from '../proof/trust.ts'
import { replaceText } from '../sequence/files.ts'
import { ArchivedError, type LedgerSequence } from '../sequence/sequence.ts'

/** File of the last durable record beside a ledger, at most `HEAD_EVERY_MS` and one write older than a crash. */
export function headPath(ledgerPath: string): string {
  return `${ledgerPath}.head`
}

/** Maximum delay until a durable record is in the stored head, in milliseconds. */
export const HEAD_EVERY_MS = 1000
/** `typ` of the signed statement. */
const JWS_TYPE = 'plat-ledger-head+jws'
const HASH = /^[0-9a-f]{64}$/

/** The end of a ledger, stored outside it. */
export interface StoredHead extends Head {
  readonly ledgerId: string
  /** Null without a key; unverified. Signs `ledgerId`, `seq` and `hash`. */
  readonly jws: Jws | null
}

/** Storage of heads. */
export interface HeadStore {
  /** Place named in messages, with how to start over. */
  readonly place: string
  /** Returns the text for this ledger, null when there is none. A store of one ledger ignores the id, which is null for an empty ledger. */
  read(ledgerId: string | null): Promise<string | null>
  /** Durable when it resolves. */
  write(ledgerId: string, text: string): Promise<void>
}

/** `<path>.head`. */
export function headFile(ledgerPath: string): HeadStore {
  const path = headPath(ledgerPath)
  return {
    place: path,
    read: () =>
      readFile(path, 'utf8').catch((error: unknown) => {
        if (isMissing(error)) return null
        throw error
      }),
    write: (_ledgerId, text) => replaceText(path, text),
  }
}

/** Returns one line of JSON. */
export async function writeHead(ledgerId: string, { seq, hash }: Head, signer: Signer | null): Promise<string> {
  const claims = { hash, ledgerId, seq }
  const jws = signer === null ? {} : { jws: await signJws(signer, { typ: JWS_TYPE }, claims) }
  return `${JSON.stringify({ v: 1, ...claims, ...jws })}\n`
}

/** Returns null when the text is malformed, or its statement differs. */
export function readHead(text: string): StoredHead | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(value) || value.v !== 1) return null
  const { ledgerId, seq, hash } = value
  if (typeof ledgerId !== 'string' || typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return null
  if (typeof hash !== 'string' || !HASH.test(hash)) return null
  if (value.jws === undefined) return { ledgerId, seq, hash, jws: null }
  const jws = typeof value.jws === 'string' ? parseJws(value.jws) : null
  if (jws === null || isFault(jws) || jws.header.typ !== JWS_TYPE) return null
  const stated = jws.payload
  const agrees = stated.ledgerId === ledgerId && stated.seq === seq && stated.hash === hash
  return agrees ? { ledgerId, seq, hash, jws } : null
}

/** Returns whether a trusted key signed the head; with a trusted ML-DSA key, a head alone proves nothing. */
export function isHeadSigned({ jws }: StoredHead, { keys }: Trust): boolean {
  if (jws === null || keys.some(({ algorithm }) => isPostQuantum(algorithm.name))) return false
  return isJwsSigned(jws, keys)
}

/** Checks that a ledger contains the stored heads. */
export class ExpectedHeads {
  readonly #path: string
  readonly #heads: readonly (StoredHead & { readonly place: string })[]
  readonly #found = new Set<number>()

  private constructor(path: string, heads: readonly (StoredHead & { readonly place: string })[]) {
    this.#path = path
    this.#heads = heads
  }

  /** Throws when a store holds a malformed head. */
  static async read(path: string, stores: readonly HeadStore[], ledgerId: string | null): Promise<ExpectedHeads> {
    const heads = await Promise.all(
      stores.map(async (store) => {
        const text = await store.read(ledgerId)
        if (text === null) return []
        const head = readHead(text)
        if (head === null)
          throw new LedgerRolledBackError(`${store.place} is not the head of a ledger: put it back, or move it away`)
        return [{ ...head, place: store.place }]
      }),
    )
    return new ExpectedHeads(path, heads.flat())
  }

  /** Processes a record of the ledger. */
  see({ seq, hash }: Head): void {
    for (const [index, head] of this.#heads.entries())
      if (head.seq === seq && head.hash === hash) this.#found.add(index)
  }

  /** Looks up the heads before record `first`, with which reading begins. A head whose record left cannot be looked up, and is not missing. */
  async lookUp(sequence: LedgerSequence, first: number): Promise<void> {
    for (const [index, { seq }] of this.#heads.entries()) {
      if (seq >= first) continue
      try {
        const found = await sequence.lineOf(seq)
        const line = found === null ? null : readRawLine(found.line, 0, found.line.length)
        if (line !== null && typeof line !== 'string') this.see(line)
      } catch (error) {
        if (!(error instanceof ArchivedError)) throw error
        this.#found.add(index)
      }
    }
  }

  /** Throws LedgerRolledBackError, in one line, unless every head occurred in a ledger that ends with `last`. */
  check(ledgerId: string | null, last: Head | null): void {
    for (const [index, head] of this.#heads.entries()) {
      if (this.#found.has(index) && head.ledgerId === ledgerId) continue
      const end = last === null ? 'is empty' : `ends at record ${last.seq}`
      const isCut = last === null || (last.seq < head.seq && head.ledgerId === ledgerId)
      const what = isCut ? `${end}, but record ${head.seq} was durable` : `does not hold record ${head.seq} as it was`
      throw new LedgerRolledBackError(
        `${this.#path} ${what} (${head.place}): its end is missing, or it was replaced by an older or another file. ` +
          `Put the right one back; to go on with this one all the same, move ${head.place} away and keep it as evidence`,
      )
    }
  }
}

export interface HeadKeeperOptions {
  readonly ledgerId: string
  readonly stores: readonly HeadStore[]
  readonly clock: Clock
  /** Returns the last durable record. */
  readonly head: () => Head
  /** Returns the current signer of heads; null for none. */
  readonly signer: () => Promise<Signer | null>
  /** Called for the first of consecutive failures. */
  readonly onFault: (reason: string) => void
}

/** Stores the head of a ledger outside it, at most `HEAD_EVERY_MS` after a commit, and on close. */
export class HeadKeeper {
  readonly #options: HeadKeeperOptions
  #keptSeq = -1
  #isPlanned = false
  #hasFailed = false
  #cancel: () => void = () => {}
  #writing: Promise<void> = Promise.resolve()

  constructor(options: HeadKeeperOptions) {
    this.#options = options
  }

  /** Called when more records are durable. */
  committed(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    this.#cancel = this.#options.clock.after(HEAD_EVERY_MS, () => {
      this.#writing = this.#write().finally(() => {
        this.#isPlanned = false
        if (this.#options.head().seq > this.#keptSeq) this.committed()
      })
    })
  }

  /** Stores the last durable record, if possible. */
  async close(): Promise<void> {
    this.#isPlanned = true
    this.#cancel()
    await this.#writing
    this.#cancel()
    await this.#write()
  }

  async #write(): Promise<void> {
    const { ledgerId, stores, head, signer, onFault } = this.#options
    try {
      const last = head()
      if (last.seq === this.#keptSeq) return
      const text = await writeHead(ledgerId, last, await signer())
      await Promise.all(stores.map((store) => store.write(ledgerId, text)))
      this.#keptSeq = last.seq
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) onFault(reasonOf(error))
      this.#hasFailed = true
    }
  }
}
