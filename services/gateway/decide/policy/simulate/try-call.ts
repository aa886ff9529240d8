import { Type } from 'typebox'
import { type Denial, type Identity, isDenial, type Target } from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'
import type { CandidateDecision } from './candidate.ts'
import { trialIdentity } from './trial-identity.ts'

const name = (maxLength = 253) => Type.String({ minLength: 1, maxLength })
const names = () => Type.Optional(Type.Array(name(), { maxItems: 64 }))

/** Body of `POST /v1/policies/try`: a `tools/call` of an agent that is not made. */
export const tryBody = Type.Object(
  {
    namespace: name(63),
    agent: name(),
    server: name(),
    tool: name(1024),
    arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    user: Type.Optional(name(1024)),
    groups: names(),
    tier: Type.Optional(name()),
    taints: names(),
    /** Format `policyFile`; absent: the policies in force. */
    policies: Type.Optional(Type.Object({})),
  },
  { additionalProperties: false },
)

const orNull = () => Type.Union([Type.String(), Type.Null()])

export const triedSchema = Type.Object({
  action: Type.Enum(['allow', 'deny', 'require_approval'], { type: 'string' }),
  code: Type.Union([Type.String(), Type.Null()], { description: 'Code of the refusal.' }),
  policy: orNull(),
  rule: orNull(),
  reason: Type.String(),
  wouldBe: Type.Array(Type.String(), { description: 'Verdicts of policies in mode `dryRun`, which do not count.' }),
})

export type Tried = Type.Static<typeof triedSchema>

export interface TryParts {
  /** The server and tool as this agent reaches them, or why it does not. */
  readonly targetOf: (identity: Identity, server: string, tool: string) => Target | Denial
  readonly judge: (input: PolicyInput) => CandidateDecision
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Judges a call by the servers in force and by policies. Scopes, rates, budgets, pins, guards and engines beside the gateway are not tried. */
export function tryCall(call: Type.Static<typeof tryBody>, { targetOf, judge, now }: TryParts): Tried {
  const { namespace, agent, server, tool, user = null, groups = [], tier = '', taints = [] } = call
  const identity = trialIdentity({ namespace, agent, tier, scopes: [`tools:${server}`], user, groups })
  const target = targetOf(identity, server, tool)
  if (isDenial(target)) return refused(target.code, target.reason)
  const { decision } = judge({
    ...{ identity, target, tool, taints, now, operation: 'mcp.call', method: 'tools/call' },
    sinks: target.labels.sinks,
    args: Buffer.from(JSON.stringify(call.arguments ?? {})),
  })
  if (decision === null) return refused('policy_denied', 'the policies did not decide')
  const { action, policy, rule, reason, code, wouldBe } = decision
  return {
    ...{ action, policy, rule, reason },
    code: action === 'deny' ? (code ?? 'policy_denied') : null,
    wouldBe: wouldBe.map((one) => `${one.policy}: ${one.action}`),
  }
}

function refused(code: string, reason: string): Tried {
  return { action: 'deny', code, policy: null, rule: null, reason, wouldBe: [] }
}
