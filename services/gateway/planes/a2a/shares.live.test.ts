import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { poolTable, systemClock } from '@plat/core'
import { fileJournals } from '@plat/state'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { TEST_ISSUER } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type BindingEvent, decodeBindingEvent } from '../../call/bindings/events.ts'
import { type Posted, rpc, STRANGER, saying, setUpA2a } from './testing/fixture.ts'

const [{ max }] = poolTable.task_bindings.shares

/** Writes the journal of a gateway at which an agent created so many tasks, as many users and sessions. */
async function fillJournal(auditPath: string, count: number): Promise<void> {
  const journals = fileJournals(systemClock)
  const journal = await journals.open({
    name: 'bindings',
    path: `${auditPath}.bindings.jsonl`,
    decode: decodeBindingEvent,
  })
  const event = (at: number): BindingEvent => ({
    t: 'bound',
    at: systemClock.now(),
    owner: { tenant: '', namespace: 'default', agent: 'assistant', user: `user-${at}`, issuer: TEST_ISSUER },
    call: 'c',
  })
  const all = Array.from({ length: count }, (_, at) => journal.append(`task/default/helper/old-${at}`, [event(at)]))
  await Promise.all(all)
  await journal.close()
}

test('an agent that created as many tasks as its share gets no more, while another agent does', async (t) => {
  const worked: string[] = []
  const agent = await startTestAgent({ work: async (text) => void worked.push(text) })
  t.after(() => agent.close())
  const auditPath = join(tempFolder(), 'audit.jsonl')
  await fillJournal(auditPath, max)
  const exposed = { 'default/helper': { allowedCallers: ['assistant', 'team/*'] } }
  const { post, token } = await setUpA2a(t, agent, { exposed, config: { auditPath } })
  const work = (claims: object) => post(rpc('SendMessage', saying('work it')), { token: token({ ...claims }) })
  const codeOf = ({ error }: Awaited<ReturnType<typeof work>>) => error?.data.map(({ reason }) => reason).join() ?? null
  for (const claims of [{}, { act: { sub: 'user:new' } }, { plat_session: 's2', sub: SECOND }])
    assert.equal(codeOf(await work(claims)), 'RATE_LIMITED', JSON.stringify(claims))
  assert.deepEqual(worked, [], 'the agent does no work for a response that would be refused')
  const other = await work(STRANGER)
  assert.equal(other.error, null, other.text)
  assert.equal(worked.length, 1)
})

test('an agent at its share continues tasks that it has, and the response that exceeds the share is refused', async (t) => {
  const worked: string[] = []
  const agent = await startTestAgent({ work: async (text) => void worked.push(text) })
  t.after(() => agent.close())
  const auditPath = join(tempFolder(), 'audit.jsonl')
  // One place is left: a message needs one for its task and one for its context.
  await fillJournal(auditPath, max - 1)
  const { post } = await setUpA2a(t, agent, { config: { auditPath } })
  const codeOf = ({ error }: Posted) => error?.data.map(({ reason }) => reason).join() ?? null
  const send = (more: object) => post(rpc('SendMessage', saying('work it', more)))
  assert.equal(codeOf(await send({})), 'RATE_LIMITED')
  assert.equal(worked.length, 1, 'a place was free, so the agent got the message')
  assert.equal(codeOf(await send({})), 'RATE_LIMITED')
  assert.equal(worked.length, 1, 'no place was free')
  const own = JSON.parse((await post(rpc('ListTasks', {}))).text).result.tasks[0]
  assert.equal(codeOf(await post(rpc('GetTask', { id: own.id }))), null)
  const continued = await send({ taskId: own.id })
  assert.notEqual(codeOf(continued), 'RATE_LIMITED', continued.text)
  // A message that only refers to a task begins another one.
  assert.equal(codeOf(await send({ referenceTaskIds: [own.id] })), 'RATE_LIMITED')
  assert.equal(worked.length, 1)
})

const SECOND = 'spiffe://plat.local/ns/default/agent/assistant/session/s2'
