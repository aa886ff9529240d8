import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const REPLICAS = 3
const CALLS_PER_REPLICA = 6
const CALLS = REPLICAS * CALLS_PER_REPLICA
/** `npm run long -- -only approvals` sets more. */
const ROUNDS = Number(process.env.PLAT_TEST_APPROVAL_ROUNDS ?? 5)

/** Executed calls, by the round that their arguments name. */
const executed = new Map<unknown, number>()
const postgres = usePostgres()
const shared = new TestGateways({
  postgres,
  rules: [{ name: 'ask', action: 'require_approval', match: { tools: ['wipe'] }, reason: 'a person decides' }],
  stateBackend: { schema: 'shared', maxConns: 3 },
  onCall: ({ round }) => void executed.set(round, (executed.get(round) ?? 0) + 1),
})
let gateways: GatewayProcess[] = []
before(async () => {
  gateways = await shared.startMany(REPLICAS)
})

interface Listed {
  readonly id: string
  readonly state: string
}

async function approvalsOf(gateway: GatewayProcess, session: string): Promise<readonly Listed[]> {
  const { body } = await shared.admin(gateway, 'GET', `/approvals?session=${session}`)
  return body.items.map(({ id, state }: Listed) => ({ id, state }))
}

/** Calls that wait for this approval on any replica, besides the one that created it. */
async function attachedTo(id: string): Promise<unknown> {
  const [row] = await postgres.rows(
    `SELECT count(*)::integer AS attached FROM shared.entry
       WHERE journal = 'approvals' AND key = $1 AND event LIKE '%"attached"%'`,
    [id],
  )
  return row?.attached
}

async function playRound(session: string, decider: GatewayProcess): Promise<void> {
  const results = gateways.flatMap((gateway) =>
    Array.from({ length: CALLS_PER_REPLICA }, () => shared.call(gateway, session, 'wipe', { round: session })),
  )
  await until(async () => (await approvalsOf(decider, session)).length > 0, 'the question')
  const [question] = await approvalsOf(decider, session)
  const id = question?.id ?? ''
  await until(async () => (await attachedTo(id)) === CALLS - 1, 'every call to wait for the same approval')
  assert.equal((await shared.admin(decider, 'POST', `/approvals/${id}/approve`)).status, 200)
  const refusals = (await Promise.all(results)).map(({ error }) => error?.data.error ?? null)
  assert.equal(refusals.filter((refusal) => refusal === null).length, 1)
  assert.equal(refusals.filter((refusal) => refusal === 'approval_stale').length, CALLS - 1)
  assert.equal(executed.get(session), 1)
  for (const gateway of gateways) {
    await until(async () => (await approvalsOf(gateway, session))[0]?.state === 'used', 'the use')
    assert.deepEqual(await approvalsOf(gateway, session), [{ id, state: 'used' }])
  }
}

test(`${CALLS} identical held calls at ${REPLICAS} gateways: one question, one execution for its grant, no hang`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await playRound(`round-${round}`, gateways[round % REPLICAS] ?? assert.fail())
  }
})
