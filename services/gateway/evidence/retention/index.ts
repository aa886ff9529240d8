import { Compressor } from './compressor.ts'
import type { RetentionOptions } from './options.ts'

/** Compresses sealed segments of the ledger (docs/spec/gateway.md), also those of earlier runs. */
export function createRetention(options: RetentionOptions): { close(): Promise<void> } {
  if (options.config.auditSegmentCompression === 'none') return { async close() {} }
  const compressor = new Compressor(options)
  options.onListed(() => compressor.start())
  compressor.start()
  return compressor
}
