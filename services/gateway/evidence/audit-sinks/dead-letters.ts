import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissing } from '@plat/state'
import type { AuditRecord } from './formats/words.ts'
import { appendLines } from './receivers/jsonl.ts'

const FOLDER_MODE = 0o700

/** A record that a receiver will never take. */
export interface DeadLetter {
  readonly record: AuditRecord
  readonly reason: string
  /** When it was given up: RFC 3339. */
  readonly at: string
}

/** The file of such records, each a line with the ledger's line in it. It never grows beyond its limit. */
export class DeadLetters {
  readonly path: string
  readonly #maxBytes: number

  constructor(path: string, maxBytes: number) {
    this.path = path
    this.#maxBytes = maxBytes
  }

  /** On disk when it resolves; false: there is no room for it. */
  async add({ record: { seq, hash, text }, reason, at }: DeadLetter): Promise<boolean> {
    const line = `${JSON.stringify({ at, reason, seq, hash, line: text })}\n`
    if ((await this.#size()) + Buffer.byteLength(line) > this.#maxBytes) return false
    await mkdir(dirname(this.path), { recursive: true, mode: FOLDER_MODE })
    await appendLines(this.path, line)
    return true
  }

  async #size(): Promise<number> {
    try {
      return (await stat(this.path)).size
    } catch (error) {
      if (isMissing(error)) return 0
      throw error
    }
  }
}
