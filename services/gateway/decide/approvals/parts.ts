import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals, Leadership } from '@plat/state'
import type { GatewayMetrics } from '../../metrics.ts'
import type { ApprovalQuorumConfig } from './config.ts'
import type { DecidedCall } from './decided-call.ts'
import type { GrantsParts } from './grants/open.ts'
import type { ApprovalsOptions, RedactAll, WholeOptions } from './options.ts'
import type { Confirmer } from './quorum/confirmations.ts'
import type { ApprovalRule } from './quorum/quorum.ts'

/** Configuration and counterparts of the feature. */
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
  /** Returns the current taint labels of a session, for the list of approvals for sessions. */
  readonly labelsOf?: GrantsParts['labelsOf']
  /** Called with each new event, of this replica and of others. */
  readonly onChange?: ApprovalsOptions['onChange']
  /** Called with each change of an approval for a session, of this replica and of others. */
  readonly onGrant?: GrantsParts['onGrant']
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

/** Logs settings that lose approvals at a restart, or let a token approve. */
export function warnOfSettings({ config, journals, log }: ApprovalsParts): void {
  if (config.approvalStorePath === '' && !journals.shared)
    log.warn({}, 'approvals are kept in memory and lost at a restart: approvalStorePath is empty')
  if (config.adminAuth.devTokenApprovers)
    log.warn({}, 'the static admin token may approve calls: adminAuth.devTokenApprovers is for development only')
}

/** Reports the number of pending approvals, in its own series and in that of pools. */
export function meterPending({ metrics, pools }: ApprovalsParts): Pick<ApprovalsOptions, 'onPending' | 'onRefused'> {
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
