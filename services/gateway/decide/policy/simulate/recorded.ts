import { isObject } from '@plat/tokens'
import type { Decision, ErrorCode, Identity, Operation, Target } from '../../../call/index.ts'
import { SANDBOX_USAGE } from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'
import type { SimulatedCall } from './view.ts'

type Rec = Readonly<Record<string, unknown>>

/** What a tool of a server can carry data out to, as far as the gateway knows now. */
export type SinksOf = (identity: Identity, server: string, tool: string) => readonly string[]

/** A recorded call that policies have judged. */
export interface Recorded {
  /** What they were asked; its arguments are `unknown` where there were any. */
  readonly input: PolicyInput
  readonly was: SimulatedCall['was']
  /** Of the arguments; null: there were none. */
  readonly argsSha256: string | null
}

/** Is this the last record of a call? */
export function endsCall({ kind, op }: Rec): boolean {
  return (kind === 'outcome' || kind === 'decision') && op !== SANDBOX_USAGE
}

/**
 * The question that a call asked, from its last record. Null: no policy was asked, because the call was refused before, or needed none. An
 * answer to what a server asked is judged with the call that it belongs to.
 */
export function recorded(rec: Rec, sinksOf: SinksOf): Recorded | null {
  const action = judgedAs(rec)
  const { op, facts } = rec
  if (action === null || !isOperation(op) || op === 'mcp.answer' || !isObject(facts)) return null
  const identity = identityOf(rec, facts)
  const target = targetOf(rec, op, facts)
  const { server, tool } = target
  const argsSha256 = textOrNull(rec.argsSha256)
  return {
    input: {
      identity,
      target,
      tool,
      operation: op,
      method: text(rec.method),
      taints: texts(facts.taints),
      sinks: tool === null || target.kind !== 'mcp' ? [] : sinksOf(identity, server, tool),
      args: argsSha256 === null ? null : 'unknown',
      // Captures hold the arguments alone.
      ...(target.kind === 'mcp' && { beside: 'unknown' }),
      now: Date.parse(text(rec.at)),
    },
    was: { action, policy: textOrNull(rec.policy), rule: textOrNull(rec.rule) },
    argsSha256,
  }
}

/** Refusals that are a policy's own. */
const DENIED: ReadonlySet<unknown> = new Set<ErrorCode>(['policy_denied', 'tainted_sink'])
/** Refusals of those who were to approve. */
const HELD: ReadonlySet<unknown> = new Set<ErrorCode>([
  'approval_denied',
  'approval_expired',
  'approval_stale',
  'approval_pending',
])

/** What the policies said; null: nobody asked them. A call that something after them refused had passed them. */
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

/** Where an engine beside the gateway spoke too: what the gateway's own said, of which the strictest counts. */
function ownVerdict(engines: unknown): Decision['action'] | null {
  if (!Array.isArray(engines)) return null
  const said: readonly unknown[] = engines.map((one) => (isObject(one) && one.name !== 'rego' ? one.action : null))
  return STRICTNESS.findLast((action) => said.includes(action)) ?? null
}

/** What policies can ask of a caller; the rest of an identity is not recorded. */
function identityOf(rec: Rec, facts: Rec): Identity {
  const { verified } = facts
  return {
    tenant: '',
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

/** Records name what was called; to policies a resource, a prompt and a message without a skill are no tool. */
function toolOf(op: Operation, name: string | null): string | null {
  if (op === 'mcp.get') return null
  return op.startsWith('a2a.') && name?.startsWith('skill:') !== true ? null : name
}

/** A ledger of a later version may tell of others: those are not understood. */
function isOperation(op: unknown): op is Operation {
  return typeof op === 'string' && JUDGED.has(op)
}

const JUDGED: ReadonlySet<string> = new Set<Operation>([
  ...(['mcp.call', 'mcp.get', 'model.generate', 'model.embed', 'a2a.send', 'a2a.task'] as const),
  ...(['exec', 'tunnel', 'liveview', 'infra'] as const),
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
