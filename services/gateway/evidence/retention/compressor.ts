import { reasonOf } from '@plat/core'
import { compressInThread, LedgerSequence } from '@plat/ledger'
import type { RetentionOptions } from './options.ts'

/** Time before another attempt after a failure, in milliseconds. */
const RETRY_MS = 60_000

/** Compresses sealed segments one after the other, the oldest first, on a separate thread. */
export class Compressor {
  readonly #options: RetentionOptions
  readonly #stop = new AbortController()
  readonly #failures: { inc(): void }
  /** First records of segments that cannot be compressed. */
  readonly #skipped = new Set<number>()
  #running: Promise<void> | null = null
  #isDue = false
  #cancelRetry: () => void = () => {}

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#failures = options.metrics.counter('plat_gateway_audit_compression_failures_total').labels({})
  }

  /** Called when there may be a segment to compress. */
  start(): void {
    this.#isDue = true
    if (this.#stop.signal.aborted || this.#running !== null) return
    this.#cancelRetry()
    this.#running = this.#run().finally(() => {
      this.#running = null
    })
  }

  /** An unfinished file is removed by the next attempt. */
  async close(): Promise<void> {
    this.#stop.abort()
    this.#cancelRetry()
    await this.#running
  }

  async #run(): Promise<void> {
    const { config, log, clock } = this.#options
    try {
      while (this.#isDue && !this.#stop.signal.aborted) {
        this.#isDue = false
        for (let first = await this.#next(); first !== null; first = await this.#next()) await this.#compress(first)
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return
      this.#failures.inc()
      log.error(
        { path: config.auditPath, reason: reasonOf(error) },
        'a sealed segment of the audit ledger could not be compressed, will retry',
      )
      this.#cancelRetry = clock.after(RETRY_MS, () => this.start())
    }
  }

  /** Returns the first record of the next segment to compress, or null. */
  async #next(): Promise<number | null> {
    if (this.#stop.signal.aborted) return null
    await using sequence = await LedgerSequence.open(this.#options.config.auditPath)
    const isDue = ({ first, file, left }: (typeof sequence.segments)[number]) =>
      file?.endsWith('.jsonl') === true && left === null && !this.#skipped.has(first)
    return sequence.segments.find(isDue)?.first ?? null
  }

  async #compress(first: number): Promise<void> {
    const { config, log, list } = this.#options
    const path = config.auditPath
    const { fault, isMismatch } = await compressInThread(path, first, this.#stop.signal)
    if (fault === null) {
      log.info({ path, first }, 'a sealed segment of the audit ledger is compressed')
      list.update()
    } else if (isMismatch) {
      this.#skipped.add(first)
      this.#failures.inc()
      log.error({ path, first, reason: fault }, 'a sealed segment of the audit ledger is damaged and is not compressed')
    } else {
      throw new Error(fault)
    }
  }
}
