// @table: advice by code.
import { rfc3339 } from '@plat/core'
import { type Denial, type ErrorCode, errorTable } from '../../call/index.ts'

/** Largest text of a refused call, in characters: a model pays for each, and programs read the reason. */
export const TEXT_MAX_CHARS = { tool: 300, model: 500 } as const
/** Longer names of tools and models are shortened. */
const NAME_MAX_CHARS = 48
/** Waits up to this are given in seconds, longer ones as a time. */
const SHORT_WAIT_MS = 600_000

/** Progress of a refused call: `builtin`: a server of the gateway has it; `upstream`: it was sent to a server. */
export type Progress = 'unsent' | 'builtin' | 'upstream'

const NEVER = 'Do not repeat this call'
const FIX = 'Correct the call before you repeat it.'
const ONCE = 'You may repeat the call once.'

/** Advice by code: a remedy, and whether to repeat the call. A known wait is appended to it. */
const ADVICE: Readonly<Record<ErrorCode, string>> = {
  invalid_request: FIX,
  header_mismatch: FIX,
  unsupported_version: FIX,
  unauthenticated: `${NEVER}: the session needs a new token.`,
  dpop_required: `${NEVER}: the session needs a bound token.`,
  invalid_dpop_proof: `${NEVER}: the session needs a new proof.`,
  insufficient_scope: `${NEVER}: the session lacks a scope.`,
  revoked: `${NEVER}: an administrator ended this access.`,
  suspended: `${NEVER} until an administrator resumes this access.`,
  policy_denied: `${NEVER} as it is: the policy's owner can change this.`,
  approval_denied: `${NEVER} unless the user requests it.`,
  approval_expired: 'Repeat the call to request a new approval.',
  approval_stale: 'Repeat the call to request a new approval.',
  dlp_denied: 'Do not repeat it with this data: leave the data out.',
  guard_blocked: `${NEVER}: its content was classified as harmful.`,
  tainted_sink: `${NEVER} in this session: it has read content that is not trusted.`,
  tool_pin_mismatch: `${NEVER} until an administrator has accepted the tool's new definition.`,
  residency_denied: `${NEVER}: the data must not go there.`,
  provider_hosted_tool: `${NEVER}: this hosted tool is not allowed.`,
  caller_not_allowed: `${NEVER}: this agent may not call it.`,
  delegation_too_deep: `${NEVER}: too many agents are in the chain.`,
  model_not_allowed: `${NEVER}: use another model.`,
  price_unknown: `${NEVER} until an administrator has set a price.`,
  offline: `${NEVER} until the gateway is connected again.`,
  forbidden: `${NEVER}.`,
  unknown_server: `${NEVER}: list the servers of this agent.`,
  unknown_tool: `${NEVER}: list the tools again.`,
  unknown_skill: `${NEVER}: read the agent's card again.`,
  unknown_route: `${NEVER}: list the models.`,
  unknown_agent: `${NEVER}: list the agents.`,
  unknown_session: 'Start a new MCP session, then repeat the call.',
  unknown_method: `${NEVER}.`,
  not_found: `${NEVER}: nothing has this name.`,
  method_not_allowed: `${NEVER}.`,
  request_timeout: ONCE,
  ambiguous_server: `${NEVER}: an administrator must bind one of these servers.`,
  conflict: 'Read the current state before you repeat it.',
  body_too_large: 'Send less.',
  unsupported_media_type: FIX,
  budget_exceeded: 'A larger budget would help.',
  rate_limited: 'Call less often.',
  backlog_full: 'Repeat the call later.',
  internal: ONCE,
  not_built: `${NEVER}.`,
  upstream_error: ONCE,
  upstream_credential: 'Repeat it once the account or the credential of this server is renewed.',
  guard_unavailable: 'Repeat the call later.',
  revocations_unavailable: 'Repeat the call later.',
  audit_unavailable: 'Repeat the call later.',
  state_unavailable: 'Repeat the call later.',
  approval_pending: 'Nothing runs before you do.',
  overloaded: 'Repeat the call later.',
  upstream_timeout: ONCE,
}

