import assert from 'node:assert/strict'
import { until } from '@plat/testkit/until'
import type { TestTenant } from './files.ts'
import type { TwoTenants } from './two-tenants.ts'

/** Objects of a tenant on a gateway: ids by kind, all of which others may guess. */
export interface Owned {
  readonly approval: string
  readonly sessionApproval: string
  readonly revocation: string
  readonly hold: string
  readonly evidence: string
  readonly session: string
  /** Number of records in its ledger. */
  readonly records: number
  /** A cursor of its list of records. */
  readonly cursor: string
}

/** Lets a tenant call, wait for approvals, revoke, hold and make evidence. Its pending call ends with `signal`. */
export async function populate(fixture: TwoTenants, one: TestTenant, signal: AbortSignal): Promise<Owned> {
  const { admin, call, token } = fixture
  const { name, namespace, mark } = one
  const as = `${name}-admin`
  const server = `${name}-notes`
  const bearer = token(one)
  const id = (reply: { readonly status: number; readonly text: string; readonly body: { readonly id: string } }) => {
    assert.equal(reply.status, 201, reply.text)
    return reply.body.id
  }
  const pending = async (text: string): Promise<string> => {
    const found = async () => {
      const { items } = (await admin('GET /v1/approvals', { as })).body
      return items.find(
        (item: { state: string; preview?: unknown }) => item.state === 'pending' && JSON.stringify(item).includes(text),
      )
    }
    await until(async () => (await found()) !== undefined, `the approval ${text} of ${name}`)
    return (await found()).id
  }
  for (const tool of ['look', 'drop']) await call(bearer, server, { tool, text: mark })
  const granted = call(bearer, server, { tool: 'pay', text: `${mark}-granted` })
  const approval = await pending(`${mark}-granted`)
  const decided = await admin(`POST /v1/approvals/${approval}/approve`, {
    as: `${name}-approver`,
    body: { reason: mark, scope: 'session' },
  })
  assert.equal(decided.status, 200, decided.text)
  assert.match((await granted).text, /done/)
  // Another session of the tenant, whose call waits until the end.
  const waiting = call(token(one, { plat_session: `${mark}-waiting` }), server, {
    tool: 'pay',
    text: `${mark}-pending`,
    signal,
  })
  waiting.catch(() => {})
  const target = { session: `${namespace}/${name}-agent/${mark}-revoked` }
  const revocation = id(await admin('POST /v1/revocations', { as, body: { target, reason: mark } }))
  const session = `${namespace}/${name}-agent/${name}-session`
  const hold = id(await admin('POST /v1/audit/holds', { as, body: { target: `session:${session}`, reason: mark } }))
  const evidence = id(await admin('POST /v1/evidence', { as, body: { namespace } }))
  const { items } = (await admin('GET /v1/session-approvals', { as })).body
  const page = (await admin('GET /v1/audit/records?limit=1', { as })).body
  return {
    ...{
      approval: await pending(`${mark}-pending`),
      sessionApproval: items[0].id,
      revocation,
      hold,
      evidence,
      session,
    },
    records: (await admin('GET /v1/audit/head', { as })).body.seq,
    cursor: page.nextCursor,
  }
}
