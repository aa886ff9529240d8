import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { before, test } from 'node:test'
import { usePostgres } from '@plat/testkit/postgres/server'
import { type CalleeFixture, calleeFixture, rpc, saying } from './testing/callees.ts'

/** The agent's label and its response race each other; one round may be won by luck. */
const ROUNDS = 25
const HELPER = '/a2a/default/helper'

const postgres = usePostgres()
let fixture: CalleeFixture

before(async () => {
  await postgres.started
  let replicas = 0
  fixture = await calleeFixture((dir) => {
    writeFileSync(path.join(dir, 'dsn'), postgres.dsn)
    const dsnFile = path.join(dir, 'dsn')
    return {
      auditPath: path.join(dir, `audit-${replicas++}.jsonl`),
      stateBackend: { type: 'postgres', dsnFile, schema: 'callees', maxConns: 3 },
    }
  })
  await fixture.start()
  await fixture.start()
})

postgres.beforeClose(() => fixture?.close())

test('labels come back over replicas: the agent reads at one while its caller waits at another', async () => {
  const [one, other] = fixture.gateways
  for (let round = 0; round < ROUNDS; round++) {
    const caller = fixture.token(`assistant/a${round}`)
    const text = `hello ${round}`
    fixture.works.set(text, () => fixture.read(fixture.token(`helper/h${round}`, [`assistant/a${round}`]), other))
    const response = await fixture.post(caller, HELPER, rpc('SendMessage', saying(text)), one)
    assert.match(response, /hello yourself/)
    assert.equal(await fixture.isLabelled(caller, one), true, `round ${round}`)
  }
})

test('a task that was begun at one replica brings its labels to a session that reads it at another', async () => {
  const [one, other] = fixture.gateways
  const [began, reader] = [fixture.token('assistant/began'), fixture.token('assistant/reader')]
  await fixture.isLabelled(fixture.token('helper/clean', ['assistant/reader']), other)
  fixture.works.set('work', () => fixture.read(fixture.token('helper/read', ['assistant/began']), one))
  const { id } = JSON.parse(await fixture.post(began, HELPER, rpc('SendMessage', saying('work')), one)).result.task
  let text = ''
  while (!text.includes('TASK_STATE')) text = await fixture.post(reader, HELPER, rpc('GetTask', { id }), other)
  assert.equal(await fixture.isLabelled(reader, other), true)
})
