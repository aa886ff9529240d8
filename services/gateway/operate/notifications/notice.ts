import { hash } from 'node:crypto'
import { rfc3339 } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { type Static, Type } from 'typebox'

/** Returns an approval as the admin API presents it, or null if the id is unknown. */
export type ApprovalOf = (id: string) => ApprovalView | null

/** Events with notifications (`notifiers[].events`). */
export const NOTICE_TYPES = [
  'approval.created',
  'approval.approved',
  'approval.denied',
  'approval.expired',
  'approval.cancelled',
  'budget.threshold',
  'revocation.created',
  'revocation.lifted',
  'pin.drift',
  'audit.unavailable',
] as const

export type NoticeType = (typeof NOTICE_TYPES)[number]

/** Maximum length of a fact, in characters; longer ones end in an ellipsis. Arguments are never cut: see `arguments`. */
const FACT_MAX_CHARS = 500

/** A notification. Names, texts and previews in it come from agents: targets present them as plain text. */
export const noticeSchema = Type.Object(
  {
    /** Equal for repeated deliveries, also after a crash: receivers drop duplicates. */
    id: Type.String(),
    type: Type.Enum(NOTICE_TYPES),
    /** RFC 3339. */
    at: Type.String(),
    /** Id of the approval, or null. */
    approval: Type.Union([Type.String(), Type.Null()]),
    title: Type.String(),
    /** Name and value. */
    facts: Type.Array(Type.Tuple([Type.String(), Type.String()])),
    /** Arguments of the call, as approvers may see them. `cut`: the preview is only the beginning. */
    arguments: Type.Optional(
      Type.Object({ text: Type.String(), cut: Type.Boolean() }, { additionalProperties: false }),
    ),
    /** For programs. */
    data: Type.Record(Type.String(), Type.Unknown()),
  },
  { additionalProperties: false },
)

export type Notice = Readonly<Static<typeof noticeSchema>>

/** Returns whether a person must decide: such notices are delivered first. */
export function isApproval({ type }: Notice): boolean {
  return type.startsWith('approval.')
}

/** Members of an approval of the admin API that notices use. */
export interface ApprovalView {
  readonly id: string
  readonly session: string
  readonly namespace: string
  readonly agent: string
  readonly user: string | null
  readonly server: string
  readonly tool: string | null
  readonly method: string
  readonly policy: string | null
  readonly rule: string | null
  readonly reason: string
  readonly argsBytes: number
  /** Null if `approvalPreview.mode` is `none`, or there are no arguments. */
  readonly preview: { readonly text: string; readonly truncated: boolean } | null
  readonly quorum: {
    readonly needed: number
    readonly given: number
    readonly approverGroups: readonly string[]
    readonly votes: readonly { readonly by: string; readonly verdict: string; readonly reason: string }[]
  }
  readonly expiresAt: string
}

/** Returns the notice of a ledger record, or null if it has none. `at`: time of a record that is still being written. */
export function noticeOf(rec: Rec, approvalOf: (id: string) => ApprovalView | null, at: number): Notice | null {
  const notice = rec.kind === 'approval' ? ofApproval(rec, approvalOf) : ofOther(rec)
  return notice === null ? null : { ...notice, at: textOf(rec.at) ?? rfc3339(at) }
}

/** Notice of a ledger that cannot be written. `id`: unique for each occurrence. */
export function auditNotice(reason: string, { id, at }: { readonly id: string; readonly at: number }): Notice {
  return {
    id,
    type: 'audit.unavailable',
    at: rfc3339(at),
    approval: null,
    title: 'The audit ledger cannot be written',
    facts: facts({ why: reason }),
    data: { reason },
  }
}

type NoticeFacts = Omit<Notice, 'at'>

const APPROVAL_EVENTS: ReadonlyMap<unknown, readonly [NoticeType, string]> = new Map([
  ['created', ['approval.created', 'Approval needed']],
  ['granted', ['approval.approved', 'Approved']],
  ['denied', ['approval.denied', 'Denied']],
  ['expired', ['approval.expired', 'Not decided in time']],
  ['cancelled', ['approval.cancelled', 'Withdrawn']],
] as const)

/** Returns the id of the notice of an approval's event, or null if it has none. */
export function approvalNoticeId(approval: string, event: string): string | null {
  const type = APPROVAL_EVENTS.get(event)?.[0]
  return type === undefined ? null : `${approval}.${type}`
}

