import { type FileWatch, watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import { type DecodedFile, decodeFile } from './format.ts'

/** Grace period beyond the check interval before a list counts as unreadable, in milliseconds: a hanging disk fails closed. */
export const STALE_AFTER_MS = 5_000

export interface ListFileParts {
  readonly path: string
  /** Interval between checks of the content, in milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  /** Called with each valid list. */
  readonly onList: (file: DecodedFile) => void
  /** Called when there is no trusted list. */
  readonly onLost: (problems: readonly string[]) => void
}

/** Follows `revocationsFile`. Either its whole content is in force, or every call is denied. */
export class ListFile {
  readonly #parts: ListFileParts
  readonly #watch: FileWatch
  #good = false
  /** Monotonic time of the last completed check, in milliseconds. */
  #lookedAt: number

  constructor(parts: ListFileParts) {
    this.#parts = parts
    this.#lookedAt = parts.clock.monotonic()
    const { path, everyMs, clock } = parts
    this.#watch = watchFile({
      path,
      everyMs,
      clock,
      onBytes: (bytes) => this.#read(bytes),
      onError: (error) => this.#lose([error instanceof Error ? error.message : 'cannot be read']),
      onLooked: () => {
        this.#lookedAt = clock.monotonic()
      },
    })
  }

  /** Whether the list is trusted. While false every call is denied. */
  get ok(): boolean {
    return this.#good && !this.stale
  }

  /** Whether the last check is too old. */
  get stale(): boolean {
    const { clock, everyMs } = this.#parts
    return clock.monotonic() - this.#lookedAt > everyMs + STALE_AFTER_MS
  }

  /** Checks the file now. The first check comes before the gateway serves. */
  check(): Promise<void> {
    return this.#watch.check()
  }

  stop(): void {
    this.#watch.stop()
  }

  #read(bytes: Uint8Array | null): void {
    const read = decodeFile(bytes)
    if ('problems' in read) {
      this.#lose(read.problems)
    } else {
      this.#good = true
      this.#parts.onList(read)
    }
  }

  #lose(problems: readonly string[]): void {
    this.#good = false
    this.#parts.onLost(problems)
  }
}
