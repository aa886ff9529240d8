import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, systemClock, systemIds } from '@plat/core'
import { listen } from '@plat/http'
import { silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { tokenMode } from '../../testing/admin.ts'
import { createAdmin } from '../index.ts'

test('a caller whose requests that read the ledger fill its share is refused, and another one is served', async (t) => {
  const waiting: (() => void)[] = []
  const bounds: string[] = []
  let used = () => -1
  const observer = {
    watch: (read: () => number) => {
      used = read
    },
    refused: (bound: string) => void bounds.push(bound),
  }
  const admin = createAdmin({
    ...tokenMode,
    config: { ...tokenMode.config, mode: 'both', roles: { auditor: ['auditors'] } },
    people: { identify: (user) => ({ user, groups: ['auditors'] }) },
    env: {},
    ledgers: { of: () => assert.fail('a read leaves no record') },
    log: silentLog,
    pools: { of: () => observer },
  })
  const listener = await listen({
    address: '127.0.0.1:0',
    clock: systemClock,
    ids: systemIds(systemClock),
    log: silentLog,
    api: (app) =>
      admin.mount(app, [
        {
          mount(context) {
            context.on('GET /v1/audit/records', async ({ query }) => {
              if (JSON.stringify(query).includes('fails')) throw new Error('broken')
              await new Promise<void>((resolve) => waiting.push(resolve))
              return { items: [], nextCursor: null }
            })
          },
        },
      ]),
  })
  t.after(() => listener.close())
  const read = async (user: string, query = '') => {
    const headers = { authorization: `Bearer ${user}` }
    return (await fetch(`${listener.url}/v1/audit/records${query}`, { headers })).status
  }
  assert.equal(await read('greedy', '?fails'), 500)
  const share = poolTable.ledger_readers.shares[0].max
  const reading = Array.from({ length: share }, () => read('greedy'))
  await until(() => waiting.length === share, 'the requests to arrive')
  assert.deepEqual([await read('greedy'), bounds, used()], [429, ['share'], share])
  const other = read('modest')
  await until(() => waiting.length === share + 1, 'the request of the other caller')
  for (const answer of waiting) answer()
  assert.deepEqual(
    await Promise.all([...reading, other]),
    Array.from({ length: share + 1 }, () => 200),
  )
  assert.equal(used(), 0)
})
