import { reasonOf } from '@plat/core'
import type { Files } from '@plat/state'
import { asyncFiles, replaceText, sourceFilesOver } from '../../sequence/files.ts'
import { type LedgerSegment, loadSegments, segmentsPath, writeList } from '../../sequence/segment-list.ts'

export interface ListKeeperOptions {
  readonly onSealed?: (segments: readonly LedgerSegment[]) => void
  readonly onFault?: (reason: string) => void
}

/** Writes the list of sealed segments after each one. No commit waits for it: it can be rebuilt from the files. */
export class ListKeeper {
  readonly #path: string
  readonly #files: Files | null
  readonly #options: ListKeeperOptions
  #updating: Promise<void> | null = null
  #isDue = false

  /** `files`: null for the system's. */
  constructor(path: string, files: Files | null, options: ListKeeperOptions) {
    this.#path = path
    this.#files = files
    this.#options = options
  }

  /** Called when a segment was sealed. */
  update(): void {
    this.#isDue = true
    this.#updating ??= this.#run().finally(() => {
      this.#updating = null
    })
  }

  async #run(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false
      try {
        const segments = await loadSegments(
          this.#path,
          this.#files === null ? asyncFiles : sourceFilesOver(this.#files),
        )
        const text = writeList(segments)
        if (this.#files === null) await replaceText(segmentsPath(this.#path), text)
        else this.#files.replace(segmentsPath(this.#path), Buffer.from(text))
        this.#options.onSealed?.(segments)
      } catch (error) {
        this.#options.onFault?.(reasonOf(error))
      }
    }
  }
}
