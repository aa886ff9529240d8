import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { parse } from 'yaml'
import { checkGatewayConfig } from '../config.ts'
import { examples } from '../testing/configured.ts'

const least = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreamsFile: '/upstreams.json',
  identity: { publicKeyFiles: ['/pub.pem'] },
}

test('every gateway.json of docs/models.md is valid', () => {
  for (const text of examples('models.md', 'json')) {
    const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...JSON.parse(text) }), { exists: () => true })
    assert.deepEqual(problems.map(formatProblem), [], text)
  }
})

test('every Agent of docs/models.md is valid', () => {
  for (const text of examples('models.md', 'yaml')) {
    const spec = { image: 'example.com/a:1', tier: 'tier-0', ...parse(text).spec }
    const agent = {
      apiVersion: 'plat.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'a', namespace: 'default' },
      spec,
    }
    assert.deepEqual(parseResource('Agent', JSON.stringify(agent)).problems, [], text)
  }
})
