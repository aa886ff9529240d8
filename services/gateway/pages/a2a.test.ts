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

test('the gateway.json, the Agent and the rules of docs/a2a.md are valid', () => {
  const [config = ''] = examples('a2a.md', 'json')
  const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...JSON.parse(config) }), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  const [agent = '', rules = ''] = examples('a2a.md', 'yaml')
  assert.deepEqual(parseResource('Agent', agent).problems, [])
  const policy = {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'ToolPolicy',
    metadata: { name: 'research', namespace: 'default' },
    spec: { rules: parse(rules) },
  }
  assert.deepEqual(parseResource('ToolPolicy', JSON.stringify(policy)).problems, [])
})
