import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { openFileJournal } from '@plat/state'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { testIssuer } from '@plat/testkit/identity'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { callOf, POLICIES, type Receiver, receiver } from '../../testing/approvals.ts'

const TOKEN = 'a-token-of-the-test'

/** Gateways one after the other on the same files, each ended by SIGKILL. */
async function lives({ url }: Receiver, quorum: object) {
  const dir = tempFolder()
  const at = (name: string) => join(dir, name)
  await writeFile(at('policies.json'), POLICIES)
  const config = {
    policyFile: at('policies.json'),
    auditPath: at('audit.jsonl'),
    approvalStorePath: at('approvals.jsonl'),
    notifyOutboxPath: at('outbox.jsonl'),
    approvalQuorum: { default: quorum },
    notifiers: [{ name: 'hook', type: 'webhook', url }],
    adminAuth: { mode: 'token', devTokenApprovers: true },
  }
  const issuer = testIssuer()
  const start = () =>
    startGatewayProcess({
      servers: { notes: 'http://127.0.0.1:9' },
      config,
      issuer,
      env: { PLAT_ADMIN_TOKEN: TOKEN },
    })
  const killed = async (gateway: GatewayProcess) => {
    await gateway.kill()
    await gateway.close()
  }
  const records = (id: string) =>
    wholeLines(at('audit.jsonl'))
      .map((line) => JSON.parse(line).rec)
      .filter(({ kind, approval }) => kind === 'approval' && approval === id)
      .map(({ event }) => event)
  return { start, killed, records, at }
}

async function admin({ url }: GatewayProcess, method: string, path: string) {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}/v1/approvals${path}`, {
    method,
    headers,
    ...(method === 'POST' && { body: '{}' }),
  })
  return JSON.parse(await response.text())
}

/** Makes a call that waits, and returns its approval. */
async function hold(gateway: GatewayProcess): Promise<string> {
  const headers = {
    authorization: `Bearer ${gateway.token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body: callOf('a') }).catch(() => {})
  let id = ''
  await until(async () => {
    const { items } = await admin(gateway, 'GET', '?state=pending')
    id = items[0]?.id ?? ''
    return id !== ''
  }, 'an approval')
  return id
}

test('killed after a decision: it is durable, recorded once, and delivered later with the same id', async (t) => {
  const hook = await receiver(t)
  hook.answers(503)
  const { start, killed, records } = await lives(hook, { minApprovers: 1 })
  const first = await start()
  const id = await hold(first)
  assert.equal((await admin(first, 'POST', `/${id}/deny`)).state, 'denied')
  await killed(first)
  hook.answers(200)
  const second = await start()
  t.after(() => second.close())
  assert.equal((await admin(second, 'GET', `/${id}`)).state, 'denied')
  const received = (type: string) => hook.first(({ headers }) => headers['webhook-id'] === `${id}.${type}`)
  await received('approval.created')
  await received('approval.denied')
  await until(() => records(id).includes('denied'), 'the record')
  assert.deepEqual(records(id), ['created', 'denied'])
})

test('killed between the decision and its record: the next process records and notifies it', async (t) => {
  const hook = await receiver(t)
  const { start, killed, records, at } = await lives(hook, { minApprovers: 1 })
  const first = await start()
  const id = await hold(first)
  await until(() => records(id).includes('created'), 'the record')
  await hook.first(({ headers }) => headers['webhook-id'] === `${id}.approval.created`)
  await killed(first)
  // State after a crash between the durable decision and its record.
  const journal = await openFileJournal({ path: at('approvals.jsonl'), clock: systemClock, decode: (event) => event })
  const vote = { t: 'vote', by: 'user:ada', verdict: 'approve', reason: 'fine', at: systemClock.now() }
  await journal.append(id, [vote, { t: 'granted' }])
  await journal.close()
  const second = await start()
  t.after(() => second.close())
  await until(() => records(id).includes('granted'), 'the record')
  assert.deepEqual(records(id), ['created', 'granted'])
  const { body } = await hook.first(({ headers }) => headers['webhook-id'] === `${id}.approval.approved`)
  assert.match(body, /user:ada/)
  await killed(second)
  const third = await start()
  t.after(() => third.close())
  await admin(third, 'GET', `/${id}`)
  assert.deepEqual(records(id), ['created', 'granted'], 'recorded events are not recorded again')
})
