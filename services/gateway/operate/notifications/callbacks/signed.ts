import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject, readJsonObject } from '@plat/core'
import { APPROVE_ACTION, DENY_ACTION } from '../targets/slack.ts'
import { webhookKey, webhookSignature } from '../targets/webhook.ts'

/** Maximum difference of a signed time to the clock, in milliseconds. */
export const SKEW_MS = 5 * 60_000

export type Verdict = 'approve' | 'deny'

export interface Decision {
  readonly approval: string
  readonly verdict: Verdict
  readonly reason: string
}

/** A received callback. */
export interface CallbackRequest {
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A callback with a valid signature: the decision, and the user as the chat names them. */
export interface SignedCallback extends Decision {
  readonly user: string
  /** Equal for copies of one callback. */
  readonly mark: string
  /** URL for the reply to Slack, or null. */
  readonly answerTo: string | null
  readonly origin: Origin
}

/** Origin of a callback, as stated by the chat service. */
export interface Origin {
  /** Teams: the tenant. Slack: the workspaces of the app and of the user; all of them must be allowed. */
  readonly tenants: readonly string[]
  /** Ids of the channel or conversation; one of them must be allowed. */
  readonly channels: readonly string[]
}

/** Webhooks have no channels. */
const NO_ORIGIN: Origin = { tenants: [], channels: [] }

/** Returns whether `tenants` and `channels` of the notifier allow this origin; an empty list allows all. */
export function isAllowed(
  { tenants, channels }: { readonly tenants: readonly string[]; readonly channels: readonly string[] },
  origin: Origin,
): boolean {
  const isTenant = origin.tenants.length > 0 && origin.tenants.every((tenant) => tenants.includes(tenant))
  const isChannel = origin.channels.some((channel) => channels.includes(channel))
  return (tenants.length === 0 || isTenant) && (channels.length === 0 || isChannel)
}

/** `unauthenticated`: the signature is missing or wrong. `unreadable`: signed, but not a decision. */
export type CallbackFault = 'unauthenticated' | 'unreadable'

/** Reads a callback with the notifier's secret; `now` in milliseconds. */
export type ReadSigned = (incoming: CallbackRequest, secret: string, now: number) => SignedCallback | CallbackFault

/** Slack signs `v0:<time>:<body>`; the body is a form with the interaction in `payload`. */
export const readSlack: ReadSigned = ({ headers, body }, secret, now) => {
  const timestamp = oneOf(headers['x-slack-request-timestamp'])
  const mark = oneOf(headers['x-slack-signature'])
  const expected = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')
  if (!isFresh(Number(timestamp) * 1000, now) || !same(mark, `v0=${expected}`)) return 'unauthenticated'
  const payload = readJsonObject(new URLSearchParams(body.toString('utf8')).get('payload') ?? '')
  const actions = payload?.actions
  const [action] = Array.isArray(actions) ? actions.map(membersOf) : []
  const verdict = action?.action_id === APPROVE_ACTION ? 'approve' : action?.action_id === DENY_ACTION ? 'deny' : null
  const person = membersOf(payload?.user)
  const user = person?.id
  const approval = action?.value
  if (verdict === null || typeof user !== 'string' || typeof approval !== 'string') return 'unreadable'
  const answerTo = typeof payload?.response_url === 'string' ? payload.response_url : null
  // In a shared channel user and app may be of different workspaces: both must be allowed.
  const origin = {
    tenants: textsOf(membersOf(payload?.team)?.id, person?.team_id),
    channels: textsOf(membersOf(payload?.channel)?.id),
  }
  return { approval, verdict, reason: '', user, mark, answerTo, origin }
}

/** Standard Webhooks, as for notifications to type `webhook`; the body is a decision with the `user` who made it. */
export const readWebhook: ReadSigned = ({ headers, body }, secret, now) => {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    oneOf(headers[name]),
  )
  if (!id || !timestamp || !isFresh(Number(timestamp) * 1000, now)) return 'unauthenticated'
  const expected = webhookSignature(webhookKey(secret), { id, timestamp, body })
  if (!(signatures ?? '').split(' ').some((signature) => same(signature, expected))) return 'unauthenticated'
  const members = readJsonObject(body.toString('utf8'))
  const decision = members === null ? null : decisionOf(members)
  if (decision === null || typeof members?.user !== 'string') return 'unreadable'
  return { ...decision, user: members.user, mark: id, answerTo: null, origin: NO_ORIGIN }
}

