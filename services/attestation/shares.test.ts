import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { Challenges } from './challenge/challenges.ts'
import type { Release } from './release/release.ts'
import { Revoker } from './renew/revoker.ts'

test('a release at its share of challenges gets no more, while another release does', () => {
  const refused: string[] = []
  const challenges = new Challenges(new TestClock(), { watch() {}, refused: (bound) => void refused.push(bound) })
  for (let n = 0; n < poolTable.challenges.shares[0].max; n++) assert.equal(challenges.admit('greedy'), true)
  assert.equal(challenges.admit('greedy'), false)
  assert.equal(challenges.admit('modest'), true)
  assert.deepEqual(refused, ['share'])
})

test('revocations of a namespace at its share are dropped, while those of another namespace wait', () => {
  const refused: string[] = []
  let used = () => -1
  const observer = {
    watch: (read: () => number) => {
      used = read
    },
    refused: (bound: string) => void refused.push(bound),
  }
  const clock = new TestClock()
  const dialer = { fetchBytes: () => new Promise<never>(() => {}) }
  const revoker = new Revoker({ url: 'https://gateway', adminToken: null, dialer, clock, log: silentLog, observer })
  const share = poolTable.pending_revocations.shares[0].max
  for (let n = 0; n <= share; n++) revoker.revoke(releaseOf('greedy', n), 'refused')
  assert.deepEqual([refused, used()], [['share'], share])
  revoker.revoke(releaseOf('modest', 0), 'refused')
  assert.deepEqual([refused, used()], [['share'], share + 1])
  revoker.close()
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
    holder: { jkt: 'key', jti: `${namespace}-${n}`, tokenEndsAt: 4_000_000_000_000, result: {} },
    ended: null,
  }
}
