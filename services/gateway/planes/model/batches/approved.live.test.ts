import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isObject, type JsonObject, member } from '@plat/core'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { batchesSetup, line, uploaded } from '../../../testing/batches.ts'
import { TOKEN } from '../../../testing/started.ts'

const POLICY = testPolicy({
  rules: [
    { name: 'batches', action: 'require_approval', match: { tools: ['batches'] } },
    { name: 'all', action: 'allow' },
  ],
})

test('a batch waits for its approval, and is refused if policies change meanwhile', async (t) => {
  const { dir, provider, gateway } = await batchesSetup(t)
  const policyFile = join(dir, 'policies.json')
  await writeFile(policyFile, policiesFile([POLICY]))
  const { openai, gateway: running } = await gateway({
    policyFile,
    modelPolicy: 'policy',
    policyReloadSeconds: 1,
    adminAuth: { devTokenApprovers: true },
  })
  const headers = { authorization: `Bearer ${TOKEN}` }
  const admin = async (path: string, method = 'GET'): Promise<{ readonly body: JsonObject }> => {
    const value: unknown = await (await fetch(running.url + path, { method, headers })).json()
    return { body: isObject(value) ? value : {} }
  }
  const pending = async () => {
    let id = ''
    await until(async () => {
      const { items } = (await admin('/v1/approvals?state=pending')).body
      id = Array.isArray(items) ? String(member(items[0], 'id') ?? '') : ''
      return id !== ''
    }, 'the approval')
    return id
  }
  const { id } = await uploaded(openai(), [line('a')])
  const request = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const created = openai().batches.create(request)
  await admin(`/v1/approvals/${await pending()}/approve`, 'POST')
  assert.equal((await created).status, 'in_progress')
  const second = assert.rejects(openai().batches.create(request), /403 .*have changed since the batch was sent/)
  const approval = await pending()
  await writeFile(policyFile, policiesFile([POLICY, testPolicy({ name: 'default/more', agents: ['other'] })], 2))
  await until(
    async () => JSON.stringify((await admin('/v1/policies')).body).includes('default/more'),
    'the other policies',
  )
  await admin(`/v1/approvals/${approval}/approve`, 'POST')
  await second
  assert.equal(provider.calls.filter(({ path }) => path === '/v1/batches').length, 1)
})
