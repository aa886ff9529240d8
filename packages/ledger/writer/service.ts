import { hostname } from 'node:os'
import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { FileLedger } from './ledger.ts'
import { openLedger } from './open.ts'

/** Size at which a service's ledger is sealed as a segment: the gateway's default. */
const SEGMENT_BYTES = 256 * 1024 * 1024

export interface ServiceLedgerOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/**
 * Opens the ledger of flag `-audit-path`, in the same format as the gateway's, for its single writer. Rejects with one line when another process
 * writes it, when it is damaged, and when it cannot be written.
 */
export async function openServiceLedger(path: string, { clock, ids, log }: ServiceLedgerOptions): Promise<FileLedger> {
  try {
    const meter = {
      committed() {},
      missed() {},
      poisoned: (reason: string, retryMs: number) =>
        log.error({ reason, retryMs }, 'the audit ledger cannot be written; nothing is issued'),
      recovered: (unrecorded: number) =>
        log.warn({ unrecorded }, 'the audit ledger can be written again; the gap is recorded'),
    }
    const onHeadFault = (reason: string) =>
      log.error({ path, reason }, 'the head of the audit ledger cannot be kept beside it')
    const sealing = {
      bytes: SEGMENT_BYTES,
      seconds: 0,
      onFault: (reason: string) => log.error({ path, reason }, 'a segment of the audit ledger could not be sealed'),
    }
    return await openLedger({
      path,
      tenant: '',
      replica: hostname(),
      clock,
      ids,
      meter,
      onHeadFault,
      sealing,
      since: 'active',
    })
  } catch (error) {
    throw new Error(`-audit-path: ${reasonOf(error)}`)
  }
}
