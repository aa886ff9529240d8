import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { type Receiver, receiver } from '../../testing/approvals.ts'

const postgres = usePostgres()

/** Gateways with one outbox and one receiver. */
async function fixture(t: TestContext, schema: string) {
  const hook = await receiver(t)
  const shared = new TestGateways({
    postgres,
    rules: [
      { name: 'ask', action: 'require_approval', match: { tools: ['delete'] }, reason: 'a person looks first' },
      { name: 'all', action: 'allow' },
    ],
    config: { notifiers: [{ name: 'hook', type: 'webhook', url: hook.url }], approvalAnswerAfterSeconds: 600 },
    stateBackend: { schema, leader: { retryMillis: 200 } },
  })
  /** Makes a call that waits, and returns its approval. */
  const hold = async (gateway: GatewayProcess, session: string) => {
    shared.call(gateway, session, 'delete').catch(() => {})
    let id: string | undefined
    await until(async () => {
      const { body } = await shared.admin(gateway, 'GET', '/approvals?state=pending')
      id = body.items.find((item: { session: string }) => item.session === session)?.id
      return id !== undefined
    }, 'an approval')
    return id ?? assert.fail('there is no approval')
  }
  return { hook, shared, hold }
}

const timesOf = ({ received }: Receiver, id: string) =>
  received.filter(({ headers }) => headers['webhook-id'] === `${id}.approval.created`).length

const leads = async ({ url }: GatewayProcess) =>
  /^plat_gateway_leader\{job="notifications"\} 1$/m.test(await (await fetch(`${url}/metrics`)).text())

test('each approval of three replicas is notified once, by the replica that leads', async (t) => {
  const { hook, shared, hold } = await fixture(t, 'outbox_many')
  const gateways = await shared.startMany(3)
  const ids = await Promise.all(
    gateways.flatMap((gateway, n) => ['a', 'b', 'c'].map((name) => hold(gateway, `${name}${n}`))),
  )
  await until(() => ids.every((id) => timesOf(hook, id) > 0), 'all notifications')
  const leaders = await Promise.all(gateways.map(leads))
  assert.deepEqual(leaders.filter(Boolean), [true])
  assert.deepEqual(
    ids.map((id) => timesOf(hook, id)),
    ids.map(() => 1),
  )
})

test('a notification outlives the replica that queued it, and the leader that could not deliver it', async (t) => {
  const { hook, shared, hold } = await fixture(t, 'outbox_killed')
  const [one, other, third] = await shared.startMany(3)
  assert.ok(one !== undefined && other !== undefined && third !== undefined)
  const gateways = [one, other, third]
  hook.answers(503)
  let leader: GatewayProcess | undefined
  await until(async () => {
    const states = await Promise.all(gateways.map(leads))
    leader = gateways[states.indexOf(true)]
    return leader !== undefined
  }, 'a leader')
  const maker = gateways.find((gateway) => gateway !== leader) ?? assert.fail('every replica leads')
  const id = await hold(maker, 'killed')
  await until(() => timesOf(hook, id) > 0, 'the first attempt')
  await Promise.all([maker.kill(), leader?.kill()])
  hook.answers(200)
  const refused = timesOf(hook, id)
  await until(() => timesOf(hook, id) > refused, 'the delivery by the replica that is left')
  const [left] = gateways.filter((gateway) => gateway !== maker && gateway !== leader)
  assert.ok(left !== undefined)
  // A delivery is marked: another leader does not send it again.
  const next = await shared.start()
  await left.kill()
  await until(() => leads(next), 'the next leader')
  const later = await hold(next, 'later')
  await until(() => timesOf(hook, later) > 0, 'the next notification')
  assert.equal(timesOf(hook, id), refused + 1)
})

test('an approval whose replica died before it queued the notification is notified by the leader', async (t) => {
  const { hook, shared, hold } = await fixture(t, 'outbox_missing')
  const gateway = await shared.start()
  hook.answers(503)
  const id = await hold(gateway, 'missing')
  await until(() => timesOf(hook, id) > 0, 'the first attempt')
  // State after a crash between the approval and its notification, which no ledger of another replica has.
  await gateway.kill()
  const removed = await postgres.rows(
    "DELETE FROM outbox_missing.entry WHERE journal = 'notifications' AND key LIKE '%approval.created' RETURNING seq",
  )
  assert.equal(removed.length, 1)
  const before = timesOf(hook, id)
  hook.answers(200)
  await shared.start()
  await until(() => timesOf(hook, id) > before, 'the notification of the leader')
})
