import { isGrantView } from '@plat/gateway/approvals'
import { admin, adminList } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import { isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printList } from '../shared/print.ts'

/** `plat approvals sessions`: approvals for the rest of a session that are in force, newest first. */
export async function sessionApprovalsList(
  options: { readonly dir?: string | undefined; readonly output: WideFormat },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  const found = await adminList(env, '/v1/session-approvals', isGrantView)
  if (found.length === 0 && isForPeople(options.output)) {
    output.out('no approvals for sessions')
    return 0
  }
  printList(output, options.output, found, {
    id: ({ id }) => id,
    session: ({ namespace, agent, session }) => plain(`${namespace}/${agent}/${session}`),
    tool: ({ server, tool }) => plain(`${server}/${tool}`),
    rule: ({ rule }) => plain(rule ?? '-'),
    by: ({ by }) => plain(by.join(', ')),
    until: ({ expiresAt }) => expiresAt,
  })
  return 0
}

/** `plat approvals lift`. */
export async function sessionApprovalsLift(
  options: { readonly dir?: string | undefined; readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  await admin(env, 'DELETE', `/v1/session-approvals/${encodeURIComponent(options.id)}`)
  output.out(`lifted ${options.id}`)
  return 0
}
