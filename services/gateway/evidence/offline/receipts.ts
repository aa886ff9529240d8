import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readText } from '@plat/config'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import { readSegmentReceipt } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { CollectorContact } from './collector-contact.ts'

/** Maximum size of a receipt, in bytes. */
const MAX_RECEIPT_BYTES = 16 * 1024

export interface ReceiptFolderOptions {
  readonly dir: string
  readonly everyMs: number
  readonly edge: string
  readonly contact: CollectorContact
  readonly clock: Clock
  readonly log: Log
  readonly onError: () => void
}

/** Applies receipts that people copy: `<dir>/*.receipt`. Valid ones are removed, invalid ones renamed; those of other edges stay. */
export class ReceiptFolder {
  readonly #options: ReceiptFolderOptions
  readonly #looks: PeriodicTask

  constructor(options: ReceiptFolderOptions) {
    const { dir, log, onError } = options
    this.#options = options
    this.#looks = new PeriodicTask({
      ...options,
      job: () => this.#look(),
      onFault(error) {
        onError()
        log.error({ dir, error: reasonOf(error) }, 'offline.receiptDropDir cannot be used')
      },
    })
  }

  /** Never rejects. */
  look(): Promise<void> {
    return this.#looks.now()
  }

  close(): Promise<void> {
    return this.#looks.close()
  }

  async #look(): Promise<void> {
    const { dir, edge, contact, log, onError } = this.#options
    const names = (await readdir(dir)).filter((name) => name.endsWith('.receipt') && !name.startsWith('.'))
    for (const name of names.toSorted()) {
      const path = join(dir, name)
      const text = (await readText(path, MAX_RECEIPT_BYTES))?.trim() ?? ''
      const receipt = readSegmentReceipt(text)
      if (receipt !== null && receipt.says.edge !== edge) continue
      const problem = await contact.accept(text, null)
      if (problem === null) {
        await rm(path, { force: true })
      } else {
        onError()
        log.error({ path, problem }, 'invalid receipt')
        await rename(path, `${path}.refused`)
      }
    }
  }
}
