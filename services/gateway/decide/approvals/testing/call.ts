import type { Call, Decision, Facts, Operation, Outcome } from '../../../call/index.ts'
import { Snapshots } from '../../../call/index.ts'
import type { DecidedCall } from '../decided-call.ts'
import type { createApprovalStage } from '../stage.ts'

/** Properties of a test call; all others have fixed values. */
export interface TestCallFacts {
  readonly tenant?: string
  readonly namespace?: string
  readonly agent?: string
  readonly session?: string
  readonly user?: string
  readonly issuer?: string
  readonly expiresAt?: number
  readonly operation?: Operation
  readonly method?: string
  readonly tool?: string | null
  readonly key?: string
  readonly args?: string
  readonly action?: Decision['action']
  readonly rule?: string
  readonly pin?: Facts['pin']
  readonly labels?: readonly string[]
}

/** A call under test: it can leave, start its second pass, and carry the facts of the stage. */
export interface Heldable extends DecidedCall {
  leave(reason: string): void
  /** The same call in its second pass, with a new decision. */
  again(now?: TestCallFacts): Heldable
  with(
    given: Pick<Facts, 'approval'>,
  ): Call<'identity' | 'target' | 'pin' | 'taints' | 'decision' | 'redacted' | 'approval'>
}

let count = 0
/** Both passes, typed so that either fits. */
const passes: readonly [1 | 2, 2] = [1, 2]

export function callOf(options: TestCallFacts): Heldable {
  const stop = new AbortController()
  const id = `call-${++count}`
  const call = {
    ...headOf(id, stop.signal),
    ...partsOf(options),
    leave: (reason: string) => stop.abort(reason),
    again: (now: TestCallFacts = {}) => Object.assign(call, { ...partsOf({ ...options, ...now }), pass: passes[1] }),
    with: (given: Pick<Facts, 'approval'>) => ({ ...call, facts: { ...call.facts, ...given } }),
  }
  return call
}

function headOf(id: string, signal: AbortSignal) {
  return {
    id,
    signal,
    pass: passes[0],
    wire: { method: 'POST', path: '', query: '', headers: {}, body: process.stdin, remote: '' },
    receivedAt: 0,
    snapshot: new Snapshots().current,
    retain: () => true,
    server: 'notes',
    parent: null,
  }
}

function partsOf(options: TestCallFacts) {
  const { operation = 'mcp.call', method = 'tools/call', tool = 'delete_note', args = '{"name":"a"}' } = options
  const bytes = Buffer.from(args)
  return {
    operation,
    method,
    name: tool,
    body: { bytes, args: bytes, value: null },
    facts: {
      identity: identityOf(options),
      target: targetOf(options, tool),
      pin: options.pin ?? null,
      redacted: null,
      taints: { labels: options.labels ?? [] },
      decision: decisionOf(options),
    },
  }
}

function identityOf({
  tenant = '',
  namespace = 'default',
  agent = 'a',
  session = 's',
  user = 'uma',
  issuer = 'i',
  expiresAt = Infinity,
}: TestCallFacts) {
  return {
    tenant,
    trustDomain: '',
    namespace,
    agent,
    session,
    user,
    groups: [],
    verified: null,
    tier: 'tier-0',
    scopes: new Set<string>(),
    jti: 'j',
    ancestors: [],
    delegators: [],
    forkedFrom: [],
    chain: [],
    expiresAt,
    jkt: null,
    issuer,
    forkRoot: null,
    inheritedTaints: [],
  }
}

function targetOf({ key = 'default/notes' }: TestCallFacts, tool: string | null) {
  return {
    kind: 'mcp' as const,
    key,
    server: 'notes',
    tool,
    trust: 'trusted' as const,
    dataClass: 'internal' as const,
    jurisdiction: null,
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  }
}

function decisionOf({ action = 'require_approval', rule = 'ask' }: TestCallFacts): Decision {
  return {
    action,
    policy: 'default/p',
    rule,
    ...(action === 'require_approval' && { ruleSha256: `of ${rule}` }),
    reason: 'somebody looks first',
    revision: 'sha256:r',
    engines: [],
    wouldBe: [],
    rates: [],
  }
}

/** Takes a call through the stage as the runner does: paused, granted, second pass. */
export async function ask(stage: ReturnType<typeof createApprovalStage>, call: Heldable): Promise<string> {
  const verdict = await stage.admit(call)
  if ('approval' in verdict) return 'passed'
  if (!('until' in verdict)) return 'refused'
  const answer = await verdict.until
  if (answer !== 'granted') return answer.code
  return 'approval' in (await stage.admit(call.again())) ? 'passed' : 'refused'
}

export const completed: Outcome = {
  result: 'completed',
  code: null,
  forwarded: true,
  status: 200,
  usage: null,
  usageSource: 'none',
  costMicros: 0,
  attempts: [],
  frames: 1,
  bytesUp: 0,
  bytesDown: 0,
  upstreamMs: 0,
  overheadMs: 0,
}

export const refusedBefore: Outcome = { ...completed, result: 'denied', code: 'rate_limited', forwarded: false }
