import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { cedarFromJson, loadCedar } from '@plat/resources/cedar'
import { checkGatewayConfig } from '../../../config.ts'
import { examples } from '../../../testing/configured.ts'

const least = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreamsFile: '/upstreams.json',
  identity: { publicKeyFiles: ['/pub.pem'] },
}

test('the gateway.json of docs/policy-engines.md is valid', () => {
  const config = { ...least, ...JSON.parse(examples('policy-engines.md', 'json')[0]) }
  const { problems } = checkGatewayConfig(JSON.stringify(config), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
})

test('the Cedar text of docs/policy-engines.md says what the page says', async () => {
  const { object, problems } = parseResource('ToolPolicy', examples('policy-engines.md', 'yaml')[0])
  assert.deepEqual(problems, [])
  const policies = (await loadCedar())?.compile(object?.spec.cedar ?? '')
  if (policies === undefined || typeof policies === 'string') assert.fail(policies)
  const decide = (tool: string, args: object, { hour = '10', groups = ['staff'] } = {}) =>
    policies.decide({
      principal: 'default/assistant',
      action: 'mcp.call',
      resource: `notes/${tool}`,
      context: {
        identity: { groups },
        target: { server: 'notes' },
        args: cedarFromJson(Buffer.from(JSON.stringify(args))),
        now: { __extn: { fn: 'datetime', arg: `2026-01-02T${hour}:00:00.000Z` } },
      },
    })
  assert.deepEqual(decide('read_note', { amount: 1 }).policy, 'notes-by-day')
  assert.equal(decide('read_note', {}, { hour: '19' }).action, 'none')
  assert.equal(decide('delete_note', {}).policy, 'keep')
  assert.equal(decide('delete_note', {}, { groups: ['editors'] }).action, 'allow')
  assert.deepEqual(
    [decide('transfer', { amount: 100 }).action, decide('transfer', { amount: 101 }).policy],
    ['allow', 'small'],
  )
  assert.deepEqual(decide('transfer', {}), { action: 'deny', policy: 'small', failed: true })
})
