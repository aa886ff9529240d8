import { reasonOf } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { AdminRoutes } from '../../admin/index.ts'
import { Approvals } from './approvals.ts'
import { createDecisions, type Decisions } from './decisions.ts'
import { openGrants } from './grants/open.ts'
import { type ApprovalsParts, meterPending, warnOfSettings } from './parts.ts'
import { type Confirmations, leadConfirmations } from './quorum/confirmations.ts'
import { QuorumFloor } from './quorum/quorum.ts'
import { approvalRecord, Unrecorded } from './record.ts'
import { createApprovalRoutes } from './routes.ts'
import { type ApprovalStage, createApprovalStage } from './stage.ts'
import type { SessionName } from './store/book.ts'
import { type Approval, approvalsJournal } from './store/events.ts'
import { openArguments } from './store/open-arguments.ts'
import { type ApprovalView, approvalView } from './view.ts'

export { grantEvent } from './grants/open.ts'
export { approvalEvent } from './record.ts'

/** Approvals by people before a call passes. */
export interface ApprovalsFeature {
  readonly stage: ApprovalStage
  readonly routes: AdminRoutes
  /** Decides for people who are authenticated outside the admin API. */
  readonly decisions: Decisions
  /** Returns the approval as in the admin API, or null if there is none. */
  view(id: string): ApprovalView | null
  /** The last event of each approval, as its record has it. */
  latest(): readonly { readonly approval: string; readonly event: string; readonly createdAt: number }[]
  /** Number of approvals that a session waits for. */
  pendingOf(session: SessionName): number
  close(): Promise<void>
}

/**
 * Approvals (docs/spec/gateway.md, "Approvals") on the journal of `approvalStorePath`, in memory when it is empty. Rejects if the
 * journal cannot be read: decisions need the whole history.
 */
export async function createApprovals(parts: ApprovalsParts): Promise<ApprovalsFeature> {
  const { config, journals, leadership, confirmer, ledgers, recorded, clock, log } = parts
  warnOfSettings(parts)
  const journal = await journals.open(approvalsJournal(config))
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
    ...parts,
    ...{ journal, timeoutMs: config.approvalTimeoutSeconds * 1000, preview: config.approvalPreview },
    ...{ floor: new QuorumFloor(config.approvalQuorum), canPromptUsers: confirmer !== null },
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
  const grants = await openGrants(parts, approvals)
  if (confirmer !== null) confirmations = leadConfirmations(leadership, { approvals, confirmer, clock, onFault })
  for (const missing of unrecorded.take()) record(missing, '')
  const decisions = createDecisions(approvals, whole.stored, onFault)
  return {
    decisions,
    view(id) {
      const approval = approvals.get(id)
      return approval === null ? null : approvalView(approval, whole.stored)
    },
    latest: () => approvals.list().map(latestOf),
    stage: createApprovalStage(approvals, grants.repeats, onFault),
    routes: createApprovalRoutes({
      ...{ approvals, ...config.adminAuth, decisions, whole: whole.stored },
      forSessions: grants.routes,
    }),
    pendingOf: (session) => approvals.pendingOf(session),
    async close() {
      confirmations?.close()
      await grants.close()
      await whole.close()
      approvals.close()
      await journal.close()
    },
  }
}

/** By state, as in records. */
const LAST_EVENTS: Readonly<Record<Approval['state'], string>> = {
  pending: 'created',
  approved: 'granted',
  used: 'granted',
  denied: 'denied',
  expired: 'expired',
  cancelled: 'cancelled',
}

function latestOf({ state, question: { id, createdAt } }: Approval) {
  return { approval: id, event: LAST_EVENTS[state], createdAt }
}