/** `approve <id>` or `deny <id>`, after an optional mention and before an optional reason. */
const COMMAND = /(?:^|\s|&nbsp;)(approve|deny)\s+([0-9a-f-]{36})(?:\s+(\S[\s\S]{0,1000}))?$/i

/** Maximum length of a message, in characters. */
const COMMAND_MAX_CHARS = 4000

/** An outgoing webhook of Teams: HMAC of the body with a base64 key; the message holds time and command. */
export const readTeams: ReadSigned = ({ headers, body }, secret, now) => {
  const mark = /^HMAC (\S+)$/.exec(oneOf(headers.authorization))?.[1] ?? ''
  const expected = createHmac('sha256', Buffer.from(secret, 'base64')).update(body).digest('base64')
  if (!same(mark, expected)) return 'unauthenticated'
  const activity = readJsonObject(body.toString('utf8'))
  if (activity === null || !isTeamsMessage(activity, now)) return 'unauthenticated'
  const command = commandOf(activity)
  return command === null ? 'unreadable' : { ...command, mark, answerTo: null }
}

/**
 * Returns whether this is a recent message of Teams. Other channels of the bot service (web chat, direct line) let clients choose
 * their names, so a name in such a message proves nothing.
 */
export function isTeamsMessage({ channelId, timestamp }: JsonObject, now: number): boolean {
  return channelId === 'msteams' && typeof timestamp === 'string' && isFresh(Date.parse(timestamp), now)
}

/** Returns the decision in a message of Teams, or null if it holds none or its user has no id in the tenant's directory. */
export function commandOf(
  activity: JsonObject,
): (Decision & { readonly user: string; readonly origin: Origin }) | null {
  // `from.id` is set by the channel; only `aadObjectId` is an id of the directory.
  const user = membersOf(activity.from)?.aadObjectId
  const { text } = activity
  if (typeof user !== 'string' || user === '' || typeof text !== 'string') return null
  const plain = text.slice(0, COMMAND_MAX_CHARS).replace(/<[^<>]*>/g, ' ')
  const [, word, approval, reason = ''] = COMMAND.exec(plain.trimEnd()) ?? []
  if (word === undefined || approval === undefined) return null
  const verdict = word.toLowerCase() === 'deny' ? 'deny' : 'approve'
  return { user, approval: approval.toLowerCase(), verdict, reason, origin: teamsOrigin(activity) }
}

function teamsOrigin(activity: JsonObject): Origin {
  const data = membersOf(activity.channelData)
  const conversation = membersOf(activity.conversation)
  const id = conversation?.id
  return {
    tenants: textsOf(membersOf(data?.tenant)?.id, conversation?.tenantId),
    // The id of a thread is its channel's with the first message: `19:…@thread.tacv2;messageid=…`.
    channels: textsOf(membersOf(data?.channel)?.id, typeof id === 'string' ? id.split(';', 1)[0] : undefined),
  }
}

function textsOf(...values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === 'string')
}

/** Reads `{approval, verdict, reason}`. Returns null if it is not a decision. */
export function decisionOf({ approval, verdict, reason = '' }: JsonObject): Decision | null {
  if (typeof approval !== 'string' || typeof reason !== 'string' || reason.length > 1024) return null
  return verdict === 'approve' || verdict === 'deny' ? { approval, verdict, reason } : null
}

function membersOf(value: unknown): JsonObject | null {
  return isObject(value) ? value : null
}

/** Returns a header that occurs once, otherwise the empty string. */
function oneOf(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : ''
}

function isFresh(time: number, now: number): boolean {
  return Math.abs(now - time) <= SKEW_MS
}

function same(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