/** Refusals of a response: the tool has run. */
const WITHHELD: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['dlp_denied', 'guard_blocked', 'guard_unavailable'])
/** Refusals while forwarding before the server has processed the call. */
const NOT_PROCESSED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'unknown_server',
  'unknown_session',
  'upstream_credential',
  'rate_limited',
  'residency_denied',
])
/** Failures of which it is not known whether the call was processed before. */
const FAILURES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['internal', 'upstream_error', 'upstream_timeout'])

/** The refused tool or model (null: the request named none). */
export type RefusedSubject =
  | { readonly kind: 'tool'; readonly name: string }
  | { readonly kind: 'model'; readonly name: string | null }

/** A refused call. `now`: milliseconds since the epoch. */
export interface RefusedCall {
  readonly subject: RefusedSubject
  readonly denial: Denial
  readonly decisionId: string
  readonly progress: Progress
  readonly now: number
}

/**
 * Returns one short text for a model or a person: what was refused, why, what would help, whether to repeat the call, and the decision id.
 * Holds nothing of the arguments.
 */
export function textOf({ subject, denial, decisionId, progress, now }: RefusedCall): string {
  const [before, after] = framed(subject, runOf(subject, denial, progress))
  const advice = [adviceOf(denial), waitOf(denial, now)].filter((part) => part !== '').join(' ')
  const rest = `${after} ${advice} Decision ${decisionId}.`
  const room = TEXT_MAX_CHARS[subject.kind] - before.length - rest.length - 1
  const reason = printable(denial.reason, room)
  return `${before}${reason}${/[.!?…]$/.test(reason) ? '' : '.'}${rest}`
}

/** Returns the text before and after the reason. */
function framed({ kind, name }: RefusedSubject, run: Run): readonly [string, string] {
  if (kind === 'model')
    return [`The ${name === null ? 'model call' : `call of ${shortened(name)}`} ${MODEL[run]}: `, '']
  const tool = shortened(name)
  if (run === 'no') return [`${tool} was not run: `, '']
  if (run === 'withheld') return [`The result of ${tool} is withheld: `, ' It has run.']
  return [`${tool} failed: `, ' It may have run: check that first.']
}

function shortened(name: string): string {
  return printable(name, NAME_MAX_CHARS)
}

const MODEL: Readonly<Record<Run, string>> = {
  no: 'was refused',
  maybe: 'failed',
  withheld: 'has a response that is withheld',
}

type Run = 'no' | 'maybe' | 'withheld'

function runOf({ kind }: RefusedSubject, { code, unsent }: Denial, progress: Progress): Run {
  if (progress === 'unsent' || NOT_PROCESSED.has(code)) return 'no'
  // A call of a model may have failed at other endpoints before.
  if (unsent === true && kind === 'tool') return 'no'
  if (FAILURES.has(code)) return 'maybe'
  if (WITHHELD.has(code)) return 'withheld'
  return progress === 'upstream' ? 'maybe' : 'no'
}

function adviceOf({ code, data }: Denial): string {
  const url = data?.connectURL
  return code === 'upstream_credential' && typeof url === 'string' && url.length <= 100
    ? `The user can connect an account at ${url}; then repeat the call.`
    : ADVICE[code]
}

function waitOf({ code, retryAfterMs }: Denial, now: number): string {
  if (code === 'approval_pending') return ''
  if (retryAfterMs === null) return errorTable[code].status === 429 && code !== 'backlog_full' ? `${NEVER} now.` : ''
  return retryAfterMs <= SHORT_WAIT_MS
    ? `Repeat the call in ${secondsOf(retryAfterMs)} s.`
    : `Repeat the call after ${rfc3339(now + retryAfterMs)}.`
}

/** Returns a wait in whole seconds, as `Retry-After`. */
export function secondsOf(ms: number): number {
  return Math.ceil(ms / 1000)
}

/** Shortens the text to this many characters, on one line without control characters. */
function printable(text: string, maxChars: number): string {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : text
  return cut.replace(/[\s\p{Cc}]+/gu, ' ')
}
