import { hash } from 'node:crypto'
import type { Rec } from '@plat/ledger'
import type { HoldItem } from '@plat/state'
import {
  type Body,
  type Call,
  type Decision,
  type Denial,
  type Identity,
  type Message,
  type Outcome,
  type RequestContext,
  type Snapshot,
  type Target,
  type Usage,
  unresolved,
} from '../../call/index.ts'
import type { Marking } from '../stage.ts'
import type { DlpTally } from './dlp-tally.ts'

// The members of these records are the ledger's line format. An unknown member is absent, not null, so nulls become undefined.
// Nested members are in canonical order, so that the ledger need not sort them. Each record is one object literal, because a spread
// adds members one by one, which is slower.

/** The part of a call that its records are made of. */
export interface RecordedCall extends Call<'target' | 'taints' | 'decision' | 'hold'> {
  readonly identity: Identity
  readonly plan: { readonly row: { readonly parent: boolean } }
  readonly received: Body | null
  readonly markings: readonly Marking[]
  readonly dlp: DlpTally | null
  /** Fields that all records of this pass share; null until the first record. */
  described: CommonFields | null
}

/** The intent of an allowed call, made durable before the call is forwarded. */
export function intentRecord(call: RecordedCall, revision: string): Rec {
  return openingRecord(call, null, revision)
}

/** The record of a call that was refused before it was forwarded. */
export function decisionRecord(call: RecordedCall, denial: Denial, revision: string): Rec {
  return openingRecord(call, denial, revision)
}

/** The intent, or with `denial` the decision that refused the call. */
function openingRecord(call: RecordedCall, denial: Denial | null, revision: string): Rec {
  const { decision, hold } = call.facts
  const known = commonFieldsOf(call)
  const { policy, rule, reason, code, policyRevision } = verdict(decision, denial, revision)
  const { engines, wouldBe } = otherVerdicts(denial?.decision ?? decision)
  return {
    kind: denial === null ? 'intent' : 'decision',
    call: known.call,
    session: known.session,
    namespace: known.namespace,
    agent: known.agent,
    user: known.user,
    jti: known.jti,
    traceId: known.traceId,
    spanId: known.spanId,
    op: known.op,
    server: known.server,
    // The name itself may be the reason of the refusal.
    tool: denial?.data?.unnamed === true ? undefined : known.tool,
    method: known.method,
    argsSha256: known.argsSha256,
    argsBytes: known.argsBytes,
    facts: known.facts,
    policy,
    rule,
    reason,
    code,
    policyRevision,
    action: denial === null ? decision.action : 'deny',
    engines,
    wouldBe,
    holds: denial === null ? hold?.items.map(heldItem) : undefined,
    dlp: call.dlp?.counts,
  }
}

function heldItem({ amount, cap, key, unit, window }: HoldItem) {
  return { amount, cap, key, unit, window }
}

export function outcomeRecord(call: RecordedCall, outcome: Outcome, denial: Denial | null, more: OutcomeParts): Rec {
  const { decision, target } = call.facts
  const model = target.kind === 'model'
  const known = commonFieldsOf(call)
  const { policy, rule, reason, code, policyRevision } = verdict(decision, denial, more.revision)
  const { engines, wouldBe } = otherVerdicts(denial?.decision ?? decision)
  const { costMicros, currency, priceId, settled } = money(call, outcome, more.prices)
  return {
    kind: 'outcome',
    call: known.call,
    session: known.session,
    namespace: known.namespace,
    agent: known.agent,
    user: known.user,
    jti: known.jti,
    traceId: known.traceId,
    spanId: known.spanId,
    op: known.op,
    server: known.server,
    tool: known.tool,
    method: known.method,
    argsSha256: known.argsSha256,
    argsBytes: known.argsBytes,
    facts: known.facts,
    policy,
    rule,
    reason,
    code,
    policyRevision,
    // A call that failed upstream or was cut also has a code, but was allowed.
    action: outcome.result === 'denied' ? 'deny' : decision.action,
    engines,
    wouldBe,
    result: outcome.result,
    status: outcome.status,
    ms: Math.round(more.ms),
    upstreamMs: Math.round(outcome.upstreamMs),
    usage: outcome.usage === null ? undefined : inOrder(outcome.usage),
    usageSource: outcome.usageSource,
    costMicros,
    currency,
    priceId,
    settled,
    route: model ? target.key : undefined,
    model: model ? (target.tool ?? undefined) : undefined,
    maxTokens: call.body?.maxTokens ?? undefined,
    media: outcome.media === undefined ? undefined : { count: outcome.media.count, unit: outcome.media.unit },
    batch: batchIn(outcome),
    endpoint: outcome.attempts.at(-1)?.endpoint,
    energy: model ? more.estimate?.(call, outcome) : undefined,
    attempts: outcome.attempts.map(({ endpoint, ms, status }) => ({ endpoint, ms: Math.round(ms), status })),
    frames: outcome.frames,
    bytesUp: outcome.bytesUp,
    bytesDown: outcome.bytesDown,
    dlp: call.dlp?.counts,
    taintsAdded: labelsOf(call.markings, 'added'),
    taintsCleared: labelsOf(call.markings, 'cleared'),
    parent: call.plan.row.parent ? (call.parent ?? undefined) : undefined,
  }
}

function batchIn({ batch }: Outcome) {
  return batch === undefined ? undefined : { id: batch.id, requests: batch.requests, sha256: batch.sha256 }
}

/** Returns each label once, or undefined if there is none. */
function labelsOf(markings: readonly Marking[], change: 'added' | 'cleared'): readonly string[] | undefined {
  if (markings.length === 0) return undefined
  const labels = new Set(markings.flatMap((marking) => marking[change]))
  return labels.size === 0 ? undefined : [...labels]
}

