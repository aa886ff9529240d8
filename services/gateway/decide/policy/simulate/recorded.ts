import { isObject } from '@plat/core'
import {
  type Decision,
  type ErrorCode,
  type Identity,
  isUsageBesideCalls,
  type Operation,
  type Target,
} from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'
import type { SimulatedCall } from './view.ts'

type Rec = Readonly<Record<string, unknown>>

/** Present properties of a tool and its server that records lack. */
export interface CurrentTool {
  readonly sinks: readonly string[]
  /** The server's second name; null: it has none. */
  readonly alias: string | null
}

/** Returns what records lack about a server's tool, or about the server where they name no tool. */
export type CurrentToolOf = (identity: Identity, server: string, tool: string | null) => CurrentTool

/** A recorded call that policies have evaluated. */
export interface Recorded {
  /** The policy input; its arguments are `unknown` if there were any. */
  readonly input: PolicyInput
  readonly was: SimulatedCall['was']
  /** Digest of the arguments; null: none. */
  readonly argsSha256: string | null
}

/** Whether a record is the last one of a call. */
export function endsCall({ kind, op }: Rec): boolean {
  return (kind === 'outcome' || kind === 'decision') && !isUsageBesideCalls(op)
}

/**
 * Returns the policy input of a call from its last record. Null: no policy was evaluated, because the call was refused before or needed
 * none. Replies to servers are evaluated with their call.
 */
export function recorded(rec: Rec, currentOf: CurrentToolOf): Recorded | null {
  const action = judgedAs(rec)
  const { op, facts } = rec
  if (action === null || !isOperation(op) || op === 'mcp.answer' || !isObject(facts)) return null
  const identity = identityOf(rec, facts)
  const named = targetOf(rec, op, facts)
  const { server, tool } = named
  const current = named.kind === 'mcp' ? currentOf(identity, server, tool) : NOTHING_CURRENT
  const target = current.alias === null ? named : { ...named, alias: current.alias }
  const argsSha256 = textOrNull(rec.argsSha256)
  return {
    input: {
      identity,
      target,
      tool,
      operation: op,
      method: text(rec.method),
      taints: texts(facts.taints),
      sinks: tool === null ? [] : current.sinks,
      args: argsSha256 === null ? null : 'unknown',
      // Captures contain the arguments alone.
      ...(target.kind === 'mcp' && { beside: 'unknown' }),
      now: Date.parse(text(rec.at)),
    },
    was: { action, policy: textOrNull(rec.policy), rule: textOrNull(rec.rule) },
    argsSha256,
  }
}

const NOTHING_CURRENT: CurrentTool = { sinks: [], alias: null }

/** Refusal codes of policies. */
const DENIED: ReadonlySet<unknown> = new Set<ErrorCode>(['policy_denied', 'tainted_sink'])
/** Refusal codes of approvals. */
const HELD: ReadonlySet<unknown> = new Set<ErrorCode>([
  'approval_denied',
  'approval_expired',
  'approval_stale',
  'approval_pending',
])

/** Returns the recorded verdict of the policies; null: not evaluated. A call refused by a later stage had passed them. */
function judgedAs(rec: Rec): Decision['action'] | null {
  const own = ownVerdict(rec.engines)
  if (own !== null) return own
  if (rec.action === 'deny') {
    if (DENIED.has(rec.code)) return 'deny'
    if (HELD.has(rec.code)) return 'require_approval'
    return typeof rec.policy === 'string' ? 'allow' : null
  }
  if (typeof rec.policy !== 'string') return null
  return rec.action === 'allow' || rec.action === 'require_approval' ? rec.action : null
}

const STRICTNESS: readonly Decision['action'][] = ['allow', 'require_approval', 'deny']

/** With an external engine: the strictest verdict of the gateway's own policies. */
function ownVerdict(engines: unknown): Decision['action'] | null {
  if (!Array.isArray(engines)) return null
  const actions: readonly unknown[] = engines.map((one) => (isObject(one) && one.name !== 'rego' ? one.action : null))
  return STRICTNESS.findLast((action) => actions.includes(action)) ?? null
}

/** The identity as policies see it; the rest is not recorded. */
function identityOf(rec: Rec, facts: Rec): Identity {
  const { verified } = facts
  return {
    tenant: text(rec.tenant),
    trustDomain: '',
    namespace: text(rec.namespace),
    agent: text(rec.agent),
    session: text(rec.session),
    user: textOrNull(rec.user),
    groups: texts(facts.groups),
    verified: verified === 'requester' || verified === 'trustedCreator' || verified === 'idToken' ? verified : null,
    tier: text(facts.tier),
    scopes: new Set(texts(facts.scopes)),
    jti: text(rec.jti),
    ancestors: [],
    delegators: [],
    forkedFrom: [],
    chain: texts(facts.chain),
    expiresAt: Number.MAX_SAFE_INTEGER,
    jkt: null,
    issuer: '',
    forkRoot: null,
    inheritedTaints: [],
  }
}

function targetOf(rec: Rec, op: Operation, facts: Rec): Target {
  const server = text(rec.server)
  const kind = op.startsWith('model.') ? 'model' : op.startsWith('a2a.') ? 'a2a' : 'mcp'
  const { dataClass } = facts
  return {
    kind,
    key: kind === 'model' ? server.replace(/^llm\//, '') : server,
    server,
    tool: toolOf(op, textOrNull(rec.tool)),
    trust: facts.trust === 'trusted' ? 'trusted' : 'untrusted',
    dataClass:
      dataClass === 'public' || dataClass === 'internal' || dataClass === 'confidential' ? dataClass : 'restricted',
    jurisdiction: textOrNull(facts.jurisdiction),
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  }
}

/** Records name the called object; for policies a resource, a prompt and a message without a skill are not tools. */
function toolOf(op: Operation, name: string | null): string | null {
  if (op === 'mcp.get') return null
  return op.startsWith('a2a.') && name?.startsWith('skill:') !== true ? null : name
}

/** A ledger of a later version may have unknown operations, which are skipped. */
function isOperation(op: unknown): op is Operation {
  return typeof op === 'string' && JUDGED.has(op)
}

const JUDGED: ReadonlySet<string> = new Set<Operation>([
  ...(['mcp.call', 'mcp.get', 'a2a.send', 'a2a.task'] as const),
  ...(['model.generate', 'model.embed', 'model.image', 'model.audio', 'model.file', 'model.batch'] as const),
  ...(['exec', 'tunnel', 'infra'] as const),
])

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
