import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { poolTable, systemClock } from '@plat/core'
import { fileJournals } from '@plat/state'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { TEST_ISSUER } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type BindingEvent, decodeBindingEvent } from '../../call/bindings/events.ts'
import { rpc, STRANGER, saying, setUpA2a } from './testing/fixture.ts'

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
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const auditPath = join(tempFolder(), 'audit.jsonl')
  await fillJournal(auditPath, max)
  const exposed = { 'default/helper': { allowedCallers: ['assistant', 'team/*'] } }
  const { post, token } = await setUpA2a(t, agent, { exposed, config: { auditPath } })
  const work = (claims: object) => post(rpc('SendMessage', saying('work it')), { token: token({ ...claims }) })
  const codeOf = ({ error }: Awaited<ReturnType<typeof work>>) => error?.data.map(({ reason }) => reason).join() ?? null
  for (const claims of [{}, { act: { sub: 'user:new' } }, { plat_session: 's2', sub: SECOND }])
    assert.equal(codeOf(await work(claims)), 'RATE_LIMITED', JSON.stringify(claims))
  const other = await work(STRANGER)
  assert.equal(other.error, null, other.text)
})

const SECOND = 'spiffe://plat.local/ns/default/agent/assistant/session/s2'
