import { closest, rfc3339, systemClock } from '@plat/core'
import { isPreviewView, isRevocationView, type PreviewView, type RevocationView } from '@plat/gateway/revocations'
import { admin, adminList } from '../shared/admin-api.ts'
import { fetchAgent, readAgent } from '../shared/agent.ts'
import { type FoundGateway, findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { HomeEnv } from '../shared/home.ts'
import { CommandError, type Format, isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { counted, printData, printList } from '../shared/print.ts'
import { readDuration } from '../shared/times.ts'

export interface RevokeOptions {
  readonly dir?: string | undefined
  /** As `parseTarget` reads it. */
  readonly target: string
  readonly mode: 'revoke' | 'suspend'
  readonly reason?: string | undefined
  /** A duration such as `1h`; without it, until it is lifted. */
  readonly for?: string | undefined
  /** Only print what it would end. */
  readonly dryRun?: boolean | undefined
  readonly output: Format
}

/** Body of `POST /v1/revocations`. */
export interface RevocationRequest {
  readonly target: Readonly<Record<string, string | true>>
  readonly mode?: 'revoke' | 'suspend'
  readonly reason?: string
  /** RFC 3339. */
  readonly expiresAt?: string
}

/** `plat revoke`: it is in force when this returns. */
export async function revoke(options: RevokeOptions, output: Output): Promise<number> {
  const { mode, reason } = options
  const request = {
    target: parseTarget(options.target),
    mode,
    ...(reason !== undefined && { reason }),
    ...(options.for !== undefined && { expiresAt: rfc3339(systemClock.now() + readDuration(options.for, 'for')) }),
  }
  const { home, env } = await findGateway(options.dir)
  if (options.dryRun === true) return printPreview(await previewRevocation(env, request.target), options, output)
  const made = await askToRevoke(env, request)
  if (options.output !== 'table') {
    printData(output, options.output, made)
    return 0
  }
  const what = mode === 'suspend' ? 'suspended' : 'revoked'
  const until = made.expiresAt === null ? 'until it is lifted' : `until ${made.expiresAt}`
  output.out(`${what} ${options.target} ${until}; ended ${counted(made.cut ?? 0, 'live call')}`)
  output.out(`lift it with: plat revocations lift ${made.id}`)
  const unknown = await unknownAgent({ home, env }, request.target)
  if (unknown !== null) output.err(`check the name: ${unknown}`)
  return 0
}

/** Returns what a revocation would end. */
async function previewRevocation(env: HomeEnv, target: RevocationRequest['target']): Promise<PreviewView> {
  const answer = await admin(env, 'POST', '/v1/revocations/preview', { target })
  if (isPreviewView(answer)) return answer
  throw new CommandError('the response of the gateway is not a preview of a revocation')
}

function printPreview(preview: PreviewView, { target, output: format }: RevokeOptions, output: Output): number {
  if (format !== 'table') {
    printData(output, format, preview)
    return 0
  }
  const { calls, tokens, sessions, pendingApprovals } = preview
  output.out(
    `revoking ${plain(target)} would end ${counted(calls.total, 'live call')} (${counted(calls.long, 'open stream')}) ` +
      `of ${counted(tokens, 'token')}, and ${counted(pendingApprovals, 'pending approval')}; nothing is revoked`,
  )
  if (sessions.total === 0) return 0
  output.out(
    `${counted(sessions.total, 'session')}, ${sessions.delegated} of delegations and ${counted(sessions.forked, 'fork')}:`,
  )
  printList(output, format, sessions.items, {
    session: ({ id }) => plain(id),
    user: ({ user }) => plain(user ?? '-'),
    relation: ({ relation }) => relation,
    calls: (one) => String(one.calls),
    pending: (one) => String(one.pendingApprovals),
  })
  if (sessions.items.length < sessions.total) output.out(`… and ${sessions.total - sessions.items.length} more`)
  return 0
}

/** Reason of the revocation by which `plat run` ends its session. */
export const RUN_ENDED = 'plat run has ended'

/**
 * `plat revocations list`: revocations in force, newest first. For people those of ended runs are counted, unless `all`: a long list would hide
 * the others.
 */
export async function revocationsList(
  options: GatewayOptions<WideFormat> & { readonly all?: boolean },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  const found = await adminList(env, '/v1/revocations', isRevocationView)
  const isHidden = ({ reason }: RevocationView) =>
    options.all !== true && isForPeople(options.output) && reason === RUN_ENDED
  const revocations = found.filter((one) => !isHidden(one))
  const hidden = found.length - revocations.length
  if (hidden > 0) output.err(`not listed: ${counted(hidden, 'revocation')} of ended runs; -all lists them`)
  if (revocations.length === 0 && isForPeople(options.output)) {
    output.out('no revocations')
    return 0
  }
  printList(output, options.output, revocations, {
    id: ({ id }) => plain(id),
    target: (one) => plain(targetText(one)),
    mode: ({ mode }) => mode,
    until: ({ expiresAt }) => expiresAt ?? 'it is lifted',
    source: ({ source }) => source ?? '-',
    reason: ({ reason }) => plain(reason) || '-',
  })
  return 0
}

export async function revocationsLift(
  options: { readonly dir?: string | undefined; readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  await admin(env, 'DELETE', `/v1/revocations/${encodeURIComponent(options.id)}`)
  output.out(`lifted ${options.id}`)
  return 0
}

/** Revokes by the admin API. Returns the revocation, which is in force. */
export async function askToRevoke(env: HomeEnv, request: RevocationRequest): Promise<RevocationView> {
  const answer = await admin(env, 'POST', '/v1/revocations', request)
  if (isRevocationView(answer)) return answer
  throw new CommandError('the response of the gateway is not a revocation')
}

const SCOPES = ['jti', 'session', 'agent', 'namespace', 'user', 'tenant']
const HOW = 'write all, or jti:, session:<ns>/<agent>/<id>, agent:<ns>/<name>, namespace:, user: or tenant: and a name'
/** Agents and sessions without their scope, as lists print them. */
const PRINTED: Readonly<Record<number, 'agent' | 'session'>> = { 2: 'agent', 3: 'session' }

/**
 * `all`, `<scope>:<name>`, `<ns>/<agent>` or `<ns>/<agent>/<id>`; an agent without a namespace is of `default`. The gateway validates names.
 * @throws CommandError with the syntax.
 */
export function parseTarget(text: string): RevocationRequest['target'] {
  if (text === 'all') return { all: true }
  const printed = text.includes(':') ? undefined : PRINTED[text.split('/').length]
  if (printed !== undefined) return { [printed]: text }
  const colon = text.indexOf(':')
  const scope = colon === -1 ? text : text.slice(0, colon)
  const name = colon === -1 ? '' : text.slice(colon + 1)
  if (!SCOPES.includes(scope)) {
    const meant = closest(scope, [...SCOPES, 'all'])
    const hint = meant === null ? HOW : `did you mean ${meant}?`
    throw new CommandError(`${JSON.stringify(scope)} cannot be revoked: ${hint}`, 2)
  }
  if (name === '') throw new CommandError(`${scope}: no name: ${HOW}`, 2)
  return { [scope]: scope === 'agent' && !name.includes('/') ? `default/${name}` : name }
}

/** A misspelled name is revoked all the same while the intended agent continues, so the user must get a warning. */
async function unknownAgent(
  { home, env }: FoundGateway,
  { agent }: RevocationRequest['target'],
): Promise<string | null> {
  if (typeof agent !== 'string') return null
  const found = home === null ? fetchAgent(env, agent) : readAgent(home.dir, agent)
  return found.then(
    () => null,
    (error: unknown) => (error instanceof CommandError && error.message.startsWith('no agent') ? error.message : null),
  )
}

function targetText({ target }: RevocationView): string {
  return Object.entries(target)
    .map(([scope, name]) => (name === true ? scope : `${scope}:${name}`))
    .join()
}
