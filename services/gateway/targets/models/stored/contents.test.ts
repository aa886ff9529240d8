import assert from 'node:assert/strict'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { fileJournals } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { isDenial } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { StoredContents } from './contents.ts'

const ACCOUNT = 'openai'
const greedy = { ...testIdentity, agent: 'greedy' }
const modest = { ...testIdentity, agent: 'modest' }

const storing = (identity: typeof greedy) => ({ identity, account: ACCOUNT, call: 'call-1', labels: [] })

async function setUp(t: TestContext): Promise<StoredContents> {
  const clock = new TestClock()
  const config = { auditPath: path.join(tempFolder(), 'ledger.jsonl') }
  const contents = await StoredContents.open({ config, journals: fileJournals(clock), clock, log: silentLog })
  t.after(() => contents.close())
  return contents
}

test('an agent at its share of stored files can store no more, while another agent can', async (t) => {
  const contents = await setUp(t)
  const ids = Array.from({ length: poolTable.stored_files.shares[0].max }, (_, n) => `file-${n}`)
  const denials = await Promise.all(ids.map((id) => contents.keepFile(storing(greedy), id)))
  assert.ok(denials.every((denial) => denial === null))
  const refused = await contents.keepFile(storing(greedy), 'file-more')
  assert.ok(isDenial(refused) && refused.code === 'rate_limited')
  assert.equal(contents.owns(greedy, ACCOUNT, 'file-more'), false)
  assert.equal(await contents.keepFile(storing(modest), 'file-other'), null)
  assert.ok(contents.owns(modest, ACCOUNT, 'file-other'))
})

test('an agent at its share of stored responses loses only its oldest for a new one, while another agent loses none', async (t) => {
  const contents = await setUp(t)
  await contents.keepResponse(storing(modest), ['resp-other'])
  const ids = Array.from({ length: poolTable.stored_responses.shares[0].max }, (_, n) => `resp-${n}`)
  await contents.keepResponse(storing(greedy), ids)
  await contents.keepResponse(storing(greedy), ['resp-more'])
  const lost = [...ids, 'resp-more'].filter((id) => !contents.owns(greedy, ACCOUNT, id))
  assert.deepEqual(lost, ['resp-0'])
  assert.ok(contents.owns(modest, ACCOUNT, 'resp-other'))
})
