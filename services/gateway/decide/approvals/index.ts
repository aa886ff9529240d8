import { type Clock, type Ids, type PoolObservers, reasonOf } from '@plat/core'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals, Leadership } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Approvals, type ApprovalsOptions, type DecidedCall } from './approvals.ts'
import type { ApprovalQuorumConfig } from './config.ts'
import { createDecisions, type Decisions } from './decisions.ts'
import type { PreviewOptions, RedactAll } from './question/preview.ts'
import { type Confirmations, type Confirmer, leadConfirmations } from './quorum/confirmations.ts'
import { type ApprovalRule, QuorumFloor } from './quorum/quorum.ts'
import { approvalRecord, Unrecorded } from './record.ts'
import { createApprovalRoutes } from './routes.ts'
import { type ApprovalStage, createApprovalStage } from './stage.ts'
import type { SessionName } from './store/book.ts'
import { decodeEvent } from './store/events.ts'
import { type ApprovalView, approvalView } from './view.ts'

export interface ApprovalsParts {
  readonly config: {
    readonly approvalTimeoutSeconds: number
    readonly approvalStorePath: string
    readonly approvalPreview: PreviewOptions
    readonly approvalQuorum: ApprovalQuorumConfig
    readonly adminAuth: { readonly devTokenApprovers: boolean }
  }
  readonly journals: Journals
  /** What identifies the user that a session acts for. */
  readonly personOf: ApprovalsOptions['personOf']
  /** For previews of arguments that no profile of data-loss prevention looks at. */
  readonly redactAll: RedactAll
  /** Users are asked to confirm by one replica. */
  readonly leadership: Leadership
  /** Every rule of the policies that asks for an approval of this call. */
  readonly asking: (call: DecidedCall) => readonly ApprovalRule[]
  /** Whether this person may approve anything now; absent: whoever may decide may. */
  readonly mayApprove?: ApprovalsOptions['mayApprove']
  /** Asks users to confirm; null: nobody can. */
  readonly confirmer: Confirmer | null
  readonly ledgers: Ledgers
  /** What the ledger had of approvals at start: what it lacks is recorded then. */
  readonly recorded: readonly Rec[]
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'pending_approvals'>
}

/** Asking people before a call passes. */
export interface ApprovalsFeature {
  readonly stage: ApprovalStage
  readonly routes: AdminRoutes
  /** Decides for people who are known elsewhere than in the admin API. */
  readonly decisions: Decisions
  /** As the admin API shows it; null: there is no such approval. */
  view(id: string): ApprovalView | null
  /** Approvals that a session waits for. */
  pendingOf(session: SessionName): number
  close(): Promise<void>
}

/**
 * Approvals (docs/spec/gateway.md, "Approvals") on the journal of `approvalStorePath`, in memory when it is empty. Rejects when
 * the journal cannot be read: nothing is decided on half a history.
 */
export async function createApprovals(parts: ApprovalsParts): Promise<ApprovalsFeature> {
  const { config, journals, leadership, asking, confirmer, mayApprove, ledgers, recorded, clock, ids, log } = parts
  const path = config.approvalStorePath
  if (path === '' && !journals.shared)
    log.warn({}, 'approvals are kept in memory and lost at a restart: approvalStorePath is empty')
  if (config.adminAuth.devTokenApprovers) {
    log.warn({}, 'the static admin token may approve calls: adminAuth.devTokenApprovers is for development only')
  }
  const journal = await journals.open({ name: 'approvals', path, decode: decodeEvent })
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'an approval could not be kept')
  const record = (rec: Rec | null, tenant: string) => {
    const failed = (error: unknown) =>
      log.error({ error: reasonOf(error) }, 'an approval could not be recorded in the ledger')
    if (rec !== null) ledgers.of(tenant).append(rec).catch(failed)
  }
  const unrecorded = new Unrecorded(recorded, clock)
  let confirmations: Pick<Confirmations, 'look' | 'close'> | null = null
  const approvals = await Approvals.open({
    journal,
    clock,
    ids,
    timeoutMs: config.approvalTimeoutSeconds * 1000,
    preview: config.approvalPreview,
    redactAll: parts.redactAll,
    personOf: parts.personOf,
    floor: new QuorumFloor(config.approvalQuorum),
    asking,
    asksUsers: confirmer !== null,
    mayApprove,
    ...meterPending(parts),
    // What other replicas wrote is recorded in their ledgers.
    onReplay(event, approval, at) {
      if (!journals.shared) unrecorded.see(approvalRecord(event, approval), at)
    },
    onEvent(event, approval) {
      record(approvalRecord(event, approval), approval.question.tenant)
      if (event.t === 'created' && event.question.quorum.userConfirmation !== undefined) confirmations?.look()
    },
    onFault,
  })
  if (confirmer !== null) confirmations = leadConfirmations(leadership, { approvals, confirmer, clock, onFault })
  for (const missing of unrecorded.take()) record(missing, '')
  const decisions = createDecisions(approvals, onFault)
  return {
    decisions,
    view(id) {
      const approval = approvals.get(id)
      return approval === null ? null : approvalView(approval)
    },
    stage: createApprovalStage(approvals, onFault),
    routes: createApprovalRoutes({ approvals, devTokenApprovers: config.adminAuth.devTokenApprovers, decisions }),
    pendingOf: (session) => approvals.pendingOf(session),
    async close() {
      confirmations?.close()
      approvals.close()
      await journal.close()
    },
  }
}

/** Shows how many approvals are pending, in their own series and in that of pools. */
function meterPending({ metrics, pools }: ApprovalsParts): Pick<ApprovalsOptions, 'onPending' | 'onRefused'> {
  let pending = 0
  const gauge = metrics.gauge('plat_gateway_approvals_pending')
  const observer = pools?.of('pending_approvals')
  observer?.watch(() => pending)
  return {
    onPending(count) {
      gauge.set({}, count)
      pending = count
    },
    onRefused: (bound) => observer?.refused(bound),
  }
}
