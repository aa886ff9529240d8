import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { appendFileSync, renameSync } from 'node:fs'
import { writeEntry } from '@plat/ledger'

const NO_RECORD = '0'.repeat(64)

export interface OpenLedgerSetup {
  readonly path: string
  /** Signs lines; absent: none is signed. */
  readonly key?: KeyObject
}

/** The reference writer of the open ledger format (docs/followed-ledgers.md): what a client needs to write. */
export class OpenLedger {
  readonly #path: string
  readonly #key: KeyObject | undefined
  #next = 0
  #prev = NO_RECORD

  constructor({ path, key }: OpenLedgerSetup) {
    this.#path = path
    this.#key = key
  }

  /** The last record. */
  get head(): { readonly seq: number; readonly hash: string } {
    return { seq: this.#next - 1, hash: this.#prev }
  }

  /** Appends `count` records; the last one of them is signed if there is a key. */
  append(count: number, members: Readonly<Record<string, unknown>> = { event: 'tool.call' }, isSigned = true): this {
    const lines: string[] = []
    for (let index = 0; index < count; index++) {
      const key = isSigned && index === count - 1 ? this.#key : undefined
      const signer = key === undefined ? undefined : (text: Buffer) => sign(null, text, key)
      const line = writeEntry({ seq: this.#next++, prev: this.#prev }, members, signer)
      this.#prev = line.hash
      lines.push(line.text)
    }
    appendFileSync(this.#path, lines.join(''))
    return this
  }

  /** Renames the file; the next record begins another one. `first`: number of the first record of this one. */
  rotate(first: number): this {
    renameSync(this.#path, `${this.#path}.${String(first).padStart(20, '0')}.jsonl`)
    return this
  }
}

/** An Ed25519 key with its public half in hex, as `pubkey` names it. */
export function openLedgerKey(): { readonly key: KeyObject; readonly pubkey: string } {
  const { privateKey } = generateKeyPairSync('ed25519')
  return { key: privateKey, pubkey: pubkeyOf(privateKey) }
}

/** Returns the public half of a private Ed25519 key in hex. */
export function pubkeyOf(key: KeyObject): string {
  const { x = '' } = createPrivateKey({ key: key.export({ format: 'jwk' }), format: 'jwk' }).export({ format: 'jwk' })
  return Buffer.from(x, 'base64url').toString('hex')
}
