import { hash } from 'node:crypto'
import { rfc3339 } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { type Static, Type } from 'typebox'

/** What can be told of (`notifiers[].events`). */
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

/** Longest value of a fact, in characters; a longer one ends in an ellipsis. Arguments are never cut: see `arguments`. */
const FACT_MAX_CHARS = 500

/** Something that people are told. Names, words and previews in it come from agents: targets show them as plain text. */
export const noticeSchema = Type.Object(
  {
    /** The same however often it is sent, and told anew after a crash: receivers drop what they have seen. */
    id: Type.String(),
    type: Type.Enum(NOTICE_TYPES),
    /** RFC 3339. */
    at: Type.String(),
    /** The approval that it is about. */
    approval: Type.Union([Type.String(), Type.Null()]),
    title: Type.String(),
    /** Name and value. */
    facts: Type.Array(Type.Tuple([Type.String(), Type.String()])),
    /** What the call would be made with, as approvers may see it. `cut`: the preview holds only the beginning. */
    arguments: Type.Optional(
      Type.Object({ text: Type.String(), cut: Type.Boolean() }, { additionalProperties: false }),
    ),
    /** For programs. */
    data: Type.Record(Type.String(), Type.Unknown()),
  },
  { additionalProperties: false },
)

export type Notice = Readonly<Static<typeof noticeSchema>>

/** Whether somebody is asked to decide, or was: these are delivered before everything else. */
export function isApproval({ type }: Notice): boolean {
  return type.startsWith('approval.')
}

/** An approval as the admin API shows it: what of it notices tell in words. */
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
  /** Null: `approvalPreview.mode` is `none`, or there are no arguments. */
  readonly preview: { readonly text: string; readonly truncated: boolean } | null
  readonly quorum: {
    readonly needed: number
    readonly given: number
    readonly approverGroups: readonly string[]
    readonly votes: readonly { readonly by: string; readonly verdict: string; readonly reason: string }[]
  }
  readonly expiresAt: string
}

/** The notice of a record of the ledger; null: nobody is told of such. `at`: of a record that is only being written. */
export function noticeOf(rec: Rec, approvalOf: (id: string) => ApprovalView | null, at: number): Notice | null {
  const told = rec.kind === 'approval' ? ofApproval(rec, approvalOf) : ofOther(rec)
  return told === null ? null : { ...told, at: textOf(rec.at) ?? rfc3339(at) }
}

/** The ledger cannot be written. `id`: made for the occasion. */
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
  ['expired', ['approval.expired', 'Nobody decided in time']],
  ['cancelled', ['approval.cancelled', 'Withdrawn']],
] as const)

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

/** Arguments as approvers see them everywhere: whole, with invisible characters written as escapes. */
export function argumentsOf({ preview, argsBytes }: ApprovalView): NonNullable<Notice['arguments']> {
  if (preview === null) return { text: `${argsBytes} bytes, not shown (approvalPreview.mode)`, cut: false }
  return { text: escaped(preview.text), cut: preview.truncated }
}

/** Whatever would be invisible, or change how the rest reads, is written as its code point. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

/** Members that every record has, or that are for verifiers alone. */
const NOT_FOR_PROGRAMS: ReadonlySet<string> = new Set(['kind', 'alert', 'at', 'tenant', 'replica'])

function ofOther(rec: Rec): NoticeFacts | null {
  const data = Object.fromEntries(Object.entries(rec).filter(([name]) => !NOT_FOR_PROGRAMS.has(name)))
  const { budget, key, window, percent, spent, cap, unit, currency, server, tool, digest } = rec
  const { revocation, action, scope, target, reason, by } = rec
  if (rec.kind === 'alert' && rec.alert === 'budget.threshold') {
    const of = { budget, key, window, percent }
    const [amount, whole] = unit === 'micros' ? [money(spent, currency), money(cap, currency)] : [spent, cap]
    const title = `A budget is spent to ${percent} %: ${oneLine(String(budget))}`
    const said = { budget, of: key, window, spent: amount, 'out of': whole }
    return toldOf('budget.threshold', of, { title, said, data })
  }
  if (rec.kind === 'alert' && rec.alert === 'pin.drift') {
    const title = `A tool is not as it was pinned: ${oneLine(`${server}/${tool}`)}`
    const said = { server, tool, digest }
    return toldOf('pin.drift', said, { title, said, data })
  }
  if (rec.kind !== 'revocation' || rec.source !== 'breakglass') return null
  const lifted = action === 'lift'
  const type = lifted ? 'revocation.lifted' : 'revocation.created'
  const title = `${lifted ? 'A revocation was lifted' : 'Revoked'}: ${oneLine(`${scope} ${target ?? ''}`)}`
  const said = { scope, target, mode: lifted ? undefined : action, reason, by }
  return toldOf(type, { revocation }, { title, said, data })
}

type Values = Readonly<Record<string, unknown>>

/** What is told is the same where `of` is the same. */
function toldOf(
  type: NoticeType,
  of: Values,
  { title, said, data }: { readonly title: string; readonly said: Values; readonly data: Record<string, unknown> },
): NoticeFacts {
  const id = `${hash('sha256', JSON.stringify(Object.values(of)), 'hex').slice(0, 32)}.${type}`
  return { id, type, approval: null, title, facts: facts(said), data }
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

/** One line without control characters, cut to what a chat shows. */
function oneLine(text: string): string {
  const line = text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
  const characters = [...line]
  return characters.length > FACT_MAX_CHARS ? `${characters.slice(0, FACT_MAX_CHARS - 1).join('')}…` : line
}
