import { formatDuration, systemClock } from '@plat/core'
import { isGrantView } from '@plat/gateway/approvals'
import { admin, adminList } from '../shared/admin-api.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import { isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printWideList } from '../shared/print.ts'

const MINUTE_MS = 60_000

/** `plat approvals sessions`: approvals for the rest of a session that are in force, newest first. */
export async function sessionApprovalsList(options: GatewayOptions<WideFormat>, output: Output): Promise<number> {
  const { env } = await findGateway(options.dir)
  const found = await adminList(env, '/v1/session-approvals', isGrantView)
  if (found.length === 0 && isForPeople(options.output)) {
    output.out('no approvals for sessions')
    return 0
  }
  const now = systemClock.now()
  printWideList(output, options.output, found, {
    columns: {
      id: ({ id }) => id,
      session: ({ namespace, agent, session }) => plain(`${namespace}/${agent}/${session}`),
      tool: ({ server, tool }) => plain(`${server}/${tool}`),
      left: ({ expiresAt, newTaints = [] }) =>
        newTaints.length === 0 ? minutes(Date.parse(expiresAt) - now) : 'not in force',
    },
    further: {
      rule: ({ rule }) => plain(rule ?? '-'),
      by: ({ by }) => plain(by.join(', ')),
      until: ({ expiresAt }) => expiresAt,
      newLabels: ({ newTaints = [] }) => plain(newTaints.join(', ') || '-'),
    },
  })
  if (isForPeople(options.output) && found.some(({ newTaints = [] }) => newTaints.length > 0))
    output.out('not in force: the session has a taint label that it did not have, so each call waits; see -output wide')
  return 0
}

/** Whole minutes, at least one. */
function minutes(ms: number): string {
  return formatDuration(Math.max(1, Math.floor(ms / MINUTE_MS)) * MINUTE_MS)
}

export async function sessionApprovalsLift(
  options: { readonly dir?: string | undefined; readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  await admin(env, 'DELETE', `/v1/session-approvals/${encodeURIComponent(options.id)}`)
  output.out(`lifted ${options.id}`)
  return 0
}
