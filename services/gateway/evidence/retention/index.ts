import { reasonOf } from '@plat/core'
import { Compressor } from './compressor.ts'
import { Leaver } from './leaver.ts'
import type { RetentionOptions } from './options.ts'
import { holdsOf, type LedgerHolds } from './routes.ts'

export { createHoldRoutes } from './routes.ts'

/** Interval of passes: what a segment waits for changes without notice. */
const PASS_MS = 60_000

export interface Retention {
  /** Legal holds of the ledger. */
  readonly holds: LedgerHolds
  close(): Promise<void>
}

/** Compresses sealed segments of the ledger and lets them leave (docs/spec/gateway.md), also those of earlier runs. */
export function createRetention(options: RetentionOptions): Retention {
  const { config, clock, log, onListed } = options
  const path = config.auditPath
  const stop = new AbortController()
  const compressor = config.auditSegmentCompression === 'none' ? null : new Compressor(options)
  const holds = holdsOf(options)
  const leaver = new Leaver(options, holds.keeper)
  let running: Promise<void> | null = null
  let isDue = false

  const attempt = async (work: Promise<void> | undefined, message: string) => {
    await work?.catch((error: unknown) => {
      if (!stop.signal.aborted) log.error({ path, reason: reasonOf(error) }, message)
    })
  }
  const pass = async () => {
    while (isDue && !stop.signal.aborted) {
      isDue = false
      // One after the other: a segment is not compressed while it leaves. Without room for the one, the other may make room.
      await attempt(
        compressor?.run(stop.signal),
        'a sealed segment of the audit ledger could not be compressed, will retry',
      )
      await attempt(leaver.run(stop.signal), 'sealed segments of the audit ledger cannot leave, will retry')
    }
  }
  const start = () => {
    isDue = true
    if (stop.signal.aborted) return
    running ??= pass().finally(() => {
      running = null
    })
  }
  onListed(start)
  const stopTimer = clock.every(PASS_MS, start)
  start()
  return {
    holds,
    async close() {
      stop.abort()
      stopTimer()
      await running
    },
  }
}
