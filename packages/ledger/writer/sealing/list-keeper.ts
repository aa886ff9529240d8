import { dirname } from 'node:path'
import { type Clock, reasonOf } from '@plat/core'
import { type Files, systemFiles } from '@plat/state'
import { asyncFiles, replaceText, sourceFilesOver, syncFolder } from '../../sequence/files.ts'
import { type LedgerSegment, segmentsPath } from '../../sequence/segment-entry.ts'
import { loadSegments, writeList } from '../../sequence/segment-list.ts'
import { moveLeft, removeReplaced } from './move-left.ts'

export interface ListKeeperOptions {
  /** For another attempt after a failure; absent: the next change is one. */
  readonly clock?: Clock
  /** Called with the segments of the list whenever it was written, and the number of all that were sealed. */
  readonly onListed?: (segments: readonly LedgerSegment[], count: number) => void
  /** Called when it could not be written after a segment was sealed or compressed. */
  readonly onFault?: (reason: string) => void
}

/** Time before another attempt, in milliseconds. */
const RETRY_MS = 10_000

/**
 * The only writer of the list of sealed segments. No commit waits for it, since it can be rebuilt from the files; except for segments that left, which
 * it keeps also when the list was removed meanwhile.
 */
export class ListKeeper {
  readonly #path: string
  readonly #files: Files | null
  readonly #options: ListKeeperOptions
  #running: Promise<unknown> = Promise.resolve()
  #isDue = false
  #cancelRetry: () => void = () => {}
  #isClosed = false
  #left: readonly LedgerSegment[] = []

  /** `files`: null for the system's. */
  constructor(path: string, files: Files | null, options: ListKeeperOptions) {
    this.#path = path
    this.#files = files
    this.#options = options
  }

  /** Called when a segment was sealed, or its file has another name. Never rejects: after a failure it is tried again. */
  async update(): Promise<void> {
    if (this.#isDue) return
    this.#isDue = true
    this.#cancelRetry()
    try {
      await this.change((segments) => {
        this.#isDue = false
        return segments
      })
    } catch (error) {
      this.#isDue = false
      this.#options.onFault?.(reasonOf(error))
      if (!this.#isClosed)
        this.#cancelRetry = this.#options.clock?.after(RETRY_MS, () => void this.update()) ?? this.#cancelRetry
    }
  }

  /** Ends attempts after a failure. */
  close(): void {
    this.#isClosed = true
    this.#cancelRetry()
  }

  /** Replaces the segments by what `changed` returns for the current ones. Resolves when the list is durable. */
  async change(changed: (segments: readonly LedgerSegment[]) => readonly LedgerSegment[]): Promise<void> {
    const run = this.#running.then(async () => {
      const loaded = await loadSegments(this.#path, this.#source())
      const [ledgerPath, files] = [this.#path, this.#files ?? systemFiles]
      const all = changed(this.#withLeft(loaded.segments))
      const { segments, state, count } = await moveLeft(all, { ...loaded, ledgerPath, files })
      await this.#write(writeList(segments, state))
      this.#left = segments.filter(({ left }) => left !== null)
      this.#options.onListed?.(segments, count)
      removeReplaced(state, ledgerPath, files)
    })
    this.#running = run.catch(() => {})
    await run
  }

  #source() {
    return this.#files === null ? asyncFiles : sourceFilesOver(this.#files)
  }

  #withLeft(segments: readonly LedgerSegment[]): readonly LedgerSegment[] {
    const known = new Set(segments.map(({ first }) => first))
    const missing = this.#left.filter(({ first }) => !known.has(first))
    return missing.length === 0 ? segments : [...segments, ...missing].sort((a, b) => a.first - b.first)
  }

  async #write(text: string): Promise<void> {
    const path = segmentsPath(this.#path)
    if (this.#files !== null) {
      this.#files.replace(path, Buffer.from(text))
    } else {
      await replaceText(path, text)
      await syncFolder(dirname(path))
    }
  }
}
