import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startFilesServer } from '@plat/testkit/files-server'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { usePostgres } from '@plat/testkit/postgres/server'
import { startResponsesServer } from '@plat/testkit/responses-server'
import { until } from '@plat/testkit/until'
import OpenAI, { toFile } from 'openai'
import { type GatewayFixture, started } from '../../../testing/started.ts'

const SCOPES = 'models:files models:responses models.files:files'
const postgres = usePostgres()
const ends = { after: (end: () => unknown) => postgres.beforeClose(end) }
const dir = tempFolder()

/** Clients of an agent at one gateway, one for each route. */
function clientsAt({ gateway, issuer }: GatewayFixture, agent: string) {
  const sub = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/${agent}/session/s1`
  const apiKey = issuer.token({ scope: SCOPES, sub, plat_agent: agent, plat_session: 's1' })
  const of = (route: string) => new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey, maxRetries: 0 })
  return { files: of('files'), responses: of('responses') }
}

test('the owner of a response and of a file is known at another gateway, which refuses other agents, also after a restart', async () => {
  const [filesAt, responsesAt] = await Promise.all([startFilesServer(), startResponsesServer()])
  for (const server of [filesAt, responsesAt]) ends.after(() => server.close())
  await writeFile(join(dir, 'dsn'), postgres.dsn)
  const replica = (name: string, isRestarted = false) =>
    started(
      ends,
      {
        auditPath: join(dir, `${name}.jsonl`),
        models: { files: { upstream: filesAt.url }, responses: { upstream: responsesAt.url } },
        stateBackend: { type: 'postgres', dsnFile: join(dir, 'dsn'), maxConns: 2 },
      },
      isRestarted,
    )
  const one = clientsAt(await replica('one'), 'assistant')
  const other = await replica('other', true)
  const { id } = await one.responses.responses.create({ model: 'm', input: 'remember 7' })
  const next = { model: 'm', input: 'and now?', previous_response_id: id } as const
  const file = await one.files.files.create({ file: await toFile(Buffer.from('a'), 'a.txt'), purpose: 'user_data' })

  const holds = async (gateway: GatewayFixture) => {
    const mine = clientsAt(gateway, 'assistant')
    // An append at one gateway reaches the other by a notification.
    await until(async () => (await mine.files.files.list()).data.length === 1, 'the owner of the file')
    assert.equal((await mine.files.files.retrieve(file.id)).filename, 'a.txt')
    assert.equal((await mine.responses.responses.create(next)).status, 'completed')
    const before = [filesAt.calls.length, responsesAt.requests.length]
    const intruder = clientsAt(gateway, 'intruder')
    assert.deepEqual((await intruder.files.files.list()).data, [])
    await assert.rejects(intruder.files.files.retrieve(file.id), /404 .*no such file/)
    await assert.rejects(intruder.files.files.delete(file.id), /404 .*no such file/)
    await assert.rejects(intruder.responses.responses.create(next), /403 .*previous_response_id names content/)
    assert.deepEqual([filesAt.calls.length, responsesAt.requests.length], before)
  }
  await holds(other)
  await other.gateway.drain()
  const restarted = await replica('other')
  await holds(restarted)

  // A deletion at one gateway is known at the other as well.
  await clientsAt(restarted, 'assistant').files.files.delete(file.id)
  await until(async () => (await one.files.files.list()).data.length === 0, 'the end of the file')
})
