import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { isObject } from '@plat/core'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const postgres = usePostgres()
const shared = new TestGateways({ postgres })
let one: GatewayProcess
let other: GatewayProcess

/** States of tasks at the server, by ID. */
const states = new Map<string, string>()
/** Cancellations that reached the server, in order. */
const cancelled: string[] = []

const taskOf = (taskId: string) => ({
  ...{ taskId, status: states.get(taskId), createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z' },
  ttl: 600_000,
})

/** The response of a server that runs each call as a task until it is cancelled. */
function resultOf(method: string, { taskId = '' }: { readonly taskId?: string }): object {
  if (method === 'tools/call') {
    const id = `task-${states.size + 1}`
    states.set(id, 'working')
    return { task: taskOf(id) }
  }
  if (method === 'tasks/list') return { tasks: [...states.keys()].map(taskOf) }
  if (method === 'tasks/cancel') {
    states.set(taskId, 'cancelled')
    cancelled.push(taskId)
  }
  return taskOf(taskId)
}

before(async () => {
  const [first, second] = await shared.startMany(2)
  assert.ok(first !== undefined && second !== undefined)
  one = first
  other = second
  shared.upstream.answers(({ body }, response) => {
    const { id, method, params = {} } = JSON.parse(body)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, params) }))
  })
})

async function create(gateway: GatewayProcess, session: string): Promise<string> {
  const params = { name: 'work', arguments: {}, task: { ttl: 600_000 } }
  const { result, error } = await shared.send(gateway, session, { method: 'tools/call', params })
  assert.ok(isObject(result) && isObject(result.task), JSON.stringify(error))
  return String(result.task.taskId)
}

const about = (gateway: GatewayProcess, session: string, method: string, taskId: string) =>
  shared.send(gateway, session, { method, params: { taskId } })

test('a task that was created at one gateway is used, listed and cancelled at the other, by its session alone', async () => {
  const [mine, theirs] = [await create(one, 's1'), await create(one, 's2')]
  assert.deepEqual((await about(other, 's1', 'tasks/get', mine)).result, taskOf(mine))
  const listed = await shared.send(other, 's1', { method: 'tasks/list' })
  assert.deepEqual(listed.result, { tasks: [taskOf(mine)] })
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
    assert.equal((await about(other, 's1', method, theirs)).error?.code, -32602, method)
  assert.deepEqual((await about(other, 's1', 'tasks/cancel', mine)).result, taskOf(mine))
  assert.deepEqual([states.get(mine), states.get(theirs)], ['cancelled', 'working'])
})

test('a revocation at one gateway ends the access at the other, and cancels tasks of both', async () => {
  const tasks = [await create(one, 'revoked'), await create(other, 'revoked')]
  const untouched = await create(other, 's5')
  const target = { session: 'default/assistant/revoked' }
  const made = await shared.admin(one, 'POST', '/revocations', { target, mode: 'revoke', reason: 'test' })
  assert.equal(made.status, 201)
  await until(
    async () => (await about(other, 'revoked', 'tasks/get', tasks[0] ?? '')).error?.data.error === 'revoked',
    'the revocation',
  )
  await until(async () => tasks.every((id) => states.get(id) === 'cancelled'), 'the cancellations')
  assert.equal(cancelled.includes(untouched), false)
  const recorded = async (id: string) => {
    const lines = [...(await one.ledger()), ...(await other.ledger())].map((line) => JSON.parse(line).rec)
    return lines.filter(({ kind, task }) => kind === 'message' && task?.id === id && task.status === 'cancelled').length
  }
  for (const id of tasks) {
    await until(async () => (await recorded(id)) > 0, 'the record')
    assert.equal(await recorded(id), 1, id)
  }
})

test('a task outlives the gateway at which it was created', async () => {
  const task = await create(one, 's3')
  await one.kill()
  await until(
    async () => (await about(other, 's3', 'tasks/get', task)).error === undefined,
    'the task at the other one',
  )
  assert.deepEqual((await about(other, 's3', 'tasks/get', task)).result, taskOf(task))
  assert.equal((await about(other, 's4', 'tasks/get', task)).error?.code, -32602)
})
