import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { Activity } from './activity.ts'

test('a namespace at its share of an interval waits for a later one, while another namespace is written', async (t) => {
  const paths: string[] = []
  const refused: string[] = []
  let used = () => -1
  const observer = {
    watch: (read: () => number) => {
      used = read
    },
    refused: (bound: string) => void refused.push(bound),
  }
  const api = {
    async ask({ path }: { readonly path: string }) {
      paths.push(path)
      return { status: 200, body: {} }
    },
  }
  const parts = {
    api,
    everyMs: 3_600_000,
    live: { busy() {} },
    taints: () => [],
    clock: new TestClock(),
    log: silentLog,
  }
  const activity = new Activity({ ...parts, observer })
  t.after(() => activity.close())
  const see = (namespace: string, session: string) => activity.see({ namespace, agent: 'a', session }, 1)
  const share = poolTable.session_activity.shares[0].max
  for (let n = 0; n <= share; n++) see('greedy', `s${n}`)
  see('greedy', 's0')
  see('modest', 's')
  assert.deepEqual([refused, used()], [['share'], share + 1])
  await activity.write()
  assert.equal(paths.length, share + 1)
  assert.ok(paths.some((path) => path.includes('/modest/')))
  assert.equal(used(), 0)
  see('greedy', `s${share}`)
  await activity.write()
  assert.ok(paths.at(-1)?.endsWith(`/s${share}`))
})
