import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { memoryOnceSets } from '@plat/state'
import { testProver } from '@plat/testkit/dpop'
import { testIssuer } from '@plat/testkit/identity'
import { createProofVerifier, createVerifier, memoryReplayStore } from '@plat/tokens'
import { defaultSettings } from '../flags.ts'
import type { Tenancy } from '../keys/tenancy.ts'
import { createRevocations } from '../sessions/revocations.ts'
import { createSessions } from '../sessions/sessions.ts'
import { ask } from '../testing/endpoints.ts'
import { bindEndpoint } from './endpoint.ts'
import { type BindRecords, bindRecords } from './records.ts'

/** A broker whose token is bound by another request between look-up and record. */
function racing(records: (winner: string) => BindRecords) {
  const clock = new TestClock()
  const issuer = testIssuer({ clock })
  const settings = { ...defaultSettings, publicUrl: 'https://id.example' }
  const { audience } = settings
  const verifier = createVerifier({ keys: issuer.keys, audience, leewaySeconds: 0, clock })
  const tenancy: Tenancy = { tenantOf: () => null, signerFor: () => issuer.signer, binding: () => 'bound' }
  const sessions = createSessions(verifier, tenancy, createRevocations({ path: '', clock, log: silentLog }))
  const proofs = createProofVerifier({ clock, replays: memoryReplayStore(clock) })
  const prover = testProver({ clock })
  const bind = (winner: string) => {
    const token = issuer.token()
    const parts = { settings, sessions, tenancy, proofs, records: records(winner), log: silentLog }
    const dpop = prover.proof('https://id.example/v1/token/bind', token)
    return ask(bindEndpoint(parts), {}, { authorization: `Bearer ${token}`, dpop })
  }
  return { bind, mine: prover.jkt, clock }
}

const lost = (winner: string): BindRecords => {
  let requested = 0
  return { find: () => (requested++ === 0 ? null : winner), insert: () => 'taken' }
}

test('a bind that loses the race between look-up and record is answered as if it had come later', async () => {
  const { bind, mine } = racing(lost)
  const toOther = await bind('A'.repeat(43))
  assert.ok('status' in toOther && 'error' in toOther, JSON.stringify(toOther))
  assert.deepEqual([toOther.status, toOther.error], [409, 'invalid_grant'])
  const toMine = await bind(mine)
  assert.ok('status' in toMine && 'error' in toMine)
  assert.deepEqual([toMine.status, toMine.error], [400, 'invalid_request'])
})

test('a store of records that is full binds nothing', async () => {
  const { bind } = racing(() => ({ find: () => null, insert: () => 'full' }))
  const answer = await bind('')
  assert.ok('status' in answer && 'error' in answer)
  assert.deepEqual([answer.status, answer.error], [503, 'temporarily_unavailable'])
})

test('a record lives as long as its token', async () => {
  const clock = new TestClock()
  const records = bindRecords(memoryOnceSets(clock))
  const claims = { jti: 'j', namespace: 'default', agent: 'a', expiresAt: clock.now() / 1000 + 1 }
  await records.insert(claims, 'first')
  assert.equal(await records.insert(claims, 'second'), 'taken')
  assert.equal(await records.find('j'), 'first')
  await clock.advance(1000)
  assert.equal(await records.find('j'), null)
})