function ofApproval(rec: Rec, approvalOf: (id: string) => ApprovalView | null): NoticeFacts | null {
  const event = APPROVAL_EVENTS.get(rec.event)
  const approval = event === undefined ? null : approvalOf(String(rec.approval))
  if (event === undefined || approval === null) return null
  const [type, title] = event
  const { id, namespace, agent, session, user, server, tool, method, policy, rule, reason, quorum } = approval
  const { needed, given, approverGroups, votes } = quorum
  const wants = `${server}/${tool ?? method}`
  return {
    id: `${id}.${type}`,
    type,
    approval: id,
    title: `${title}: ${oneLine(`${namespace}/${agent} wants ${wants}`)}`,
    facts: facts({
      agent: `${namespace}/${agent}`,
      session,
      user,
      wants,
      rule: policy === null ? null : `${policy}#${rule ?? ''}`,
      why: reason,
      approvals: needed === 1 ? null : `${given} of ${needed}`,
      'approver groups': approverGroups.join(', ') || null,
      'decided by': votes.map((vote) => `${vote.by} (${vote.verdict})`).join(', ') || null,
      reason: votes.map((vote) => vote.reason).findLast((text) => text !== '') ?? null,
      until: type === 'approval.created' ? approval.expiresAt : null,
    }),
    arguments: argumentsOf(approval),
    data: { ...approval },
  }
}

/** Arguments as approvers see them everywhere: whole, with invisible characters escaped. */
export function argumentsOf({ preview, argsBytes }: ApprovalView): NonNullable<Notice['arguments']> {
  if (preview === null) return { text: `${argsBytes} bytes, not shown (approvalPreview.mode)`, cut: false }
  return { text: escaped(preview.text), cut: preview.truncated }
}

/** Escapes characters that are invisible, or change how the rest reads, as code points. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

/** Members of every record, or for verifiers only. */
const NOT_FOR_PROGRAMS: ReadonlySet<string> = new Set(['kind', 'alert', 'at', 'tenant', 'replica'])

function ofOther(rec: Rec): NoticeFacts | null {
  const data = Object.fromEntries(Object.entries(rec).filter(([name]) => !NOT_FOR_PROGRAMS.has(name)))
  const { budget, key, window, percent, spent, cap, unit, currency, server, tool, digest } = rec
  const { revocation, action, scope, target, reason, by } = rec
  if (rec.kind === 'alert' && rec.alert === 'budget.threshold') {
    const of = { budget, key, window, percent }
    const [amount, whole] = unit === 'micros' ? [money(spent, currency), money(cap, currency)] : [spent, cap]
    const title = `A budget is spent to ${percent} %: ${oneLine(String(budget))}`
    const values = { budget, of: key, window, spent: amount, 'out of': whole }
    return createNotice('budget.threshold', of, { title, values, data })
  }
  if (rec.kind === 'alert' && rec.alert === 'pin.drift') {
    const title = `A tool is not as it was pinned: ${oneLine(`${server}/${tool}`)}`
    const values = { server, tool, digest }
    return createNotice('pin.drift', values, { title, values, data })
  }
  if (rec.kind !== 'revocation' || rec.source !== 'breakglass') return null
  const lifted = action === 'lift'
  const type = lifted ? 'revocation.lifted' : 'revocation.created'
  const title = `${lifted ? 'A revocation was lifted' : 'Revoked'}: ${oneLine(`${scope} ${target ?? ''}`)}`
  const values = { scope, target, mode: lifted ? undefined : action, reason, by }
  return createNotice(type, { revocation }, { title, values, data })
}

type Values = Readonly<Record<string, unknown>>

/** Notices with equal `of` are the same. */
function createNotice(
  type: NoticeType,
  of: Values,
  { title, values, data }: { readonly title: string; readonly values: Values; readonly data: Record<string, unknown> },
): NoticeFacts {
  const id = `${hash('sha256', JSON.stringify(Object.values(of)), 'hex').slice(0, 32)}.${type}`
  return { id, type, approval: null, title, facts: facts(values), data }
}

function money(micros: unknown, currency: unknown): string {
  return `${Number(micros) / 1_000_000} ${currency}`
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function facts(values: Values): [string, string][] {
  return Object.entries(values).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === null || value === '' ? [] : [[name, oneLine(String(value))]],
  )
}

/** Returns one line without control characters, cut to a length for chats. */
function oneLine(text: string): string {
  const line = text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
  const characters = [...line]
  return characters.length > FACT_MAX_CHARS ? `${characters.slice(0, FACT_MAX_CHARS - 1).join('')}…` : line
}
