import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { LEAST } from '../builtin/web/testing/fixture.ts'
import { checkGatewayConfig, typedConfig } from '../config.ts'
import { examples } from '../testing/configured.ts'

test('the configuration of docs/evidence.md is valid, and its limit is the default', () => {
  const [json = ''] = examples('evidence.md', 'json')
  const check = (own: object) => checkGatewayConfig(JSON.stringify({ ...LEAST, ...own }), { exists: () => true })
  const { config, problems } = check(JSON.parse(json))
  assert.deepEqual(problems.map(formatProblem), [])
  assert.equal(typedConfig(config).evidence.maxBytes, typedConfig(check({}).config).evidence.maxBytes)
  assert.deepEqual(
    check({ evidence: { maxBytes: 0 } }).problems.map(({ path }) => path),
    ['evidence.maxBytes'],
  )
})
