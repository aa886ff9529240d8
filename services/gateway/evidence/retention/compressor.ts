import { compressInThread, LedgerSequence } from '@plat/ledger'
import type { RetentionOptions } from './options.ts'

/** Compresses sealed segments one after the other, the oldest first, on a separate thread. */
export class Compressor {
  readonly #options: RetentionOptions
  readonly #failures: { inc(): void }
  /** First records of segments that cannot be compressed. */
  readonly #skipped = new Set<number>()

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#failures = options.metrics.counter('plat_gateway_audit_compression_failures_total').labels({})
  }

  /** Compresses all segments that are due. An unfinished file is removed by the next attempt. Rejects with the first failure. */
  async run(signal: AbortSignal): Promise<void> {
    for (let first = await this.#next(); first !== null && !signal.aborted; first = await this.#next()) {
      await this.#compress(first, signal)
    }
  }

  /** Returns the first record of the next segment to compress, or null. */
  async #next(): Promise<number | null> {
    await using sequence = await LedgerSequence.open(this.#options.config.auditPath)
    const isDue = ({ first, file, left }: (typeof sequence.segments)[number]) =>
      file?.endsWith('.jsonl') === true && left === null && !this.#skipped.has(first)
    return sequence.segments.find(isDue)?.first ?? null
  }

  async #compress(first: number, signal: AbortSignal): Promise<void> {
    const { config, log, list } = this.#options
    const path = config.auditPath
    const { fault, isMismatch } = await compressInThread(path, first, signal)
    if (signal.aborted) return
    if (fault === null) {
      log.info({ path, first }, 'a sealed segment of the audit ledger is compressed')
      list.update()
      return
    }
    this.#failures.inc()
    if (!isMismatch) throw new Error(fault)
    this.#skipped.add(first)
    log.error({ path, first, reason: fault }, 'a sealed segment of the audit ledger is damaged and is not compressed')
  }
}
