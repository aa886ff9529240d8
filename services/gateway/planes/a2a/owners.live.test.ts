import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { asking, eventsOf, rpc, STRANGER, saying, setUpA2a } from './testing/fixture.ts'

const SHARED = { 'default/helper': { allowedCallers: ['assistant', 'team/*'] } }

test('all sessions of the agent and user for which a task was created can access it', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { post, token, client } = await setUpA2a(t, agent, { exposed: SHARED })
  const task = await (await client()).sendMessage(asking('work it'))
  assert.ok('status' in task)
  const get = rpc('GetTask', { id: task.id })
  const mine = await post(get)
  assert.equal(JSON.parse(mine.text).result.id, task.id)
  const later = token({ sub: 'spiffe://plat.local/ns/default/agent/assistant/session/s2', plat_session: 's2' })
  assert.equal((await post(get, { token: later })).error, null)

  const reached = agent.reached.length
  const unknown = await post(rpc('GetTask', { id: 'unknown-task' }))
  const strangers = [token(STRANGER), token({ act: { sub: 'user:bob' } }), token({ act: undefined })]
  for (const other of strangers) {
    const foreign = await post(get, { token: other })
    assert.equal(foreign.status, 200)
    assert.deepEqual([foreign.error?.code, foreign.error?.message], [unknown.error?.code, unknown.error?.message])
    assert.equal(foreign.error?.code, -32001)
    assert.deepEqual(
      foreign.error?.data.map(({ reason, domain }) => [reason, domain]),
      [['TASK_NOT_FOUND', 'a2a-protocol.org']],
    )
  }
  const theirs = { token: token(STRANGER) }
  const named = [
    rpc('CancelTask', { id: task.id }),
    rpc('SubscribeToTask', { id: task.id }),
    rpc('ListTaskPushNotificationConfigs', { taskId: task.id }),
    rpc('DeleteTaskPushNotificationConfig', { taskId: task.id, id: 'c' }),
    rpc('SendMessage', saying('x', { taskId: task.id })),
    rpc('SendStreamingMessage', saying('x', { contextId: task.contextId })),
    rpc('SendMessage', saying('x', { referenceTaskIds: [task.id] })),
  ]
  for (const one of named) assert.equal((await post(one, theirs)).error?.code, -32001, JSON.stringify(one))
  assert.equal(agent.reached.length, reached)
})

test('a list has only the tasks of its caller, and page tokens are valid only for its session', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { post, token, client } = await setUpA2a(t, agent, { exposed: SHARED })
  const mine = await client()
  const theirs = await client(token(STRANGER))
  const own: string[] = []
  for (const text of ['work 1', 'work 2']) {
    own.push(idOf(await mine.sendMessage(asking(text))))
    await theirs.sendMessage(asking(text))
  }
  const listed = await mine.listTasks(LIST)
  assert.deepEqual(listed.tasks.map(({ id }) => id).toSorted(), own.toSorted())
  assert.equal(listed.totalSize, 2)

  const first = await mine.listTasks({ ...LIST, pageSize: 1 })
  const seen = first.tasks.map(({ id }) => id)
  let pageToken = first.nextPageToken
  while (pageToken !== '') {
    assert.match(pageToken, /^p1\./)
    const stolen = await post(rpc('ListTasks', { pageToken }), { token: token(STRANGER) })
    assert.equal(stolen.error?.code, -32602)
    const page = await mine.listTasks({ ...LIST, pageSize: 1, pageToken })
    seen.push(...page.tasks.map(({ id }) => id))
    pageToken = page.nextPageToken
  }
  assert.deepEqual(seen.toSorted(), own.toSorted())
  assert.equal((await post(rpc('ListTasks', { pageToken: 'forged' }))).error?.code, -32602)
})

test('a list of the context of another caller is empty, like that of a context that does not exist', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { post, token, client } = await setUpA2a(t, agent, { exposed: SHARED })
  const mine = await client()
  const { contextId = '' } = { ...(await mine.sendMessage(asking('work 1'))) }
  await mine.sendMessage({ ...asking('work 2'), message: { ...asking('work 2').message, contextId } })
  const list = (context: string, bearer?: string) =>
    post(rpc('ListTasks', { contextId: context, pageSize: 1 }), bearer === undefined ? {} : { token: bearer })
  const own = JSON.parse((await list(contextId)).text).result
  assert.equal(own.tasks.length, 1)
  assert.notEqual(own.nextPageToken, '')
  const foreign = await list(contextId, token(STRANGER))
  assert.deepEqual(JSON.parse(foreign.text), JSON.parse((await list('unknown-task', token(STRANGER))).text))
  assert.deepEqual(JSON.parse(foreign.text).result, { tasks: [], nextPageToken: '', pageSize: 1, totalSize: 0 })
})

test('the owner of a task can subscribe to it, cancel it and continue it', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { client } = await setUpA2a(t, agent)
  const caller = await client()
  const waiting = await caller.sendMessage(
    asking('wait', {
      configuration: { acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig: undefined },
    }),
  )
  const id = idOf(waiting)
  const watching = eventsOf(caller.resubscribeTask({ tenant: '', id }))
  await watching.first
  await caller.cancelTask({ tenant: '', id, metadata: undefined })
  const events = await watching.all
  assert.equal(events.at(0)?.payload?.$case, 'task')
  assert.equal(events.at(-1)?.payload?.$case, 'statusUpdate')
  const again = await caller.getTask({ tenant: '', id, historyLength: 0 })
  assert.equal(again.id, id)
})

const LIST = {
  tenant: '',
  contextId: '',
  status: 0,
  pageToken: '',
  pageSize: undefined,
  historyLength: undefined,
  statusTimestampAfter: undefined,
  includeArtifacts: undefined,
}

function idOf(answer: object): string {
  assert.ok('id' in answer && typeof answer.id === 'string')
  return answer.id
}