function inOrder({ cachedRead, cachedWrite, completion, prompt, reasoning }: Usage) {
  return { cachedRead, cachedWrite, completion, prompt, reasoning }
}

/** Cost of the call: the amount settled from its hold, if there is one, since an interrupted call has no other cost. */
function money({ facts: { hold }, snapshot }: RecordedCall, { costMicros }: Outcome, pricesOf: OutcomeParts['prices']) {
  const settled = hold?.settled ?? null
  const held = settled === null ? undefined : hold?.items.find((item) => item.unit === 'micros')
  const spent = held === undefined ? costMicros : (settled?.get(held.key) ?? costMicros)
  const prices = spent > 0 ? pricesOf?.(snapshot) : undefined
  return {
    costMicros: spent,
    currency: prices?.currency,
    priceId: prices?.id,
    settled: settled === null ? undefined : Object.fromEntries(settled),
  }
}

/** The price list that was in force for a call. */
export interface Prices {
  readonly id: string
  /** ISO 4217. */
  readonly currency: string
}

/** Energy and carbon of a call in its record, members in canonical order. */
export type EnergyEstimate = Exclude<Rec['energy'], undefined>

/** Inputs of an outcome record that are not in the outcome. */
export interface OutcomeParts {
  readonly revision: string
  /** Returns the prices of a snapshot; undefined: no prices are configured. */
  readonly prices: ((snapshot: Snapshot) => Prices) | undefined
  /** Estimates the energy of a model call; undefined: no estimate is recorded. */
  readonly estimate: ((call: Call<'target'>, outcome: Outcome) => EnergyEstimate | undefined) | undefined
  /** Milliseconds from the request to the end of the call. */
  readonly ms: number
}

/** A request of the upstream to the caller during a call, or a changed status of a task, made durable before it is sent to the caller. */
export function messageRecord(call: RecordedCall, { method, args, task }: Message): Rec {
  const { target } = call.facts
  return {
    kind: 'message',
    ...callerFields(call.id, call.identity),
    op: call.operation,
    server: target.server,
    tool: target.tool ?? undefined,
    method,
    argsSha256: args === null ? undefined : hash('sha256', args, 'hex'),
    argsBytes: args?.byteLength,
    task,
  }
}

/** The refusal of a request that the plane could not read: only the caller is known. */
export function unreadRecord({ id, wire }: RequestContext, identity: Identity, denial: Denial, revision: string): Rec {
  return {
    kind: 'decision',
    ...callerFields(id, identity),
    traceId: wire.trace?.traceId,
    spanId: wire.trace?.spanId,
    facts: knownFacts(identity, null, undefined),
    ...verdict(null, denial, revision),
    action: 'deny',
  }
}

/** Returns the common fields, composed once per pass. */
function commonFieldsOf(call: RecordedCall): CommonFields {
  call.described ??= composeCommonFields(call)
  return call.described
}

function callerFields(call: string, identity: Identity) {
  return {
    call,
    session: identity.session,
    namespace: identity.namespace,
    agent: identity.agent,
    user: identity.user ?? undefined,
    jti: identity.jti,
  }
}

/** Fields that the intent and the outcome of a call share. */
export type CommonFields = ReturnType<typeof composeCommonFields>

function composeCommonFields(call: RecordedCall) {
  const { target, taints } = call.facts
  const known = target !== unresolved
  const args = call.received?.args ?? null
  const { session, namespace, agent, user, jti } = call.identity
  const { trace } = call.wire
  return {
    call: call.id,
    session,
    namespace,
    agent,
    user: user ?? undefined,
    jti,
    traceId: trace?.traceId,
    spanId: trace?.spanId,
    op: call.operation,
    server: known ? target.server : call.server,
    tool: (known ? target.tool : null) ?? call.name ?? undefined,
    method: call.method,
    argsSha256: args === null ? undefined : hash('sha256', args, 'hex'),
    argsBytes: args?.byteLength,
    facts: knownFacts(call.identity, known ? target : null, taints.labels),
  }
}

function knownFacts(identity: Identity, target: Target | null, taints: readonly string[] | undefined) {
  return {
    chain: identity.chain,
    dataClass: target?.dataClass,
    groups: identity.groups,
    jurisdiction: target?.jurisdiction ?? undefined,
    scopes: [...identity.scopes],
    taints,
    tier: identity.tier,
    trust: target?.trust,
    verified: identity.verified ?? undefined,
  }
}

const RULES_ALONE = { engines: undefined, wouldBe: undefined }

/** Verdicts of policy engines other than the native rules, and of policies in `dryRun`. */
function otherVerdicts({ engines, wouldBe }: Decision) {
  const [first] = engines
  const rulesAlone = engines.length === 0 || (engines.length === 1 && first?.name === 'native')
  if (rulesAlone && wouldBe.length === 0) return RULES_ALONE
  return {
    engines: rulesAlone ? undefined : engines.map(({ action, name }) => ({ action, name })),
    wouldBe: wouldBe.length === 0 ? undefined : wouldBe.map(({ action, policy }) => ({ action, policy })),
  }
}

/** `revision` is the revision of the policies in force, used when no policy decided the call. */
function verdict(decision: Decision | null, denial: Denial | null, revision: string) {
  return {
    policy: denial?.policy ?? decision?.policy ?? undefined,
    rule: denial?.rule ?? decision?.rule ?? undefined,
    reason: denial?.reason ?? decision?.reason,
    code: denial?.code,
    policyRevision: decision?.revision || revision || undefined,
  }
}
