import { type Clock, type Ids, type PoolObservers, reasonOf } from '@plat/core'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals, Leadership } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Approvals } from './approvals.ts'
import type { ApprovalQuorumConfig } from './config.ts'
import type { DecidedCall } from './decided-call.ts'
import { createDecisions, type Decisions } from './decisions.ts'
import type { ApprovalsOptions, RedactAll, WholeOptions } from './options.ts'
import { type Confirmations, type Confirmer, leadConfirmations } from './quorum/confirmations.ts'
import { type ApprovalRule, QuorumFloor } from './quorum/quorum.ts'
import { approvalRecord, Unrecorded } from './record.ts'
import { createApprovalRoutes } from './routes.ts'
import { type ApprovalStage, createApprovalStage } from './stage.ts'
import type { SessionName } from './store/book.ts'
import { decodeEvent, requesterOf } from './store/events.ts'
import { openArguments } from './store/open-arguments.ts'
import { type ApprovalView, approvalView } from './view.ts'

export interface ApprovalsParts {
  readonly config: {
    readonly approvalTimeoutSeconds: number
    readonly approvalStorePath: string
    readonly approvalPreview: WholeOptions
    readonly approvalQuorum: ApprovalQuorumConfig
    readonly adminAuth: { readonly devTokenApprovers: boolean }
  }
  readonly journals: Journals
  /** Returns the marks that identify the user of a session. */
  readonly personOf: ApprovalsOptions['personOf']
  /** For previews of arguments that no data-loss prevention profile inspects. */
  readonly redactAll: RedactAll
  /** Only the leading replica prompts users. */
  readonly leadership: Leadership
  /** Returns every approval rule of the policies that applies to the call. */
  readonly approvalRules: (call: DecidedCall) => readonly ApprovalRule[]
  /** Whether this person may currently approve anything. When absent, everyone who can decide may approve. */
  readonly mayApprove?: ApprovalsOptions['mayApprove']
  /** Whether the session of a question is revoked as a whole. When absent, none is. */
  readonly hasEnded?: ApprovalsOptions['hasEnded']
  /** Called with each new event, of this replica and of others. */
  readonly onChange?: ApprovalsOptions['onChange']
  /** Prompts users to confirm; null: not configured. */
  readonly confirmer: Confirmer | null
  readonly ledgers: Ledgers
  /** Approval records of the ledger at start. Missing ones are added then. */
  readonly recorded: readonly Rec[]
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'pending_approvals' | 'approval_arguments'>
}

export { approvalEvent } from './record.ts'

/** Approvals by people before a call passes. */
export interface ApprovalsFeature {
  readonly stage: ApprovalStage
  readonly routes: AdminRoutes
  /** Decides for people who are authenticated outside the admin API. */
  readonly decisions: Decisions
  /** Returns the approval as in the admin API, or null if there is none. */
  view(id: string): ApprovalView | null
  /** Number of approvals that a session waits for. */
  pendingOf(session: SessionName): number
  close(): Promise<void>
}

/**
 * Approvals (docs/spec/gateway.md, "Approvals") on the journal of `approvalStorePath`, in memory when it is empty. Rejects if the
 * journal cannot be read: decisions need the whole history.
 */
export async function createApprovals(parts: ApprovalsParts): Promise<ApprovalsFeature> {
  const { config, journals, leadership, approvalRules, confirmer, mayApprove, ledgers, recorded, clock, ids, log } =
    parts
  warnOfSettings(parts)
  const path = config.approvalStorePath
  const journal = await journals.open({ name: 'approvals', path, decode: decodeEvent, callerOf: requesterOf })
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'an approval could not be stored')
  const record = (rec: Rec | null, tenant: string) => {
    const failed = (error: unknown) =>
      log.error({ error: reasonOf(error) }, 'an approval could not be recorded in the ledger')
    if (rec !== null) ledgers.of(tenant).append(rec).catch(failed)
  }
  const whole = await openArguments(parts)
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
    approvalRules,
    canPromptUsers: confirmer !== null,
    ...{ mayApprove, hasEnded: parts.hasEnded, onChange: parts.onChange },
    ...meterPending(parts),
    // On a shared journal each replica records the events it wrote.
    onReplay(event, approval, at) {
      if (!journals.shared) unrecorded.see(approvalRecord(event, approval), at)
    },
    onEvent(event, approval) {
      record(approvalRecord(event, approval), approval.question.tenant)
      if (event.t === 'created' && event.question.quorum.userConfirmation !== undefined) confirmations?.look()
    },
    onTruncated: whole.keep,
    onFault,
  })
  whole.sweepWith(approvals)
  if (confirmer !== null) confirmations = leadConfirmations(leadership, { approvals, confirmer, clock, onFault })
  for (const missing of unrecorded.take()) record(missing, '')
  const decisions = createDecisions(approvals, whole.stored, onFault)
  return {
    decisions,
    view(id) {
      const approval = approvals.get(id)
      return approval === null ? null : approvalView(approval, whole.stored)
    },
    stage: createApprovalStage(approvals, onFault),
    routes: createApprovalRoutes({ approvals, ...config.adminAuth, decisions, whole: whole.stored }),
    pendingOf: (session) => approvals.pendingOf(session),
    async close() {
      confirmations?.close()
      await whole.close()
      approvals.close()
      await journal.close()
    },
  }
}

function warnOfSettings({ config, journals, log }: ApprovalsParts): void {
  if (config.approvalStorePath === '' && !journals.shared)
    log.warn({}, 'approvals are kept in memory and lost at a restart: approvalStorePath is empty')
  if (config.adminAuth.devTokenApprovers)
    log.warn({}, 'the static admin token may approve calls: adminAuth.devTokenApprovers is for development only')
}

/** Reports the number of pending approvals, in its own series and in that of pools. */
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
