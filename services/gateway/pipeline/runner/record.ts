import { hash } from 'node:crypto'
import type { Rec } from '@plat/ledger'
import type { HoldItem } from '@plat/state'
import {
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
import type { GovernedCall } from './call.ts'

// The members of these records are the ledger line format: absent beats null, so nulls become undefined. Nested members stand
// in canonical order, so that the ledger need not sort them. Each record is one literal: an object that is spread into another
// grows member by member, which costs more than what stands in it.

/** What an allowed call is about to do: durable before anything is forwarded. */
export function intentRecord(call: GovernedCall, revision: string): Rec {
  return openingRecord(call, null, revision)
}

/** A refusal before anything was forwarded. */
export function decisionRecord(call: GovernedCall, denial: Denial, revision: string): Rec {
  return openingRecord(call, denial, revision)
}

/** Whether the call may go on. */
function openingRecord(call: GovernedCall, denial: Denial | null, revision: string): Rec {
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
    // The name may be what the call was refused for.
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
  }
}

function heldItem({ amount, cap, key, unit, window }: HoldItem) {
  return { amount, cap, key, unit, window }
}

/** How the call ended: one per call. */
export function outcomeRecord(call: GovernedCall, outcome: Outcome, denial: Denial | null, more: OutcomeParts): Rec {
  const { usage } = outcome
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
    // An upstream that failed and a call that was cut have a code as well, but were allowed.
    action: outcome.result === 'denied' ? 'deny' : decision.action,
    engines,
    wouldBe,
    result: outcome.result,
    status: outcome.status,
    ms: Math.round(more.ms),
    upstreamMs: Math.round(outcome.upstreamMs),
    usage: usage === null ? undefined : inOrder(usage),
    usageSource: outcome.usageSource,
    costMicros,
    currency,
    priceId,
    settled,
    route: model ? target.key : undefined,
    model: model ? (target.tool ?? undefined) : undefined,
    maxTokens: call.body?.maxTokens ?? undefined,
    endpoint: outcome.attempts.at(-1)?.endpoint,
    energy: model ? more.estimate?.(call, outcome) : undefined,
    attempts: outcome.attempts.map(({ endpoint, ms, status }) => ({ endpoint, ms: Math.round(ms), status })),
    frames: outcome.frames,
    bytesUp: outcome.bytesUp,
    bytesDown: outcome.bytesDown,
    taintsAdded: labelsOf(call.markings, 'added'),
    taintsCleared: labelsOf(call.markings, 'cleared'),
    parent: call.plan.row.parent ? (call.parent ?? undefined) : undefined,
  }
}

/** Each label once; undefined: none, as for nearly every call. */
function labelsOf(markings: readonly Marking[], change: 'added' | 'cleared'): readonly string[] | undefined {
  if (markings.length === 0) return undefined
  const labels = new Set(markings.flatMap((marking) => marking[change]))
  return labels.size === 0 ? undefined : [...labels]
}

function inOrder({ cachedRead, cachedWrite, completion, prompt, reasoning }: Usage) {
  return { cachedRead, cachedWrite, completion, prompt, reasoning }
}

/** What was held for the call says what it cost: a call that broke off has no other bill. */
function money({ facts: { hold }, snapshot }: GovernedCall, { costMicros }: Outcome, pricesOf: OutcomeParts['prices']) {
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

/** The prices that a call was admitted by. */
export interface Prices {
  readonly id: string
  /** ISO 4217. */
  readonly currency: string
}

/** Energy and carbon of a call, as its record tells them: members in canonical order. */
export type EnergyEstimate = Exclude<Rec['energy'], undefined>

/** What an outcome does not say itself. */
export interface OutcomeParts {
  readonly revision: string
  /** The prices of a snapshot; absent: nothing has a price. */
  readonly prices: ((snapshot: Snapshot) => Prices) | undefined
  /** What the call of a model took of energy; absent: nobody estimates. */
  readonly estimate: ((call: Call<'target'>, outcome: Outcome) => EnergyEstimate | undefined) | undefined
  /** Milliseconds from the arrival to the end. */
  readonly ms: number
}

/** What an upstream asks of the caller in the middle of a call: durable before the caller sees it. */
export function messageRecord(call: GovernedCall, { method, args }: Message): Rec {
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
  }
}

/** A refusal of a request that the plane could not read: what is known is who called. */
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

/** Worked out once a pass. */
function commonFieldsOf(call: GovernedCall): CommonFields {
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

/** Who called what: the part that the intent and the outcome of a call share. */
export type CommonFields = ReturnType<typeof composeCommonFields>

function composeCommonFields(call: GovernedCall) {
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

/** Who spoke beside the rules, and what policies that are only tried out would have said. */
function otherVerdicts({ engines, wouldBe }: Decision) {
  const [first] = engines
  const rulesAlone = engines.length === 0 || (engines.length === 1 && first?.name === 'native')
  if (rulesAlone && wouldBe.length === 0) return RULES_ALONE
  return {
    engines: rulesAlone ? undefined : engines.map(({ action, name }) => ({ action, name })),
    wouldBe: wouldBe.length === 0 ? undefined : wouldBe.map(({ action, policy }) => ({ action, policy })),
  }
}

/** `revision` is that of the policies in force, for a call that was refused before or by them. */
function verdict(decision: Decision | null, denial: Denial | null, revision: string) {
  return {
    policy: denial?.policy ?? decision?.policy ?? undefined,
    rule: denial?.rule ?? decision?.rule ?? undefined,
    reason: denial?.reason ?? decision?.reason,
    code: denial?.code,
    policyRevision: decision?.revision || revision || undefined,
  }
}
