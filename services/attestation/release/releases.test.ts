import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PoolBound, poolTable, TestClock } from '@plat/core'
import { fileJournals } from '@plat/state'
import { decodeRelease, type Release } from './release.ts'
import { Releases } from './releases.ts'

test('a namespace at its share of releases is refused, another namespace is served, and an end makes room', async () => {
  const clock = new TestClock()
  const journal = await fileJournals(clock).open({ name: 'releases', path: '', decode: decodeRelease })
  const refused: PoolBound[] = []
  let used = () => -1
  const observer = {
    watch: (read: () => number) => {
      used = read
    },
    refused: (bound: PoolBound) => void refused.push(bound),
  }
  const releases = await Releases.open({ journal, clock, onFault: (error) => assert.fail(String(error)), observer })
  const write = (namespace: string, n: number) => releases.write(releaseOf(namespace, n))
  const share = poolTable.releases.shares[0].max
  for (let n = 0; n < share; n++) await write('greedy', n)
  await assert.rejects(write('greedy', share), /too many releases of namespace greedy/)
  await write('modest', 0)
  assert.deepEqual([refused, used()], [['share'], share + 1])
  await releases.end(releaseOf('greedy', 0), 'ended')
  await write('greedy', share)
  assert.equal(used(), share + 1)
  await releases.close()
})

function releaseOf(namespace: string, n: number): Release {
  return {
    id: `${namespace}-${n}`,
    name: { namespace, agent: 'a', session: `s${n}` },
    session: {},
    checks: ['tee'],
    digests: [],
    isolation: null,
    endsAt: null,
    redeemBy: 1,
    holder: null,
    ended: null,
  }
}
