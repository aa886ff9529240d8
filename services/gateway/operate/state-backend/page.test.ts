import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig, typedConfig } from '../../config.ts'
import { REPOSITORY } from '../../reference.ts'
import { findings } from '../posture/index.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/state-backend.md'), 'utf8')

test('the gateway.json of docs/state-backend.md is valid, and posture finds no risk of replicas in it', () => {
  const [, text = ''] = /^```json\n([\s\S]*?)^```/m.exec(page) ?? []
  const least = { policyFile: '/p', auditPath: '/a', upstreamsFile: '/u', identity: { publicKeyFiles: ['/k'] } }
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...least, ...JSON.parse(text) }), {
    exists: () => true,
  })
  assert.deepEqual(problems.map(formatProblem), [])
  const risks = findings(typedConfig(config)).map(({ id }) => id)
  for (const id of [
    'replicas-on-files',
    'no-shutdown-delay',
    'approvals-in-memory',
    'pins-in-memory',
    'taints-in-memory',
  ])
    assert.ok(!risks.includes(id), id)
})
