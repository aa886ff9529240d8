import { LedgerSequence, type UnreadBeginning, verifySegments } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { LedgerMetrics } from './ledger-metrics.ts'

export interface BackgroundOptions {
  /** Beginning of the active file that the start did not read, or null. */
  readonly unread: UnreadBeginning | null
  readonly config: { readonly auditPath: string; readonly auditVerifyBytesPerSecond: number }
  readonly log: Log
  readonly metrics: Pick<LedgerMetrics, 'verified' | 'damaged'>
}

/** A sealed segment that does not verify. */
export interface DamagedSegment {
  /** `seq` of its first and last record. */
  readonly first: number
  readonly last: number
  readonly problem: string
}

/** Verification of sealed segments while calls are served. */
export interface Verification {
  /** Damaged segments that were found so far, the first 100. */
  readonly damaged: readonly DamagedSegment[]
  /** Problem of the segment that begins with this record; null: it verified; undefined: not verified so far. */
  problemOf(first: number): string | null | undefined
  stop(): Promise<void>
}

const LISTED_MAX = 100

/** Verifies the sealed segments and the beginning of the active file, which a start does not read. */
export async function verifyInBackground({ config, log, metrics, unread }: BackgroundOptions): Promise<Verification> {
  const { auditPath: path, auditVerifyBytesPerSecond: bytesPerSecond } = config
  const damaged: DamagedSegment[] = []
  const count = { verified: 0, damaged: 0 }
  /** By the first record of each segment. */
  const problems = new Map<number, string | null>()
  const problemOf = (first: number) => problems.get(first)
  metrics.verified(0)
  metrics.damaged(0)
  if (bytesPerSecond === 0 || (unread === null && !(await hasSegments(path))))
    return { damaged, problemOf, async stop() {} }
  const stop = await verifySegments(path, {
    bytesPerSecond,
    unread,
    onSegment({ path: segment, first, last, problem }) {
      problems.set(first, problem)
      if (problem === null) {
        if (segment !== path) metrics.verified(++count.verified)
        return
      }
      metrics.damaged(++count.damaged)
      if (damaged.length < LISTED_MAX) damaged.push({ first, last, problem })
      log.error({ segment, first, last, problem }, 'a part of the audit ledger is damaged: restore it from a copy')
    },
    onFault: (error) =>
      log.error({ path, error: error.message }, 'sealed segments of the audit ledger cannot be verified'),
  })
  return { damaged, problemOf, stop }
}

async function hasSegments(path: string): Promise<boolean> {
  await using sequence = await LedgerSequence.open(path)
  return sequence.parts.length > 1
}
