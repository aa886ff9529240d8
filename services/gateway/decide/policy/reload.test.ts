import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { Snapshots } from '../../call/index.ts'
import { recordedMetrics } from '../../testing/metrics.ts'
import { createPolicies, policySlot } from './index.ts'

const file = (generation: number, action: string) =>
  JSON.stringify({
    version: 1,
    generation,
    revision: `sha256:${generation}`,
    policies: [
      {
        name: 'default/p',
        namespace: 'default',
        agents: ['a'],
        mode: 'enforce',
        defaultAction: 'deny',
        cedar: '',
        rules: [{ name: 'r', action }],
      },
    ],
  })

test('policies are read at start and on change; a missing or bad file keeps what is in force', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const { metrics, changes } = recordedMetrics()
  const snapshots = new Snapshots()
  const clock = new TestClock()
  const policyFile = join(dir, 'policies.json')
  const policies = createPolicies({
    config: { policyFile, policyReloadSeconds: 2 },
    snapshots,
    clock,
    log: silentLog,
    metrics,
  })
  const revision = () => snapshots.current.get(policySlot).revision
  try {
    await policies.check()
    assert.equal(revision(), 'none')
    await writeFile(policyFile, file(1, 'allow'))
    await policies.check()
    assert.equal(revision(), 'sha256:1')
    await writeFile(policyFile, file(2, 'permit'))
    await policies.check()
    await rm(policyFile)
    await policies.check()
    assert.equal(revision(), 'sha256:1')
    await writeFile(policyFile, file(3, 'deny'))
    await policies.check()
    assert.equal(revision(), 'sha256:3')
    const loaded = (policies: number, generation: number) => [
      `plat_gateway_policies_loaded ${policies}`,
      `plat_gateway_policy_revision ${generation}`,
    ]
    const reloaded = (result: string) => `plat_gateway_policy_reloads_total ${result}`
    assert.deepEqual(
      changes.filter((change) => !change.includes('_cedar_')),
      [
        ...[...loaded(0, 0), reloaded('error')],
        ...[...loaded(1, 1), reloaded('ok')],
        ...[reloaded('error'), reloaded('error')],
        ...[...loaded(1, 3), reloaded('ok')],
      ],
    )
  } finally {
    policies.close()
    await rm(dir, { recursive: true })
  }
})
