import assert from 'node:assert/strict'
import { systemIds, TestClock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { createMemoryJournal, type Journal } from '@plat/state'
import { marksOf, type PeopleTable } from '../../../admin/index.ts'
import { Approvals } from '../approvals.ts'
import type { ApprovalQuorumConfig } from '../config.ts'
import type { GrantEvent } from '../grants/events.ts'
import { Repeats } from '../grants/repeats.ts'
import { GrantStore } from '../grants/store.ts'
import { type ApprovalRule, QuorumFloor } from '../quorum/quorum.ts'
import { createApprovalStage } from '../stage.ts'
import type { ApprovalEvent } from '../store/events.ts'
import type { Heldable } from './call.ts'

export interface Setup {
  readonly clock: TestClock
  readonly approvals: Approvals
  readonly stage: ReturnType<typeof createApprovalStage>
  readonly events: string[]
  readonly pending: () => number
  readonly grants: GrantStore
  readonly repeats: Repeats
  /** Records of approvals for sessions. */
  readonly records: Rec[]
}

/** Overrides of a test. */
export interface TestCallOptions {
  readonly quorum?: Partial<ApprovalQuorumConfig>
  readonly approvalRules?: readonly ApprovalRule[]
  /** Current approval rules; a test can change them. */
  readonly now?: { approvalRules?: readonly ApprovalRule[] }
  readonly people?: PeopleTable
  readonly canPromptUsers?: boolean
  /** `approvalPreview.maxBytes`; default 100. */
  readonly previewBytes?: number
  readonly hasEnded?: () => boolean
  /** Whether anyone may currently approve. */
  readonly mayApprove?: () => boolean
  /** Called with each record of an approval for a session, before it is durable. */
  readonly recorded?: (rec: Rec) => Promise<void>
  readonly grantJournal?: Journal<GrantEvent>
}

export async function setup(
  journal: Journal<ApprovalEvent> | null = null,
  clock: TestClock = new TestClock(),
  options: TestCallOptions = {},
): Promise<Setup> {
  const events: string[] = []
  let pending = 0
  const faults: unknown[] = []
  const approvals = await Approvals.open({
    journal: journal ?? createMemoryJournal(() => clock.now()),
    clock,
    ids: systemIds(clock),
    timeoutMs: 300_000,
    preview: { mode: 'full', maxBytes: options.previewBytes ?? 100, maxStoredBytes: 0 },
    floor: new QuorumFloor({ default: { minApprovers: 1, approverGroups: [] }, rules: {}, ...options.quorum }),
    personOf: (user) => marksOf({ names: [user], subject: null }, options.people ?? {}),
    approvalRules: () => options.now?.approvalRules ?? options.approvalRules ?? [],
    canPromptUsers: options.canPromptUsers ?? false,
    onEvent: (event) => events.push(event.t),
    onPending(count) {
      pending = count
    },
    onFault: (error) => faults.push(error),
  })
  const { store, repeats, records } = await repeatsOf(approvals, clock, options)
  return {
    clock,
    approvals,
    events,
    pending: () => pending,
    stage: createApprovalStage(approvals, repeats, (e) => faults.push(e)),
    grants: store,
    repeats,
    records,
  }
}

async function repeatsOf(approvals: Approvals, clock: TestClock, options: TestCallOptions) {
  const { now, hasEnded, mayApprove, grantJournal, recorded } = options
  const records: Rec[] = []
  const onFault = (error: unknown) => {
    throw error
  }
  const journal = grantJournal ?? createMemoryJournal<GrantEvent>(() => clock.now())
  const store = await GrantStore.open({ journal, onFault, onChange() {} })
  const approvalRules = () => now?.approvalRules ?? []
  const record = async (rec: Rec) => {
    records.push(rec)
    await recorded?.(rec)
  }
  const repeats = new Repeats({ ...{ store, approvals, clock, record, onFault, approvalRules }, hasEnded, mayApprove })
  return { store, repeats, records }
}

export const yes = { by: 'ada', person: ['name:ada'], groups: [], verdict: 'approve', reason: '' } as const
export const no = { by: 'ada', person: ['name:ada'], groups: [], verdict: 'deny', reason: 'not today' } as const

/** Pauses a call; fails if the stage does not. */
export async function held({ stage }: Setup, call: Heldable) {
  const verdict = await stage.admit(call)
  assert.ok('until' in verdict, JSON.stringify(verdict))
  return verdict
}
