import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { isDenial } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { configWith, problemsWith } from '../../testing/configured.ts'
import { createInfra, type InfraConfig } from './index.ts'
import { planOf } from './testing/plans.ts'

const infraConfig = (infra: object): InfraConfig => configWith({ infra }).infra

test('infra has the limits of the contract, and refuses other values', () => {
  const MIB = 1024 * 1024
  const { maxPlanBytes, requireApprovalAtTier, maxTier, authorizationTTLSeconds, tiers } = infraConfig({})
  assert.deepEqual([maxPlanBytes, requireApprovalAtTier, maxTier], [16 * MIB, 3, 4])
  assert.deepEqual([authorizationTTLSeconds, tiers.maxResources], [3600, 50])
  infraConfig({ maxPlanBytes: 256 * MIB, requireApprovalAtTier: 5, maxTier: 0 })
  for (const [infra, path] of [
    [{ maxPlanBytes: 256 * MIB + 1 }, 'infra.maxPlanBytes'],
    [{ requireApprovalAtTier: 6 }, 'infra.requireApprovalAtTier'],
    [{ maxTier: 5 }, 'infra.maxTier'],
    [{ budgets: { perSession: { maxTier: 5 } } }, 'infra.budgets.perSession.maxTier'],
    [{ budgets: { perAgent: { '*': { resourcesPerHour: -1 } } } }, 'infra.budgets.perAgent["*"].resourcesPerHour'],
  ] as const)
    assert.ok(problemsWith({ infra }).join().startsWith(`${path}: must be`), path)
})

test('an authorization expires after authorizationTTLSeconds', async () => {
  // Shows D3.infra.authorizationTTLSeconds.
  const clock = new TestClock()
  const infra = createInfra({
    config: infraConfig({ enabled: true, authorizationTTLSeconds: 60 }),
    // The secrecy of seals is tested with a real one elsewhere.
    seals: { seal: (_, text) => text, open: (_, text) => text },
    missingScopes: () => null,
    clock,
  })
  if (infra === null) assert.fail('infra is not enabled')
  const facts = { identity: testIdentity }
  const call = (name: string, value: object) => {
    const bytes = Buffer.from(JSON.stringify(value))
    return infra.answer({ name, facts, body: { bytes, value, args: bytes } })
  }
  const given = await call('apply', planOf([{ actions: ['create'] }]))
  const { authorization, planSha256 } = isDenial(given) ? assert.fail(given.reason) : Object(given.value)
  const verified = async () => {
    const answer = await call('verify', { authorization, planSha256 })
    return isDenial(answer) ? answer.code : answer.status
  }
  clock.advance(59_999)
  assert.equal(await verified(), 200)
  clock.advance(1)
  assert.equal(await verified(), 'not_found')
})
