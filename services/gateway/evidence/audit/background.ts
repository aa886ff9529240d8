import { LedgerSequence, verifySegments } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'

export interface BackgroundOptions {
  readonly config: { readonly auditPath: string; readonly auditVerifyBytesPerSecond: number }
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** Verifies the sealed segments, which a start does not read, while calls are served. Returns a function that stops it. */
export async function verifyInBackground({ config, log, metrics }: BackgroundOptions): Promise<() => Promise<void>> {
  const { auditPath: path, auditVerifyBytesPerSecond: bytesPerSecond } = config
  const verified = metrics.gauge('plat_gateway_audit_verified_segments').labels({})
  const damaged = metrics.gauge('plat_gateway_audit_damaged_segments').labels({})
  const count = { verified: 0, damaged: 0 }
  verified.set(0)
  damaged.set(0)
  if (bytesPerSecond === 0 || !(await hasSegments(path))) return async () => {}
  return verifySegments(path, {
    bytesPerSecond,
    onSegment({ path: segment, first, last, problem }) {
      if (problem === null) {
        verified.set(++count.verified)
        return
      }
      damaged.set(++count.damaged)
      log.error(
        { segment, first, last, problem },
        'a sealed segment of the audit ledger is damaged: restore it from a copy',
      )
    },
    onFault: (error) =>
      log.error({ path, error: error.message }, 'sealed segments of the audit ledger cannot be verified'),
  })
}

async function hasSegments(path: string): Promise<boolean> {
  await using sequence = await LedgerSequence.open(path)
  return sequence.segments.length > 0
}
