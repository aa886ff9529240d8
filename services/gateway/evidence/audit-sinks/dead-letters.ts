import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissing } from '@plat/state'
import type { AuditRecord } from './formats/words.ts'
import { appendLines } from './receivers/jsonl.ts'

const FOLDER_MODE = 0o700

/** A record that its receiver permanently refuses. */
export interface DeadLetter {
  readonly record: AuditRecord
  readonly reason: string
  /** Time of the last attempt (RFC 3339). */
  readonly at: string
}

/** File of such records, one per line with the ledger line in it. It never exceeds its size limit. */
export class DeadLetters {
  readonly path: string
  readonly #maxBytes: number

  constructor(path: string, maxBytes: number) {
    this.path = path
    this.#maxBytes = maxBytes
  }

  /** Resolves when it is on disk, or with false if there is no room. */
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
