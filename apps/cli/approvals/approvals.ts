import { systemClock } from '@plat/core'
import { type ApprovalView, isApprovalView, isArgumentsView } from '@plat/gateway/approvals'
import { AdminRefusalError, admin, adminList } from '../shared/admin-api.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { HomeEnv } from '../shared/home.ts'
import { CommandError, type Format, isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printData, printList, printObject } from '../shared/print.ts'

export type { ApprovalView } from '@plat/gateway/approvals'

/** `plat approvals list`: pending approvals, or with `all` all approvals of the last day. */
export async function approvalsList(
  options: GatewayOptions<WideFormat> & { readonly all?: boolean },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  const approvals = options.all === true ? await adminList(env, '/v1/approvals', isApprovalView) : await pending(env)
  if (approvals.length === 0 && isForPeople(options.output)) {
    output.out(options.all === true ? 'no approvals' : 'no pending approvals')
    return 0
  }
  const now = systemClock.now()
  printList(output, options.output, approvals, {
    id: ({ id }) => id,
    state: ({ state }) => state,
    agent: who,
    call: wanted,
    rule: ({ rule }) => plain(rule ?? '-'),
    left: (approval) => (approval.state === 'pending' ? `${secondsLeft(approval, now)}s` : '-'),
    preview: (approval) => previewText(approval, PREVIEW_COLUMN),
  })
  return 0
}

export async function approvalsShow(
  options: GatewayOptions & { readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  const approval = await one(env, 'GET', pathOf(options.id))
  printApproval(output, options.output, options.output === 'table' ? await withWholeArguments(env, approval) : approval)
  return 0
}

/** `plat approvals approve|deny`. */
export async function approvalsDecide(options: GatewayOptions & Decision, output: Output): Promise<number> {
  const { env } = await findGateway(options.dir)
  printApproval(output, options.output, await decide(env, options))
  return 0
}

export type Verdict = 'approve' | 'deny'

export interface Decision {
  readonly id: string
  readonly verdict: Verdict
  readonly reason?: string | undefined
  /** SHA-256 of the whole arguments, for a truncated preview. */
  readonly argsSha256?: string | undefined
  /** Approve it for the rest of its session. */
  readonly forSession?: boolean | undefined
}

/** Pending approvals, oldest first. */
export async function pending(env: HomeEnv): Promise<ApprovalView[]> {
  return (await adminList(env, '/v1/approvals?state=pending', isApprovalView)).reverse()
}

export async function decide(env: HomeEnv, decision: Decision): Promise<ApprovalView> {
  const { id, verdict, reason, argsSha256, forSession } = decision
  const scope = forSession === true ? 'session' : undefined
  return one(env, 'POST', `${pathOf(id)}/${verdict}`, { reason, argsSha256, scope })
}

export async function getApproval(env: HomeEnv, id: string): Promise<ApprovalView> {
  return one(env, 'GET', pathOf(id))
}

/** Returns the approval with its whole arguments as preview, if the preview is truncated and the gateway stores them. */
export async function withWholeArguments(env: HomeEnv, approval: ApprovalView): Promise<ApprovalView> {
  const { preview, wholeArguments = null } = approval
  if (preview === null || !isCut(approval) || wholeArguments === null) return approval
  try {
    const whole = await admin(env, 'GET', wholeArguments)
    if (isArgumentsView(whole)) return { ...approval, preview: { ...preview, text: whole.text, truncated: false } }
  } catch (error) {
    // Only approvers may fetch them, and a decision may have removed them meanwhile.
    if (!(error instanceof AdminRefusalError)) throw error
  }
  return approval
}

function pathOf(id: string): string {
  return `/v1/approvals/${encodeURIComponent(id)}`
}

async function one(env: HomeEnv, method: 'GET' | 'POST', path: string, body?: object): Promise<ApprovalView> {
  const answer = await admin(env, method, path, body)
  if (isApprovalView(answer)) return answer
  throw new CommandError('the response of the gateway is not an approval')
}

function printApproval(output: Output, format: Format, approval: ApprovalView): void {
  if (format !== 'table') {
    printData(output, format, approval)
    return
  }
  const { id, state, session, user, policy, rule, reason, createdAt, expiresAt, quorum } = approval
  const votes = quorum.votes.map(
    (vote) =>
      `${vote.verdict}${vote.scope === 'session' ? ' for the session' : ''} by ${vote.by}${vote.reason === '' ? '' : `: ${vote.reason}`}`,
  )
  const rows = { id, state, agent: who(approval), session, user: user ?? '-', call: wanted(approval) }
  const why = { policy: policy ?? '-', rule: rule ?? '-', reason, arguments: wholePreview(approval) }
  const when = { createdAt, expiresAt, quorum: missing(approval), votes: votes.join('; ') || '-' }
  const printedRows = Object.entries({ ...rows, ...why, ...when }).map(([name, text]) => [name, plain(text)])
  printObject(output, format, Object.fromEntries(printedRows))
}

/** The number of given and required approvals, and the required groups. */
export function missing({ quorum: { given, needed, approverGroups, userConfirmation } }: ApprovalView): string {
  const of = approverGroups.length === 0 ? '' : ` of ${approverGroups.join(', ')}`
  const user = userConfirmation === null ? '' : `, the user's own confirmation is ${userConfirmation.state}`
  return plain(`${given} of ${needed} approvals${of}${user}`)
}

/** Characters of a preview in a column of the list, which ends in an ellipsis where there is more. */
const PREVIEW_COLUMN = 40

export function who({ namespace, agent }: ApprovalView): string {
  return plain(`${namespace}/${agent}`)
}

export function wanted({ server, tool, method }: ApprovalView): string {
  return plain(`${server}/${tool ?? method}`)
}

/** The visible part of the arguments: their text, their shape, or their size. */
export function previewText({ preview, argsBytes }: ApprovalView, max: number): string {
  if (preview === null) return `${argsBytes} bytes, not shown`
  const text = plain(preview.text)
  const cut = text.length > max ? `${text.slice(0, max - 1)}…` : text
  return preview.truncated && cut === text ? `${cut}…` : cut
}

/** The whole preview of the arguments, with a note if it is truncated. */
export function wholePreview(approval: ApprovalView): string {
  const text = previewText(approval, Number.POSITIVE_INFINITY)
  return isCut(approval) ? `${text} [cut: not all of ${approval.argsBytes} bytes are shown (approvalPreview)]` : text
}

/** Whether approvers see only a part of the preview. */
export function isCut({ preview }: ApprovalView): boolean {
  return preview?.truncated === true
}

/** Whole seconds until the approval expires. */
export function secondsLeft({ expiresAt }: ApprovalView, now: number): number {
  return Math.max(0, Math.ceil((Date.parse(expiresAt) - now) / 1000))
}
