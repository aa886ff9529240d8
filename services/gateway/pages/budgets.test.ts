import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { isKind, type Kind, type Manifest, parseResource } from '@plat/resources'
import { parse } from 'yaml'
import { checkGatewayConfig } from '../config.ts'
import { decodePricing } from '../decide/budgets/pricing/decode.ts'
import { examples } from '../testing/configured.ts'

const least = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreamsFile: '/upstreams.json',
  identity: { publicKeyFiles: ['/pub.pem'] },
}

test('the prices and the gateway.json of docs/budgets.md are valid', () => {
  const [prices = '', narrower = '', multipliers = '', media = '', config = ''] = examples('budgets.md', 'json')
  const over = (more: string) => JSON.stringify({ ...JSON.parse(prices), ...JSON.parse(more) })
  for (const text of [prices, over(narrower), over(multipliers), over(media)]) {
    const decoded = decodePricing(Buffer.from(text))
    if ('problems' in decoded) assert.fail(decoded.problems.join())
    assert.equal(decoded.table.id, '2026-11')
  }
  const whole = JSON.stringify({ ...least, ...JSON.parse(config) })
  const { problems } = checkGatewayConfig(whole, { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  assert.ok('budgetsFile' in JSON.parse(config))
})

test('the resources and the rule of docs/budgets.md are valid', () => {
  const found = new Map<string, Manifest>()
  const take = <K extends Kind>(kind: K, text: string) => {
    const { object, problems } = parseResource(kind, text)
    assert.deepEqual(problems, [], text)
    if (object !== null) found.set(kind, object)
  }
  for (const text of examples('budgets.md', 'yaml')) {
    const value: unknown = parse(text)
    if (Array.isArray(value)) {
      const head = {
        apiVersion: 'plat.dev/v1alpha1',
        kind: 'ToolPolicy',
        metadata: { name: 'a', namespace: 'default' },
      }
      take('ToolPolicy', JSON.stringify({ ...head, spec: { rules: value } }))
    } else {
      const kind = typeof value === 'object' && value !== null && 'kind' in value ? value.kind : null
      if (isKind(kind)) take(kind, text)
    }
  }
  assert.deepEqual([...found.keys()].toSorted(), ['Agent', 'BudgetPolicy', 'ToolPolicy'])
})
