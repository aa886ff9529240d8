import { type FileWatch, watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import { type DecodedFile, decodeFile } from './format.ts'

/** A list that was not looked at for so long beyond its interval counts as unreadable, in milliseconds: a disk that hangs fails closed. */
export const STALE_AFTER_MS = 5_000

export interface ListFileParts {
  readonly path: string
  /** How often the content is looked at, in milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  /** A good list replaces the one before. */
  readonly onList: (file: DecodedFile) => void
  /** There is no list that could be trusted. */
  readonly onLost: (problems: readonly string[]) => void
}

/** Follows `revocationsFile`: either its whole content is in force, or nothing is known about who is revoked. */
export class ListFile {
  readonly #parts: ListFileParts
  readonly #watch: FileWatch
  #good = false
  /** Monotonic milliseconds of the last look that ended. */
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

  /** False: every call is denied. */
  get ok(): boolean {
    return this.#good && !this.stale
  }

  /** The last look is too long ago. */
  get stale(): boolean {
    const { clock, everyMs } = this.#parts
    return clock.monotonic() - this.#lookedAt > everyMs + STALE_AFTER_MS
  }

  /** Looks now; the first look comes before the gateway serves. */
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
