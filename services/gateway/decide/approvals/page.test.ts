import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { checkGatewayConfig, typedConfig } from '../../config.ts'
import { examples } from '../../testing/configured.ts'
import { QuorumFloor } from './quorum/quorum.ts'

test('the gateway.json of docs/approvals.md is valid, and its quorums match the page', () => {
  const config = {
    policyFile: '/policies.json',
    auditPath: '/audit.jsonl',
    upstreamsFile: '/upstreams.json',
    identity: { publicKeyFiles: ['/pub.pem'] },
    ...JSON.parse(examples('approvals.md', 'json')[0]),
  }
  const { config: checked, problems } = checkGatewayConfig(JSON.stringify(config), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  const floor = new QuorumFloor(typedConfig(checked).approvalQuorum)
  const needs = (policy: string, rule: string) => floor.over([{ policy, rule, quorum: null }])
  assert.deepEqual(needs('default/assistant', 'delete'), { minApprovers: 2, approverGroups: ['leads', 'security'] })
  assert.partialDeepStrictEqual(needs('bank/payments', 'wire'), { minApprovers: 1, userConfirmation: 'ciba' })
  assert.deepEqual(needs('shop/payments', 'wire'), { minApprovers: 1, approverGroups: [] })
})

test('the ToolPolicy of docs/approvals.md is valid and raises the quorum of the gateway', () => {
  const { object, problems } = parseResource('ToolPolicy', examples('approvals.md', 'yaml')[0])
  assert.deepEqual(problems, [])
  assert.deepEqual(object?.spec.rules?.[1]?.quorum, { minApprovers: 2, approverGroups: ['leads'] })
})
