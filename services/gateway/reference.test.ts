import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Check } from 'typebox/schema'
import { parse } from 'yaml'
import { checkGatewayConfig } from './config.ts'
import { REPOSITORY, referencePages } from './reference.ts'

for (const [name, text] of Object.entries(referencePages())) {
  test(`${name} is what the tables say; node services/gateway/reference.ts writes it again`, () => {
    assert.equal(readFileSync(path.join(REPOSITORY, name), 'utf8'), text)
  })
}

test('the published schema accepts the least file and refuses unknown keys, wrong types and missing ones', () => {
  const schema = JSON.parse(referencePages()['docs/reference/gateway.schema.json'] ?? '')
  const least = { policyFile: 'p', auditPath: 'a', upstreamsFile: 'u', identity: { publicKeyFiles: ['k'] } }
  assert.ok(Check(schema, least))
  assert.ok(Check(schema, { ...least, web: { maxRedirects: 5 } }))
  assert.ok(!Check(schema, { ...least, frobnicate: 1 }))
  assert.ok(!Check(schema, { ...least, maxBodyBytes: 'x' }))
  assert.ok(!Check(schema, { ...least, policyFile: undefined, auditPath: 5 }))
  const { policyFile: _, ...rest } = least
  assert.ok(!Check(schema, rest))
})

test("the chart's schema takes what the gateway takes, below gateway.config, and fills what the chart sets", () => {
  const schema = JSON.parse(referencePages()['deploy/chart/values.schema.json'] ?? '')
  const takes = (config: object) => Check(schema, { gateway: { config } })
  assert.ok(Check(schema, {}))
  assert.ok(takes({}), 'what the chart sets need not be said')
  assert.ok(takes({ upstreams: { notes: 'http://notes/mcp' }, identity: { issuer: 'plat-identity' } }))
  assert.ok(!takes({ frobnicate: 1 }))
  assert.ok(!takes({ identity: { publicKeyFile: 'k' } }))
  assert.ok(!takes({ shutdownDelaySeconds: '5' }))
  assert.ok(!Check(schema, { gateways: {} }))
})

test("the chart's schema holds no expression that Go cannot read", () => {
  const text = referencePages()['deploy/chart/values.schema.json'] ?? ''
  assert.doesNotMatch(text, /\(\?[=!<]/)
})

test("the chart's values are the contract's, and the gateway knows every one of them", () => {
  // Shows D3.chart.policyFile, D3.chart.auditPath, D3.chart.checkpointKey, D3.chart.shutdownDelaySeconds and
  // D3.chart.publicKeyFiles.
  const values = readFileSync(path.join(REPOSITORY, 'deploy/chart/values.yaml'), 'utf8')
  const { gateway } = parse(values)
  assert.deepEqual(gateway.config, {
    policyFile: '/etc/plat/policies/policies.json',
    auditPath: '/var/lib/plat/audit/ledger.jsonl',
    auditCheckpointKey: 'file:///var/run/plat-audit-key/audit-signing.pem',
    shutdownDelaySeconds: 5,
    identity: { publicKeyFiles: ['/var/run/plat-identity/pub.pem'] },
  })
  const config = { ...gateway.config, upstreams: { notes: 'http://notes/mcp' } }
  const { problems } = checkGatewayConfig(JSON.stringify(config))
  const missing = ['/etc/plat/policies/policies.json', '/var/run/plat-identity/pub.pem']
  for (const { path: key, message } of problems)
    assert.ok(
      missing.some((file) => message.includes(file)),
      `${key}: ${message}`,
    )
})
