import { hash } from 'node:crypto'
import { type Clock, LruCache } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { ApprovalUse } from '../../../call/index.ts'
import type { Approvals } from '../approvals.ts'
import type { DecidedCall } from '../decided-call.ts'
import type { ApprovalsOptions } from '../options.ts'
import { isForSession } from '../quorum/ballot.ts'
import type { Approval } from '../store/events.ts'
import type { SessionGrant } from './events.ts'
import { scopeOf } from './scope.ts'
import type { GrantEntry, GrantStore } from './store.ts'

/** An approval for a session ends with the session, and at the latest after this time, in milliseconds. */
export const SESSION_GRANT_MS = 12 * 60 * 60_000
/** Approvals whose labels are remembered until they are decided: as many as can be pending. */
const QUESTIONS_MAX = 10_000

export interface RepeatsOptions extends Pick<ApprovalsOptions, 'approvalRules' | 'mayApprove' | 'hasEnded'> {
  readonly store: GrantStore
  readonly approvals: Pick<Approvals, 'get' | 'isAsked' | 'voters'>
  readonly clock: Clock
  /** Appends a record to the ledger of the tenant; rejects if it is not durable. */
  readonly record: (record: Rec, tenant: string) => Promise<unknown>
  readonly onFault: (error: unknown) => void
}

/** Approvals for the rest of a session: they begin when the approved call passes, and let later calls of the same tool pass under the same rule. */
export class Repeats {
  readonly #options: RepeatsOptions
  /** Labels of the session of each question when it was created on this replica, by the approval's id. */
  readonly #labels = new LruCache<string, readonly string[]>({ maxEntries: QUESTIONS_MAX })
  #isSweeping = false

  constructor(options: RepeatsOptions) {
    this.#options = options
  }

  /** Called when a call begins to wait for an approval. */
  noteQuestion(call: DecidedCall, id: string): void {
    if (this.#labels.get(id) === undefined) this.#labels.set(id, call.facts.taints.labels)
  }

  /**
   * Called when a call passes by its approval: if everyone who approved it did so for the session, later calls repeat it. Rejects if the
   * grant cannot be recorded or stored; then only this call passes.
   */
  async begin(call: DecidedCall, { approvalId: id }: ApprovalUse): Promise<void> {
    const { store, approvals, approvalRules, clock, record } = this.#options
    const approval = approvals.get(id)
    const known = this.#labels.get(id)
    this.#labels.delete(id)
    const { identity, target, taints } = call.facts
    // Another replica created the question: which labels the session had then is not known here.
    const labels = known ?? (taints.labels.length === 0 ? [] : null)
    const scope = scopeOf(call, approvalRules(call))
    if (approval === null || labels === null || scope === null || target.tool === null) return
    if (!isForSession(approval) || store.has(id) || store.isFull) return
    const { tenant, namespace, agent, session, user } = identity
    const { policy, rule } = approval.question
    const now = clock.now()
    const grant: SessionGrant = {
      ...{ scope, tenant, namespace, agent, session, user, server: target.server, tool: target.tool, policy, rule },
      ...{ labels: [...labels], votes: votesOf(approval), createdAt: now, expiresAt: now + SESSION_GRANT_MS },
    }
    await record(recordOf({ id, grant }, 'session_granted'), tenant)
    await store.add(id, grant)
  }

  /**
   * Returns the grant that this call repeats, recorded durably, or null. It is evaluated as an approval is when it is used: the same rule, the
   * current quorum and groups, and no label that the session did not have.
   */
  async use(call: DecidedCall): Promise<ApprovalUse | null> {
    const { store, approvals, record } = this.#options
    const entry = store.active === 0 ? null : this.#covering(call)
    if (entry === null || (await approvals.isAsked(call))) return null
    const { id, grant } = entry
    const by = grant.votes.map((vote) => vote.by)
    await record({ ...recordOf(entry, 'repeated'), ...callMembers(call), by: by.join(', ') }, grant.tenant)
    // It may have been lifted while the record was written.
    return store.get(id) === entry ? { approvalId: id, by } : null
  }

  /** Ends a grant by the decision of a person. Resolves with false if there is none. Rejects if the journal fails. */
  async lift(id: string, by: string): Promise<boolean> {
    const { store, record } = this.#options
    const entry = store.get(id)
    if (entry === null || !(await store.end(entry, { t: 'lifted', by }))) return false
    await record({ ...recordOf(entry, 'session_lifted'), by }, entry.grant.tenant)
    return true
  }

  /** Ends grants that have expired, or whose session has ended. */
  async sweep(): Promise<void> {
    const { store, clock, record, onFault } = this.#options
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      for (const entry of store.list()) {
        if (!this.#isOver(entry)) continue
        if (await store.end(entry, { t: 'ended' })) await record(recordOf(entry, 'session_ended'), entry.grant.tenant)
      }
      await store.tidy(clock.now())
    } catch (error) {
      onFault(error)
    } finally {
      this.#isSweeping = false
    }
  }

  #covering(call: DecidedCall): GrantEntry | null {
    const { store, approvals, approvalRules, mayApprove } = this.#options
    const scope = scopeOf(call, approvalRules(call))
    const entry = scope === null ? null : store.find(scope)
    if (entry === null || this.#isOver(entry)) return null
    const { labels, votes, user } = entry.grant
    if (call.facts.taints.labels.some((label) => !labels.includes(label))) return null
    if (votes.some(({ by, groups = [] }) => mayApprove?.({ by, groups }) === false)) return null
    const quorum = approvals.voters.quorumOf(call)
    const isMet = typeof quorum !== 'string' && quorum.userConfirmation === undefined
    return isMet && approvals.voters.satisfy(quorum, { votes }, user) ? entry : null
  }

  #isOver({ grant }: GrantEntry): boolean {
    const { clock, hasEnded } = this.#options
    return grant.expiresAt <= clock.now() || hasEnded?.(grant) === true
  }
}

function votesOf({ votes }: Approval): SessionGrant['votes'] {
  return votes.filter(({ verdict }) => verdict === 'approve')
}

/** The `approval` record of a grant; those who gave it are in the records of the approval. */
function recordOf({ id, grant }: Pick<GrantEntry, 'id' | 'grant'>, event: string): Rec {
  const { namespace, agent, session, user, server, tool, policy, rule } = grant
  return {
    ...{ kind: 'approval', approval: id, event, session, namespace, agent, user: user ?? undefined, server, tool },
    ...{ policy: policy ?? undefined, rule: rule ?? undefined },
  }
}

function callMembers({ id, method, body, facts: { decision } }: DecidedCall) {
  const args = body?.args ?? null
  return {
    ...{ call: id, method, policyRevision: decision.revision, argsBytes: args?.byteLength ?? 0 },
    argsSha256: args === null ? undefined : hash('sha256', args, 'hex'),
  }
}
