import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodePricing } from '../decide/budgets/pricing/decode.ts'
import { sandboxCostOf } from '../decide/budgets/pricing/sandbox.ts'
import { readReport } from '../operate/sandbox-usage/report.ts'
import { configWith, examples, problemsWith } from '../testing/configured.ts'

const [config = '', prices = '', report = ''] = examples('sandbox-usage.md', 'json')

test('the gateway.json of docs/sandbox-usage.md is valid, and without listed reporters every report is refused', () => {
  const { sandboxUsage } = configWith(JSON.parse(config))
  assert.deepEqual(sandboxUsage, JSON.parse(config).sandboxUsage)
  assert.deepEqual(problemsWith({ sandboxUsage: { enabled: true } }), [
    'sandboxUsage.reporters: is required with sandboxUsage.enabled',
  ])
})

test('the report of docs/sandbox-usage.md costs by its prices what the page says', () => {
  const decoded = decodePricing(Buffer.from(prices))
  assert.ok('table' in decoded && decoded.table.sandbox !== null)
  const used = readReport(JSON.parse(report), Date.parse('2026-11-20T11:01:00Z'))
  assert.equal(sandboxCostOf(decoded.table.sandbox, used), 550)
})
