import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TaskState } from '@a2a-js/sdk'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { asking, eventsOf, setUpA2a } from './testing/fixture.ts'

test('an agent calls another with the official SDK: a message, a task, a stream', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const fixture = await setUpA2a(t, agent)
  const client = await fixture.client()
  const message = await client.sendMessage(asking('hello'))
  assert.ok('messageId' in message)
  const task = await client.sendMessage(asking('work it is done'))
  assert.ok(!('messageId' in task))
  assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
  const events = await eventsOf(client.sendMessageStream(asking('work a|b'))).all
  assert.deepEqual(
    events.map(({ payload }) => payload?.$case),
    ['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'],
  )
})
