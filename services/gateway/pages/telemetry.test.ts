import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig, typedConfig } from '../config.ts'
import { QUEUE_MAX_BYTES, TRIES } from '../evidence/otel/export/exporter.ts'
import { gatewayMetricRows } from '../metric-rows.ts'
import { REPOSITORY } from '../reference.ts'
import { examples } from '../testing/configured.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/telemetry.md'), 'utf8')
const least = { policyFile: '/p', auditPath: '/a', upstreamsFile: '/u', identity: { publicKeyFiles: ['/k'] } }

test('the configuration of docs/telemetry.md is valid, and its limits are those of the code', () => {
  const [json] = examples('telemetry.md', 'json')
  const exists = () => true
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...least, ...JSON.parse(json) }), { exists })
  assert.deepEqual(problems.map(formatProblem), [])
  const { otel } = typedConfig(config)
  assert.deepEqual([otel.enabled, otel.sampleRatio, otel.genAI.captureContent], [true, 0.2, true])
  assert.deepEqual([QUEUE_MAX_BYTES / 2 ** 20, TRIES], [64, 5])
})

test('every series of traces is on the page', () => {
  const rows = gatewayMetricRows.filter(({ area }) => area === 'OpenTelemetry')
  assert.equal(rows.length, 7)
  for (const { name } of rows) assert.ok(page.includes(`\`${name}\``), name)
})

test('keys absent from otel have the defaults of the contract', () => {
  // Shows D3.otel.enabled, D3.otel.protocol, D3.otel.serviceName, D3.otel.sampleRatio, D3.otel.maxQueueSize,
  // D3.otel.maxExportBatchSize, D3.otel.exportIntervalMillis, D3.otel.exportTimeoutSeconds, D3.otel.genAI.maxContentBytes.
  const { config } = checkGatewayConfig(JSON.stringify(least), { exists: () => true })
  assert.deepEqual(typedConfig(config).otel, {
    enabled: false,
    endpoint: '',
    jurisdiction: '',
    protocol: 'http/json',
    headersFile: '',
    caFile: '',
    serviceName: 'plat-gateway',
    sampleRatio: 1,
    recordArgs: false,
    recordUser: false,
    resourceAttributes: {},
    maxQueueSize: 2048,
    maxExportBatchSize: 512,
    exportIntervalMillis: 5000,
    exportTimeoutSeconds: 10,
    genAI: { captureContent: false, contentDlpProfile: '', maxContentBytes: 16_384, emitLegacySystem: false },
  })
})
