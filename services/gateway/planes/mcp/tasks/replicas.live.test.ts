import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { isObject } from '@plat/core'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'

/** Tasks that are created at one replica and requested at the other at once. */
const ROUNDS = 20

const postgres = usePostgres()
/** The replicas poll so rarely that only a look-up brings to one of them the tasks of the other. */
const shared = new TestGateways({ postgres, stateBackend: { pollMillis: 3_600_000 } })
let one: GatewayProcess
let other: GatewayProcess

before(async () => {
  const [first, second] = await shared.startMany(2)
  assert.ok(first !== undefined && second !== undefined)
  one = first
  other = second
  let tasks = 0
  shared.upstream.answers(({ body }, response) => {
    const { id, method, params = {} } = JSON.parse(body)
    const taskId = method === 'tools/call' ? `task-${++tasks}` : params.taskId
    const task = { taskId, status: 'working', createdAt: AT, lastUpdatedAt: AT, ttl: 600_000 }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: method === 'tools/call' ? { task } : task }))
  })
})

const AT = '2026-01-01T00:00:00Z'

async function create(gateway: GatewayProcess, session: string): Promise<string> {
  const params = { name: 'work', arguments: {}, task: { ttl: 600_000 } }
  const { result, error } = await shared.send(gateway, session, { method: 'tools/call', params })
  assert.ok(isObject(result) && isObject(result.task), JSON.stringify(error))
  return String(result.task.taskId)
}

const get = (gateway: GatewayProcess, session: string, taskId: string) =>
  shared.send(gateway, session, { method: 'tasks/get', params: { taskId } })

test('a task is known at another replica as soon as its client has its id', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const [from, to] = round % 2 === 0 ? [one, other] : [other, one]
    const id = await create(from, `s${round}`)
    const { result, error } = await get(to, `s${round}`, id)
    assert.ok(isObject(result) && result.taskId === id, `round ${round}: ${JSON.stringify(error)}`)
  }
})

test('a task of another session stays unknown there, and guessed ids read the database within a share only', async () => {
  const id = await create(one, 'owner')
  const unknown = await get(other, 'stranger', 'no-such-task')
  const foreign = await get(other, 'stranger', id)
  assert.deepEqual([foreign.error?.code, foreign.error?.data.error], [unknown.error?.code, unknown.error?.data.error])
  assert.equal(unknown.error?.code, -32602)
  const refused = async () => {
    const text = await (await fetch(`${other.url}/metrics`)).text()
    return Number(/^plat_gateway_pool_refusals_total\{pool="unknown_ids",bound="share"\} (\d+)$/m.exec(text)?.[1] ?? 0)
  }
  const before = await refused()
  const guesses = await Promise.all(Array.from({ length: 200 }, (_, at) => get(other, 'guesser', `guess-${at}`)))
  assert.ok(guesses.every(({ error }) => error?.code === -32602))
  assert.ok((await refused()) > before, 'guesses beyond the share are not looked up')
  // Another session is not affected.
  assert.ok(isObject((await get(other, 'owner', id)).result))
})
