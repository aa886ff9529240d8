import { mkdir, opendir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Backoff, type Clock, type Ids, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import { type Cipher, KeyServiceError } from '@plat/keys'
import { type Capture, capturePath, sealCapture } from '@plat/ledger'

/** Minimum weight of a capture, in bytes, so that their number is limited, too. */
const LEAST_BYTES = 64 * 1024
/** Interval of the search for expired captures, in milliseconds. */
const SWEEP_EVERY_MS = 3_600_000
/** Pauses while the key service fails, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
const DAY_MS = 86_400_000

export type CaptureOutcome = 'written' | 'dropped' | 'failed'

export interface CapturesOptions {
  readonly dir: string
  readonly cipher: Cipher
  readonly retentionDays: number
  /** Redacts arguments. Returns null if nothing may be kept. */
  readonly redact: (args: Uint8Array) => Uint8Array | null | Promise<Uint8Array | null>
  readonly clock: Clock
  readonly ids: Ids
  readonly onOutcome: (outcome: CaptureOutcome) => void
  readonly onFault: (error: unknown) => void
  /** Called when captures begin to wait for the key service. */
  readonly onWait: (error: KeyServiceError) => void
  readonly observer?: PoolObserver | undefined
}

/** Writes captures in sequence, independently of their calls; drops captures when the queue is full. They wait while the key service fails. */
export class Captures {
  readonly #options: CapturesOptions
  readonly #waiting: Capture[] = []
  readonly #pool: SharedPool
  #working: Promise<void> | null = null
  readonly #backoff: Backoff
  readonly #stopSweep: () => void
  #isClosed = false
  #isGivenUp = false
  #endPause: () => void = () => {}

  constructor(options: CapturesOptions) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
    this.#pool = watchedPool({ name: 'capture_bytes', observer: options.observer })
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => void this.sweep())
  }

  add(capture: Capture): void {
    if (this.#pool.acquire(capture.namespace, weightOf(capture)) !== null) {
      this.#options.onOutcome('dropped')
      return
    }
    this.#waiting.push(capture)
    this.#working ??= this.#work()
  }

  /** Removes captures that no call has repeated in `retentionDays`. Never rejects. */
  async sweep(): Promise<void> {
    const { dir, clock, retentionDays, onFault } = this.#options
    const oldest = clock.now() - retentionDays * DAY_MS
    try {
      for await (const entry of await opendir(dir, { recursive: true })) {
        if (entry.isFile() && entry.name.includes('.cap'))
          await removeIfOlder(path.join(entry.parentPath, entry.name), oldest)
      }
    } catch (error) {
      if (!isMissing(error)) onFault(error)
    }
  }

  /** Writes waiting captures first; those for which the key service fails are lost. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopSweep()
    this.#endPause()
    await this.#working
  }

  async #work(): Promise<void> {
    let failures = 0
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const outcome = this.#isGivenUp ? 'failed' : await this.#attempt(next, failures)
      if (outcome === 'waiting') {
        await this.#pause(failures)
        failures++
        continue
      }
      failures = 0
      this.#waiting.shift()
      this.#pool.release(next.namespace, weightOf(next))
      this.#options.onOutcome(outcome)
    }
    this.#working = null
  }

  async #attempt(capture: Capture, failures: number): Promise<CaptureOutcome | 'waiting'> {
    const { onFault, onWait } = this.#options
    try {
      return await this.#write(capture)
    } catch (error) {
      if (error instanceof KeyServiceError && !this.#isClosed) {
        if (failures === 0) onWait(error)
        return 'waiting'
      }
      // The others would each wait for the key service, too.
      this.#isGivenUp = error instanceof KeyServiceError
      onFault(error)
      return 'failed'
    }
  }

  #pause(failures: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(this.#backoff.pauseMs(failures), resolve)
      this.#endPause = () => {
        cancel()
        resolve()
      }
    })
  }

  async #write(capture: Capture): Promise<CaptureOutcome> {
    const { dir, cipher, clock, ids, redact } = this.#options
    const file = capturePath(dir, capture)
    if (file === null) throw new Error('the namespace of a capture is not a folder name')
    if (await isThereAgain(file, clock.now())) return 'written'
    const args = await redact(capture.args)
    if (args === null) return 'dropped'
    const text = await sealCapture({ ...capture, args }, { cipher, random: (bytes) => ids.random(bytes) })
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    const temporary = `${file}.${ids.uuid()}`
    await writeFile(temporary, text, { mode: 0o600 })
    await rename(temporary, file)
    return 'written'
  }
}

function weightOf({ args }: Capture): number {
  return Math.max(LEAST_BYTES, args.byteLength)
}

/** Ignores files that were renamed or removed meanwhile, such as drafts. */
async function removeIfOlder(file: string, oldest: number): Promise<void> {
  try {
    if ((await stat(file)).mtimeMs < oldest) await rm(file)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

/** Renews the time of a capture with the same arguments. Returns whether it exists. */
async function isThereAgain(file: string, now: number): Promise<boolean> {
  try {
    await utimes(file, now / 1000, now / 1000)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
