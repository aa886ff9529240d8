import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import { createMemoryJournal, openFileJournal } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import { Approvals, type ApprovalsOptions, type JudgedCall } from './approvals.ts'
import type { SessionName } from './book.ts'
import type { ApprovalQuorumConfig } from './config.ts'
import { type ApprovalEvent, decodeEvent } from './events.ts'
import type { PreviewOptions } from './question/preview.ts'
import { type AskingRule, QuorumFloor } from './quorum/quorum.ts'
import { approvalRecord } from './record.ts'
import { createApprovalRoutes } from './routes.ts'
import { type ApprovalStage, createApprovalStage } from './stage.ts'

export { approvalPreviewBlock, approvalQuorumBlock, approvalsBlock } from './config.ts'

export interface ApprovalsParts {
  readonly config: {
    readonly approvalTimeoutSeconds: number
    readonly approvalStorePath: string
    readonly approvalPreview: PreviewOptions
    readonly approvalQuorum: ApprovalQuorumConfig
    readonly adminAuth: { readonly devTokenApprovers: boolean }
  }
  /** Every rule of the policies that asks for an approval of this call. */
  readonly asking: (call: JudgedCall) => readonly AskingRule[]
  /** Whether this person may approve anything now; absent: whoever may decide may. */
  readonly mayApprove?: ApprovalsOptions['mayApprove']
  readonly ledgers: Ledgers
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: {
    /** `plat_gateway_approvals_pending`. */
    pending(count: number): void
  }
}

/** Asking people before a call passes. */
export interface ApprovalsFeature {
  readonly stage: ApprovalStage
  readonly routes: AdminRoutes
  /** Approvals that a session waits for. */
  pendingOf(session: Omit<SessionName, 'tenant'>): number
  close(): Promise<void>
}

/**
 * Approvals (document 3, "Approvals") on the journal of `approvalStorePath`, or in memory when it is empty. Rejects when
 * the journal cannot be read: nothing is decided on half a history.
 */
export async function createApprovals(parts: ApprovalsParts): Promise<ApprovalsFeature> {
  const { config, asking, mayApprove, ledgers, clock, ids, log, metrics } = parts
  const path = config.approvalStorePath
  if (path === '') log.warn({}, 'approvals are kept in memory and lost at a restart: approvalStorePath is empty')
  if (config.adminAuth.devTokenApprovers) {
    log.warn({}, 'the static admin token may approve calls: adminAuth.devTokenApprovers is for development only')
  }
  const file = path === '' ? null : await openFileJournal({ path, clock, decode: decodeEvent })
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'an approval could not be kept')
  const approvals = await Approvals.open({
    journal: file ?? createMemoryJournal<ApprovalEvent>(() => clock.now()),
    clock,
    ids,
    timeoutMs: config.approvalTimeoutSeconds * 1000,
    preview: config.approvalPreview,
    floor: new QuorumFloor(config.approvalQuorum),
    asking,
    asksUsers: false,
    mayApprove,
    onPending: (count) => metrics.pending(count),
    onEvent(event, approval) {
      const record = approvalRecord(event, approval)
      if (record === null) return
      const unrecorded = (error: unknown) =>
        log.error({ error: reasonOf(error) }, 'an approval could not be recorded in the ledger')
      ledgers.of(approval.question.tenant).append(record).catch(unrecorded)
    },
    onFault,
  })
  return {
    stage: createApprovalStage(approvals, onFault),
    routes: createApprovalRoutes({ approvals, devTokenApprovers: config.adminAuth.devTokenApprovers, onFault }),
    pendingOf: (session) => approvals.pendingOf({ ...session, tenant: '' }),
    async close() {
      approvals.close()
      await file?.close()
    },
  }
}
