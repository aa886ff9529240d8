import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { before, test } from 'node:test'
import { usePostgres } from '@plat/testkit/postgres/server'
import { type CalleeFixture, calleeFixture, messageParams, rpc } from './testing/callees.ts'

/** Number of rounds: label and response race, so a single round may pass by chance. */
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
      stateBackend: { type: 'postgres', dsnFile, schema: 'callees', maxConns: 3, pollMillis: 3_600_000 },
    }
  })
  await fixture.start()
  await fixture.start()
})

postgres.beforeClose(() => fixture?.close())

test('labels come back over replicas: the agent reads at one while its caller waits at the other', async () => {
  const [one, other] = fixture.gateways
  for (let round = 0; round < ROUNDS; round++) {
    const caller = fixture.token(`assistant/a${round}`)
    const text = `hello ${round}`
    fixture.works.set(text, () => fixture.read(fixture.token(`helper/h${round}`, [`assistant/a${round}`]), other))
    const response = await fixture.post(caller, HELPER, rpc('SendMessage', messageParams(text)), one)
    assert.match(response, /hello yourself/)
    assert.equal(await fixture.isLabelled(caller, one), true, `round ${round}`)
  }
})

test('a task created at one replica labels a session that reads it at the other', async () => {
  const [one, other] = fixture.gateways
  const [began, reader] = [fixture.token('assistant/began'), fixture.token('assistant/reader')]
  await fixture.isLabelled(fixture.token('helper/clean', ['assistant/reader']), other)
  fixture.works.set('work', () => fixture.read(fixture.token('helper/read', ['assistant/began']), one))
  const { id } = JSON.parse(await fixture.post(began, HELPER, rpc('SendMessage', messageParams('work')), one)).result
    .task
  // The other replica has not polled since.
  assert.match(await fixture.post(reader, HELPER, rpc('GetTask', { id }), other), /TASK_STATE/)
  assert.equal(await fixture.isLabelled(reader, other), true)
})

test('a task is known at the other replica as soon as its caller has its id', async () => {
  const caller = fixture.token('assistant/owner')
  for (let round = 0; round < ROUNDS; round++) {
    const [from, to] = round % 2 === 0 ? fixture.gateways : fixture.gateways.toReversed()
    const sent = await fixture.post(caller, HELPER, rpc('SendMessage', messageParams('work')), from)
    const { id } = JSON.parse(sent).result.task
    assert.match(await fixture.post(caller, HELPER, rpc('GetTask', { id }), to), /TASK_STATE/, `round ${round}`)
  }
})
